"""The tables that come with the project are made of its committed runs, wherever one calls: nothing is executed."""

import shutil

import pytest
from commands import EXPERIMENTS, call
from lab import execute

RESULTS = EXPERIMENTS / "results"
FOUND = ["data.splits.test=test", "+data.queries.found=true", "data.queries.dev=0"]
WHOLE = ["data.queries.test=320", "data.depth=4", "trainer.groups=0", "measures=[RR@10,nDCG@10]",
         "report.significance.measures=[RR@10]"]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "data", "place", "typed"),
    [
        ("table1", "pydocs", "pydocs/test", []),
        ("table1", "wtq", "wtq/test", FOUND),
        ("table2", "fairytale", "fairytale/test", FOUND),
        ("whole-documents", "wtq", "whole-documents/wtq/test", FOUND + WHOLE),
    ],
)
def test_a_committed_table_is_made_of_committed_runs(table, data, place, typed, tmp_path, monkeypatch):
    def refuse(run, *rest):
        raise AssertionError(f"{run.name}: {run.find()[1]}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(execute, "run_row", refuse)
    folder = tmp_path / data / "test"
    folder.mkdir(parents=True)
    shutil.copy(RESULTS / place / "runs.zip", folder)
    call("run", f"table={table}", f"data={data}", *typed, f"results={tmp_path}")
    for end in ("md", "tex"):  # the CSV has digits that differ from machine to machine
        assert (folder / f"{table}.{end}").read_text() == (RESULTS / place / f"{table}.{end}").read_text()
