"""Graphs, scores and gradients on a GPU, or on a device that as a GPU refuses tensors of the CPU: those of the CPU."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from graph_digest import LIBRARIES
from in_batches import cuda
from test_recipes import MODELS, backbone  # noqa: F401 (a fixture)

from socialgraph import recipes

RECIPES = Path(recipes.__file__).parent
PROGRAM = Path(__file__).with_name("on_another_device.py")


def named(group):
    """The options of a group of the configuration; a partition without its library is left out."""
    names = sorted(file.stem for file in (RECIPES / group).glob("*.yaml"))
    return [f"{group}={name}" for name in names if name not in LIBRARIES or find_spec(LIBRARIES[name])]


# social-bf16 reads as precisely as a device can, so that its numbers differ from one to the next
EDGES = [option for option in named("edges") if option != "edges=social-bf16"]
#: what each device says of tensors of both
MIXED = {"another": "is on the CPU, others are not", "cuda": "Expected all tensors to be on the same device"}
CHECKS = {  # two interpreters, and not one for each kind: they take long to start
    "recipes and edges": [*(f"recipe={name}" for name in MODELS), *EDGES],
    "partitions and digest": [*named("partition"), "digest"],
}


@pytest.mark.parametrize("checks", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("device", ["another", pytest.param("cuda", marks=cuda)])
def test_as_on_the_cpu(backbone, device, checks):  # noqa: F811
    if device == "cuda":
        checks = [check for check in checks if check != "digest"]  # test_same_digest.py tries it there
    # a new interpreter: in a fork of one that has imported everything, some recipes are refused by the device
    done = subprocess.run([sys.executable, PROGRAM, device, backbone, "mixed", *checks], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert MIXED[device] in found.pop("mixed")
    assert found == dict.fromkeys(checks, "")
