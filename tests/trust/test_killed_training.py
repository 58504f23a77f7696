"""Training is killed at random moments and started again: it ends with the same weights.

Three stages of a cascade are trained one after the other, with dropout, accumulation and a checkpoint every other step.
Half of the kills fall anywhere, half of them while a checkpoint is being written.

Long form: python tests/trust/test_killed_training.py --kills 20
"""

import os
import random
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is called as a program
from children import fresh
from conftest import write_tiny_bert
from killing import killed, long_form, undisturbed
from safetensors.torch import load_file, save_model
from training_task import assert_same, task_for

from socialgraph.data import TrainingGroups
from socialgraph.nn.idcm import IDCM
from socialgraph.ranking import train
from socialgraph.ranking.checkpoints import MARKER

OPTIONS = {
    "learning_rate": 2e-3, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "num_train_epochs": 2,
    "logging_steps": 3, "save_strategy": "steps", "save_steps": 2, "use_cpu": True, "disable_tqdm": True,
}  # fmt: skip


def cascade(bert):
    """Return a model with three stages of training."""
    return IDCM.from_backbone(str(bert), chunks=2, kernels=3)


def life(bert, run):
    """Train what is left to train, and write the weights; what is said goes to a file."""
    torch.set_num_threads(1)
    with open(run / "errors", "a") as errors:
        os.dup2(errors.fileno(), 1)
        os.dup2(errors.fileno(), 2)
    split, builder = task_for(bert, edges=False)
    groups = TrainingGroups(split, size=16, negatives=2)
    torch.manual_seed(os.getpid())  # what a checkpoint does not restore would show
    model = cascade(bert)
    model.load_state_dict(load_file(bert / "start.safetensors"))
    for stage in model.stages:
        model.enter(stage)
        log = train(model, builder, groups, run / stage, resume=True, **OPTIONS)
        assert log[-1]["step"] == 8
    save_model(model, str(run / "end.safetensors"))


def half_written(run):
    """Return the checkpoints that are being written, or were when the process died."""
    return {path.parent for path in run.glob(f"*/*/{MARKER}") if not path.read_text()}


def kill_training(folder, kills, chance):
    """Kill trainings so often; return in words what was tried."""
    bert = folder / "bert"
    write_tiny_bert(bert, num_hidden_layers=2)
    save_model(cascade(bert), str(bert / "start.safetensors"))
    halves = []

    def begin(run):
        halves.extend(half_written(run))
        child = fresh().Process(target=life, args=(bert, run))
        child.start()
        return child

    def moment(child, run):
        if chance.random() < 0.5:
            nth, names = chance.randrange(1, 4), set()
            while len(names) < nth and child.exitcode is None:
                names |= half_written(run)
                time.sleep(0.0005)
            time.sleep(chance.uniform(0, 0.02))
        else:
            time.sleep(chance.uniform(0, seconds / 2))

    seconds = undisturbed(begin, folder / "undisturbed")
    runs = killed(begin, folder, kills, moment)
    weights = load_file(folder / "undisturbed" / "end.safetensors")
    for run in runs:
        assert_same(load_file(run / "end.safetensors"), weights)
    return f"a training killed {kills} times, {len(halves)} of them with a half-written checkpoint; runs: {len(runs)}"


def test_a_killed_training_ends_with_the_same_weights(tmp_path, record_property):
    record_property("told", kill_training(tmp_path, 4, random.Random()))


if __name__ == "__main__":
    long_form(__doc__, kill_training)
