"""Training and re-ranking under torchrun, killed and resumed: the same run file as one process, to the last bit."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is called as a program
import children
from conftest import write_tiny_bert
from safetensors.torch import load_file, save_model
from training_task import assert_same, task_for

from socialgraph.data import TrainingGroups, write_run
from socialgraph.nn import Socialformer
from socialgraph.ranking import processes, rerank, train
from socialgraph.ranking.losses import listwise_cross_entropy

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


def program(bert, out, accumulation, fatal):
    """Train and re-rank; the first process writes. In its ``fatal``-th batch the second kills itself (0: in none)."""
    torch.set_num_threads(1)
    batches = []

    def loss(scores, group, relevant):
        batches.append(len(scores))
        if len(batches) == fatal and processes.number() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return listwise_cross_entropy(scores, group, relevant)

    split, builder = task_for(bert)
    torch.manual_seed(0)
    model = Socialformer.from_backbone(str(bert), dropout=0.0)
    log = train(
        model, builder, TrainingGroups(split, size=32, negatives=2), out / "training", loss, resume=True,
        learning_rate=2e-3, per_device_train_batch_size=2, gradient_accumulation_steps=accumulation, logging_steps=1,
        save_strategy="steps", save_steps=2, use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    run = rerank(model, builder, split.queries, split.candidates, progress=False, distributed=True)
    if processes.is_first():
        write_run(out / "run.txt", run)
        save_model(model, str(out / "model.safetensors"))
        (out / "log.json").write_text(json.dumps([line["loss"] for line in log if "loss" in line]))
    print(f"process {processes.number()} of {processes.count()} is done")


def test_two_processes_of_torchrun_killed_and_resumed_make_the_files_of_one(tmp_path):
    bert, one, two = (tmp_path / name for name in ("bert", "one", "two"))
    write_tiny_bert(bert, num_hidden_layers=2)
    one.mkdir()
    two.mkdir()
    alone = children.run(__file__, bert, one, 2, 0)  # twice the accumulation
    assert alone.returncode == 0, alone.stderr[-3000:]
    killed = [*TORCHRUN, __file__, bert, two, "1", "6"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    assert subprocess.run(killed, capture_output=True, timeout=1800, env=environment).returncode != 0
    assert not (two / "run.txt").exists()
    assert {path.name for path in (two / "training").glob("checkpoint-*")} == {"checkpoint-2", "checkpoint-4"}
    done = children.run_together(2, __file__, bert, two, 1, 0)
    assert [process.returncode for process in done] == [0, 0], [process.stderr[-3000:] for process in done]
    for number, process in enumerate(done):
        assert process.stdout.splitlines()[-1] == f"process {number} of 2 is done"
    assert (two / "run.txt").read_bytes() == (one / "run.txt").read_bytes()
    losses = json.loads((two / "log.json").read_text())
    assert len(losses) == 8
    assert losses == json.loads((one / "log.json").read_text())
    assert_same(load_file(two / "model.safetensors"), load_file(one / "model.safetensors"))


if __name__ == "__main__":
    program(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
