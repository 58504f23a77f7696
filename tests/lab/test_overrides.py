"""Options as they are typed: classes of the user's own."""

import sys

import pytest
from lab.overrides import latest, spelled_out

from socialgraph.errors import OptionError

MODULE = """
from socialgraph.edges import SocialEdges, Uniform
from socialgraph.partition import Windows

class Mine(Windows): pass
class Friends(Uniform): pass
class Sampler(SocialEdges): pass
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own_module", None)


@pytest.mark.usefixtures("own_module")
def test_a_class_of_ones_own_is_spelled_out():
    typed = ["recipe=maxp", "partition=own_module.Mine", "edges=own_module.Friends", "edges.sparsity=0.9"]
    assert spelled_out(typed) == [
        "recipe=maxp", "partition._target_=own_module.Mine",
        "edges=random", "~edges.patterns.uniform", "+edges.patterns.own._target_=own_module.Friends",
        "edges.sparsity=0.9",
    ]  # fmt: skip
    assert spelled_out(["edges=own_module.Sampler"]) == ["edges=random", "edges._target_=own_module.Sampler"]


def test_what_is_no_class_stays():
    typed = ["partition=node", "edges.sparsity=0.9", "data.path=a.b", "--help", "partition=edge,own_module.Mine"]
    assert spelled_out(typed) == typed


def test_a_file_called_as_a_module_that_is_there(tmp_path, monkeypatch):
    (tmp_path / "statistics.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=r"another module is called statistics, too \(.*\): give statistics.py"):
        spelled_out(["partition=statistics.Mine"])


#: what a file of one's own may hold, and what is told of it
BROKEN_FILES = {
    "def f(:": r"invalid syntax \(own_broken.py, line 1\)",
    "x = undefined": r"importing 'own_broken' raises NameError: name 'undefined' is not defined \(.*own_broken.py:1\)",
    "raise RuntimeError('one\\ntwo')": r"importing 'own_broken' raises RuntimeError: one \(.*own_broken.py:1\)",
    "import sys; sys.exit()": r"importing 'own_broken' raises SystemExit: SystemExit \(.*own_broken.py:1\)",
    "import own_missing": r"No module named 'own_missing'; is it in this folder, or installed\?",
    "from own_broken import Mine": r"cannot import name 'Mine' from partially initialized module 'own_broken' .*",
    "from socialgraph.partition import Nobody": "cannot import name 'Nobody' from 'socialgraph.partition' .*",
    "\0": "source code string cannot contain null bytes",
    "Mine = 5": None,
}


@pytest.mark.parametrize("text", BROKEN_FILES)
def test_a_file_that_cannot_be_imported(text, tmp_path, monkeypatch):
    from socialgraph.recipes.build import build_named

    (tmp_path / "own_broken.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_broken", raising=False)
    told = BROKEN_FILES[text]
    for key in ("partition", "edges"):
        with pytest.raises(OptionError, match=f"^{key}=own_broken.Mine: {told or 'Mine is no subclass of'}"):
            spelled_out([f"{key}=own_broken.Mine"])
    with pytest.raises(OptionError, match=f"^partition: own_broken.Mine:? {told or 'is no class, but of'}"):
        build_named({"_target_": "own_broken.Mine"}, "partition")


def test_of_two_options_on_the_same_matter_the_last_one_counts():
    assert latest(["partition=edge", "k=1", "partition.k=2", "partition=node", "+k=3"]) == [
        "partition=node", "+k=3", "partition.k=2",
    ]  # fmt: skip
