"""Trains with all the memory there is, with three quarters of what that took, and with a tenth; prints what happened.

The limit is the operating system's (RLIMIT_AS), so what fails is a real allocation of PyTorch's. Argument: a folder.
"""

import json
import resource
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from conftest import write_tiny_bert
from training_task import task_for

from socialgraph.data import TrainingGroups
from socialgraph.errors import TooLargeError
from socialgraph.nn import Socialformer
from socialgraph.ranking import train

BATCH = 4


def used(what):
    """Return bytes of address space: VmSize now, VmPeak at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(what)))


def limit(size):
    """Allow that much address space."""
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))


torch.set_num_threads(1)
folder = Path(sys.argv[1])
write_tiny_bert(folder / "bert", num_hidden_layers=2)
split, builder = task_for(folder / "bert", length=900)
groups = TrainingGroups(split, size=2 * BATCH, negatives=2)


def trained(name, size=BATCH):
    """Return the weights and the warnings of one step of two batches."""
    torch.manual_seed(0)
    model = Socialformer.from_backbone(str(folder / "bert"), dropout=0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(
            model, builder, groups, folder / name, optim="sgd", max_grad_norm=0, learning_rate=0.1,
            use_cpu=True, per_device_train_batch_size=size, gradient_accumulation_steps=2, disable_tqdm=True,
        )  # fmt: skip
    return model.state_dict(), [str(warning.message) for warning in caught]


trained("warm", 1)  # imports and buffers
before = used("VmSize")
free, told = trained("free")
need = used("VmPeak") - before
report = {"need": need, "told": told}

limit(before + need * 3 // 4)
tight, report["told in less"] = trained("tight")
start = Socialformer.from_backbone(str(folder / "bert"), dropout=0.0).state_dict()
report["moved"] = max(float((free[name] - start[name]).abs().max()) for name in free if not name.startswith("score"))
report["apart"] = max(float((free[name] - tight[name]).abs().max()) for name in free)

limit(used("VmSize") + need // 12)
try:
    trained("too little")
except TooLargeError as error:
    report["refused"] = str(error)
limit(resource.getrlimit(resource.RLIMIT_AS)[1])
print(json.dumps(report))
