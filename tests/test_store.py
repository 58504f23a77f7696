"""experiments/lab/store.py: what a process was writing when it was killed is gone after the next one."""

import signal

import children
import pytest
from lab.store import Store
from lab.unfinished import Unfinished

RANKING = {"q": {"d": 1.0}}
VALUE = {"name": "a", "measures": {"RR@10": {"q": 1.0}}, "config": {}}

#: a process that dies as a run's owner: at the moment at which its run file would get its name, or inside a model
DIES = """
import os, signal, sys
from pathlib import Path
from lab.store import Store
from lab.unfinished import Unfinished, locked

folder = Path(sys.argv[1])

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

class Model:
    def save_pretrained(self, place):
        place.mkdir()
        (place / "config.json").write_text("{}")
        (place / ".tmpAb3dE6").write_text("half")
        die()

with locked(folder / ".unfinished" / "a.0"):
    unfinished = Unfinished(folder / ".unfinished" / "a.0", {"seed": 0})
    if sys.argv[2] == "model":
        unfinished.keep_model(Model(), folder / "models" / "a.0")
    os.replace = die
    Store(folder).write("a.0", {"q": {"d": 1.0}}, {"name": "a"})
"""


class Model:
    def save_pretrained(self, place):
        place.mkdir()
        (place / "config.json").write_text("new")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "test"


def die(folder, inside):
    """Let a process die in a folder; return what it leaves."""
    program = folder.parent / "dies.py"
    program.write_text(DIES)
    done = children.run(program, folder, inside)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_run_file_without_its_name_goes_and_those_of_other_runs_stay(folder):
    left = [name for name in die(folder, "run") if name.startswith(".a.0.run.gz.")]
    assert len(left) == 1
    others = [".b.0.run.gz.abcd1234.part", ".a.01.json.abcd1234.part", ".a.0.json.bak"]  # b is being written just now
    for name in others:
        (folder / name).touch()
    (folder / ".a.0.json.abcd1234.part").touch()
    Store(folder).write("a.0", RANKING, VALUE)
    assert {path.name for path in folder.iterdir()} == {".unfinished", "a.0.json", "a.0.run.gz", *others}
    assert Store(folder).ranking("a.0") == RANKING


def test_a_file_beside_the_archive_counts_before_the_one_inside(folder):
    store, newer = Store(folder), {"q": {"e": 2.0}}
    store.write("a.0", RANKING, VALUE)
    store.pack()
    assert store.ranking("a.0") == RANKING
    store.write("a.0", newer, {**VALUE, "name": "b"})
    for _ in range(2):
        assert (store.ranking("a.0"), store.read("a.0")["name"]) == (newer, "b")
        store.pack()
    assert [path.name for path in folder.iterdir()] == ["runs.zip"]


def test_half_a_model_never_has_a_models_name(folder):
    assert ".unfinished/a.0/model/.tmpAb3dE6" in die(folder, "model")
    assert not (folder / "models").exists()
    unfinished = Unfinished(folder / ".unfinished" / "a.0", {"seed": 0})
    (folder / "models" / "a.0").mkdir(parents=True)
    (folder / "models" / "a.0" / "config.json").write_text("old")
    (folder / "models" / "a.0" / ".tmpAb3dE6").touch()  # as older versions left it
    unfinished.keep_model(Model(), folder / "models" / "a.0")
    assert {path.name: path.read_text() for path in (folder / "models" / "a.0").iterdir()} == {"config.json": "new"}
    unfinished.remove()
    assert [path.name for path in folder.iterdir()] == ["models"]
