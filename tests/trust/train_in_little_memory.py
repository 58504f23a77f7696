"""Trains with all the memory there is, and with half of what that took; prints what happened.

The limit is the operating system's (RLIMIT_AS), so what fails is a real allocation of PyTorch's. Argument: a folder.
"""

import json
import resource
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from conftest import write_tiny_bert
from training_task import task_for

from socialgraph.data import TrainingGroups
from socialgraph.errors import TooLargeError
from socialgraph.nn import Socialformer
from socialgraph.ranking import train


def used(what):
    """Return bytes of address space: VmSize now, VmPeak at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(what)))


torch.set_num_threads(1)
folder = Path(sys.argv[1])
write_tiny_bert(folder / "bert", num_hidden_layers=2)
split, builder = task_for(folder / "bert", length=900)


def trained(name, size):
    """Train one step of so many groups."""
    model = Socialformer.from_backbone(str(folder / "bert"), dropout=0.0)
    groups = TrainingGroups(split, size=size, negatives=2)
    train(model, builder, groups, folder / name, use_cpu=True, per_device_train_batch_size=size, disable_tqdm=True)


trained("warm", 1)  # imports and buffers
before = used("VmSize")
trained("free", 6)
need = used("VmPeak") - before
most = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (before + need // 2, most))
report = {"need": need}
try:
    trained("tight", 6)
except TooLargeError as error:
    report["refused"] = str(error)
trained("smaller", 1)  # as it was told
resource.setrlimit(resource.RLIMIT_AS, (most, most))
print(json.dumps(report))
