"""Graphs, scores and gradients on a GPU are those of the CPU."""

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
CHECKS = {  # two interpreters, and not one for each kind: they take long to start
    "recipes and edges": [*(f"recipe={name}" for name in MODELS), *EDGES],
    "partitions": named("partition"),
}


@cuda
@pytest.mark.parametrize("checks", CHECKS.values(), ids=CHECKS)
def test_as_on_the_cpu(backbone, checks):  # noqa: F811
    done = subprocess.run([sys.executable, PROGRAM, backbone, *checks], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(checks, "")
