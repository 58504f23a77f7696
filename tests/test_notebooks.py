"""Notebooks are kept without outputs; their pages on the site, which runs them, have what they should show."""

import html
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks come with the extra docs")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def page(name):
    """Return a notebook's page as the site has it; `make docs` runs the notebook from top to bottom."""
    there = ROOT / "site" / "notebooks" / name / "index.html"
    sources = (path for folder in ("docs", "socialgraph") for path in (ROOT / folder).rglob("*.*"))
    newest = max(path.stat().st_mtime for path in sources if path.suffix != ".pyc")
    if not there.exists() or there.stat().st_mtime < newest:
        pytest.skip("there is no site, or an old one: make docs")
    return there.read_text()


def tables(page):
    """Return the tables of a page, each a list of rows of cells."""
    cells = lambda row: [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]  # noqa: E731
    return [
        [cells(row) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)]
        for table in re.findall(r"<table>(.*?)</table>", page, re.DOTALL)
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path):
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    assert notebook.cells[0].source.startswith("# ")  # its title on the site


def test_look_at_a_document():
    shown = page("look-at-a-document")
    assert re.search(r"<pre>\[\('library/shutil', \d", shown)  # the best for its question
    assert shown.count("<iframe") == shown.count('<iframe sandbox="allow-scripts" ') == 1


def test_a_partition_of_your_own():
    (table,) = tables(page("a-partition-of-your-own"))
    rows = {row[0]: dict(zip(table[0], row, strict=True)) for row in table[1:]}
    assert {"edge", "near_friends.NearFriends"} <= set(rows)
    assert float(rows["near_friends.NearFriends"]["sequences"]) == 4  # as many circles as it was asked for
    assert not (ROOT / "docs" / "notebooks" / "near_friends.py").exists()


def test_compare():
    found = tables(page("compare"))
    evidence, reading = (one for one in found if one[0][0] == "partition")
    for table, heading in ((evidence, "lift"), (reading, "RR@10 reader max")):
        assert heading in table[0]
        assert {row[0] for row in table[1:3]} == {"edge", "random"}
