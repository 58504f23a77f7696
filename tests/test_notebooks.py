"""The notebooks of the documentation run from top to bottom, without network, and are kept without outputs."""

import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks come with the extra docs")
nbclient = pytest.importorskip("nbclient", reason="notebooks come with the extra docs")
pytest.importorskip("ipykernel", reason="notebooks come with the extra docs")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def executed(path, monkeypatch):
    """Return a notebook with its outputs."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    notebook = nbformat.read(path, 4)
    place = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=place).execute()
    return notebook


def shown(notebook, kind):
    """Return what cells show of one kind, such as "text/html"."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path):
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    assert notebook.cells[0].source.startswith("# ")  # its title on the site


def test_look_at_a_document(monkeypatch):
    (path,) = (path for path in NOTEBOOKS if path.stem == "look-at-a-document")
    notebook = executed(path, monkeypatch)
    assert shown(notebook, "text/plain")[0].startswith("[('library/shutil', ")  # the best for its question
    assert len(shown(notebook, "image/png")) == 1
    (page,) = shown(notebook, "text/html")
    assert page.startswith("<iframe")
    assert "sandbox=" in page[-200:]


def test_a_partition_of_your_own(monkeypatch):
    (path,) = (path for path in NOTEBOOKS if path.stem == "a-partition-of-your-own")
    (table,) = shown(executed(path, monkeypatch), "text/markdown")
    rows = {line.split("|")[1].strip(): line.split("|") for line in table.splitlines() if line.startswith("| ")}
    assert {"edge", "near_friends.NearFriends"} <= set(rows)
    assert float(rows["near_friends.NearFriends"][6]) == 4  # sequences: as many circles as it was asked for
    assert not (path.parent / "near_friends.py").exists()


def test_compare(monkeypatch):
    (path,) = (path for path in NOTEBOOKS if path.stem == "compare")
    notebook = executed(path, monkeypatch)
    evidence, reading = shown(notebook, "text/markdown")
    for table, heading in ((evidence, "lift"), (reading, "RR@10 reader max")):
        assert heading in table.splitlines()[0]
        assert {line.split("|")[1].strip() for line in table.splitlines()[2:4]} == {"edge", "random"}
    assert len(shown(notebook, "image/png")) == 1
