"""experiments/lab/results.py: finished runs are found by what they depend on, and written whole."""

import signal

import children
from lab.results import Results

RANKING = {"q": {"d": 1.0}}
VALUE = {"name": "a", "measures": {"RR@10": {"q": 1.0}}, "config": {"seed": 0}}

#: a process that dies at the moment at which its run file would get its name
DIES = """
import os, signal, sys
from pathlib import Path
from lab.results import Results

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

os.replace = die
Results(Path(sys.argv[1])).write("a.0", {"q": {"d": 1.0}}, {"name": "a"})
"""


def test_a_run_is_found_by_what_it_depends_on(tmp_path):
    results = Results(tmp_path)
    assert results.find("a.0", {"seed": 0}) == (None, "new")
    results.write("a.0", RANKING, VALUE)
    assert results.find("a.0", {"seed": 0, "none": None})[1] == "finished"
    assert results.find("a.0", {"seed": 1}) == (None, "changed: seed was 0, is 1")


def test_a_run_file_without_its_name_goes(tmp_path):
    folder = tmp_path / "test"
    (tmp_path / "dies.py").write_text(DIES)
    done = children.run(tmp_path / "dies.py", folder)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [path.name[:11] for path in folder.iterdir()] == [".a.0.run.gz"]
    Results(folder).write("a.0", RANKING, VALUE)
    assert {path.name for path in folder.iterdir()} == {"a.0.json", "a.0.run.gz"}


def test_a_file_beside_the_archive_counts_before_the_one_inside(tmp_path):
    results, newer = Results(tmp_path / "runs"), {"q": {"e": 2.0}}
    results.write("a.0", RANKING, VALUE)
    results.pack()
    assert results.ranking("a.0") == RANKING
    results.write("a.0", newer, {**VALUE, "name": "b"})
    for _ in range(2):
        assert (results.ranking("a.0"), results.read("a.0")["name"]) == (newer, "b")
        results.pack()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["runs.zip"]
