"""experiments/lab/results.py: finished runs are found by what they depend on, and written whole."""

import signal
import zipfile

import children
import pytest
from lab import results as module
from lab.results import Results

from socialgraph.errors import InputError

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


def test_a_run_file_without_its_name_is_no_result(tmp_path):
    folder = tmp_path / "test"
    (tmp_path / "dies.py").write_text(DIES)
    done = children.run(tmp_path / "dies.py", folder)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [path.name[:11] for path in folder.iterdir()] == [".a.0.run.gz"]
    Results(folder).write("a.0", RANKING, VALUE)
    assert {"a.0.json", "a.0.run.gz"} == {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert Results(folder).ranking("a.0") == RANKING


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


def test_an_archive_that_is_too_large_or_damaged_is_one_line(tmp_path, monkeypatch):
    results, archive = Results(tmp_path), tmp_path / "runs.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in ("a.0.json", "a.0.run.gz"):
            packed.writestr(name, b" " * 600_000)
    assert archive.stat().st_size < 2000
    monkeypatch.setattr(module, "LARGEST", 1_000_000)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it is refused before it is unpacked"))
    for asked in (results.rows, results.pack, lambda: results.find("a.0", {}), lambda: results.read("a.0")):
        with pytest.raises(InputError, match=r"runs.zip: unpacks to 1,200,000 bytes, and no table has more than 1,0"):
            asked()
    archive.write_bytes(archive.read_bytes()[:99])
    with pytest.raises(InputError, match=r"runs.zip: damaged"):
        results.rows()
