"""experiments/table.py: runs are executed once, and again where something changed."""

import csv
import json
import zipfile
from dataclasses import replace

import pytest
from commands import call, configured, times, typed_for_tales, write_tales
from hydra import compose
from lab.columns import budget_columns
from lab.comparison import Comparison, Line
from lab.plan import Row, composed, identity, table_rows
from lab.report import Report

from socialgraph.data import read_run


@pytest.fixture
def tales(tmp_path):
    """Return what a user types: a folder of six documents, and sizes to match."""
    write_tales(tmp_path / "tales")
    return [*typed_for_tales(tmp_path / "tales"), "size.short=32", "size.long=48", f"results={tmp_path / 'results'}"]


def make(folder, table, *overrides):
    call("table", f"table={table}", *overrides)
    return folder / "results" / "tales" / "test"


def changed(before, after):
    return {name.split(".")[0] for name in after if before.get(name) != after[name]}


def test_rows_are_run_once_and_again_if_something_changed(tales, tmp_path, caplog):
    caplog.set_level("INFO")
    typed = [*tales, "rows=[bm25,ql,parade,socialformer-node]"]
    folder = make(tmp_path, "table1", *typed)
    rows = {"bm25", "ql", "parade", "socialformer-node"}
    first = times(folder)
    assert set(first) == {f"{row}.0.{end}" for row in rows for end in ("json", "run.gz")}
    row = json.loads((folder / "parade.0.json").read_text())
    assert row["config"]["recipe"]["document_length"] == 48
    assert row["parameters"] > 1e4
    assert row["seconds_per_document"] > 0
    assert any("train_loss" in line for line in row["training"])
    runs = {row: read_run(folder / f"{row}.0.run.gz") for row in rows}
    for run in runs.values():  # every row ranks the same documents
        assert {query: set(scores) for query, scores in run.items()} == {
            query: set(scores) for query, scores in runs["bm25"].items()
        }

    # nothing again, whatever is told of the training
    make(tmp_path, "table1", *typed, "+trainer.arguments.report_to=none", "+trainer.arguments.run_name=another")
    assert times(folder) == first

    # a changed option runs what depends on it, a damaged run is noticed, and nothing else runs again
    run = folder / "ql.0.run.gz"
    run.write_bytes(run.read_bytes()[:-9])
    caplog.clear()
    make(tmp_path, "table1", *typed, "partition.max_size=16")
    second = times(folder)
    assert changed(first, second) == {"ql", "socialformer-node"}
    assert "socialformer-node.0: changed: recipe.circles.max_size was 128, is 16; again" in caplog.text
    assert f"ql.0: {run} is damaged or of another run; again" in caplog.text

    # half a JSON, and no run file
    half = folder / "parade.0.json"
    half.write_text(half.read_text()[:100])
    (folder / "bm25.0.run.gz").unlink()
    caplog.clear()
    make(tmp_path, "table1", *typed, "partition.max_size=16")
    assert changed(second, times(folder)) == {"parade", "bm25"}
    again = json.loads(half.read_text())
    assert again["measures"] == row["measures"]  # the same seed, the same row
    assert again["sha256"] == row["sha256"]

    # the other table takes PARADE from here
    third = times(folder)
    make(tmp_path, "table2", *typed[:-1], "rows=[parade]")
    assert times(folder) == third
    assert (folder / "table2.md").exists()
    check_table(folder, row)


def check_table(folder, parade):
    """The table of the rows above, in three formats."""
    with open(folder / "table1.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["Row"] for line in lines] == ["bm25", "ql", "parade", "socialformer-node"]
    shown = (
        "Model", "Doc. length", "Window", "RR@100", "RR@10", "nDCG@100", "nDCG@10", "Δ RR@100 vs PARADE %",
        "Parameters (M)", "Training (s)", "s / document", "Memory (GB)",
    )  # fmt: skip
    assert [name for name in lines[0] if name in shown] == list(shown)
    bm25, ql, mine, social = lines
    mean = sum(parade["measures"]["RR@100"].values()) / 3
    assert float(mine["RR@100"]) == pytest.approx(mean)
    assert float(mine["Δ RR@100 vs PARADE %"]) == 0
    assert float(bm25["RR@100"]) > 0
    assert float(bm25["Δ RR@100 vs PARADE %"]) == pytest.approx(100 * (float(bm25["RR@100"]) - mean) / mean)
    assert (bm25["Doc. length"], mine["Doc. length"], mine["Window"], ql["s / document"]) == ("", "48", "32", "")
    assert [social[f"paper: {name}"] for name in ("MRR@100", "MRR@10", "nDCG@100", "nDCG@10")] == [
        "0.4483", "0.4402", "0.5087", "0.6534",
    ]  # fmt: skip
    assert mine["p of RR@100"] == ""
    assert 0 <= float(social["p of nDCG@10"]) <= 1
    table = [line for line in (folder / "table1.md").read_text().splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == {17}
    assert len(table) == 2 + 3 + 4  # header, groups, rows
    tex = (folder / "table1.tex").read_text()
    body = [line for line in tex.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert len(body) == 5
    assert {line.replace(r"\&", "").count("&") for line in body} == {15}
    assert tex.count("{") == tex.count("}")
    assert "%" not in tex.replace(r"\%", "").split("\n", 1)[1]


def test_seeds_are_averaged_query_by_query_and_significance_is_marked(hydra):
    config = configured("table", "data.label=x")
    rows = {row.name: row for row in table_rows(config)}

    def run(*values, seconds=60.0):
        recipe = {"first_stage": None, "document_length": 7}
        return {
            "config": {"recipe": recipe}, "parameters": 5_000_000, "training_seconds": seconds,
            "seconds_per_document": seconds / 100, "peak_memory_bytes": None,
            "measures": {name: {f"q{i}": v for i, v in enumerate(values)} for name in config.measures},
        }  # fmt: skip

    finished = {
        "maxp": [run(0.1, 0.3, 0.2, 0.2), run(0.1, 0.3, 0.2, 0.2)],  # differences -0.1, 0.1, 0, 0: t = 0, p = 1
        "parade": [run(0.1, 0.2, 0.3, 0.2), run(0.3, 0.2, 0.1, 0.2)],  # mean of each query: 0.2
        "qds": [run(0.9, 0.9, 0.8, 0.8), run(0.9, 0.9, 1.0, 0.8, seconds=7.0)],  # far above
    }
    comparison = Comparison(config, [Line(rows[name], seeds) for name, seeds in finished.items()])
    maxp, parade, _ = comparison.lines
    assert parade.measures()["RR@100"] == pytest.approx(dict.fromkeys(["q0", "q1", "q2", "q3"], 0.2))
    assert comparison.p_value(maxp, "RR@100") == pytest.approx(1.0)
    assert comparison.p_value(parade, "RR@100") is None
    marks = [[name for name in config.measures if comparison.is_marked(line, name)] for line in comparison.lines]
    assert marks == [[], [], ["RR@100", "nDCG@10"]]
    # 0.875 of 0.2 is 337.5 % more; the seeds' means are 0.85 and 0.9; costs are those of the first seed
    cells = [cell.strip() for cell in Report(comparison).markdown().splitlines()[-3].split("|")[4:13]]
    assert cells[:4] == ["0.8750 ± 0.0354 †", "0.8750 ± 0.0354", "0.8750 ± 0.0354", "0.8750 ± 0.0354 †"]
    assert cells[4:] == ["+337.50", "5.0", "60", "0.6000", "-"]
    # a note stands where its column has something
    printed = "The columns of the paper are its own"
    assert printed in Report(comparison).notes()
    own = [replace(line, row=replace(line.row, beside={})) for line in comparison.lines]
    assert printed not in Report(Comparison(config, own)).notes()


def test_the_budget_is_that_of_the_training(hydra):
    config = {"trainer": {"groups": 10, "negatives": 3}, "recipe": {"document_length": 500}}
    logs = {
        "twice": [{"step": 4, "epoch": 1.6}, {"step": 5, "epoch": 2.0}],
        "stages": [{"stage": name, "step": step, "epoch": 1.0} for name, step in (("first", 3), ("second", 2))],
        "as it is": [],
    }
    lines = [Line(Row(name), [{"config": config, "training": log}]) for name, log in logs.items()]
    steps, pieces = budget_columns(Comparison(configured("table", "data.label=x"), lines))
    assert [steps.value(line) for line in lines] == [5, 5, None]
    assert [pieces.value(line) for line in lines] == [2 * 40 * 500 / 1e6, 40 * 500 / 1e6, None]


@pytest.mark.parametrize("typed", ["[test]", "2019"])
def test_a_test_split_is_the_same_however_it_is_typed(hydra, typed):
    one, plain = (identity(composed([f"data.splits.test={name}"])) for name in (typed, f"'{typed.strip('[]')}'"))
    assert one == plain
    assert isinstance(one["data"]["splits"]["test"], str)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_so_are_the_other_splits(hydra, split):
    one, plain = (identity(composed([f"data.splits.{split}={name}"])) for name in ("2019", "'2019'"))
    assert one == plain


@pytest.mark.parametrize("table", ["table1", "table2", "whole-documents"])
@pytest.mark.parametrize("size", ["cpu", "gpu"])
def test_every_row_is_something_to_type(hydra, table, size):
    config = compose("table", [f"table={table}", f"size={size}"])
    seen = []
    for entries in config.table.groups.values():
        for row, entry in entries.items():
            one = identity(composed([*config.size.overrides, *entry.overrides]))
            if "short" in row or row == "firstp":
                assert one["recipe"]["document_length"] == config.size.short
            if one["recipe"]["circles"]:  # the paper has one k
                assert one["recipe"]["circles"]["k"] == config.size.long_circles
            assert one["recipe"] not in seen, f"{row} is the same as another row"
            seen.append(one["recipe"])
            assert len(entry.get("paper") or config.table.paper) == len(config.table.paper)
    assert len(seen) == {"table1": 28, "table2": 9, "whole-documents": 9}[table]
    assert all(one.to in str(config.table.groups) for one in config.table.differences)


def test_the_command(tales, tmp_path, capsys):
    make(tmp_path, "table1", *tales, "rows=[bm25]")
    assert "| BM25 | - | - | " in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"^error: table2 has no row 'bm25'; there are: sentence-maxp, parade, "):
        make(tmp_path, "table2", *tales, "rows=[bm25]")


def test_a_folder_is_kept_as_one_file(tales, tmp_path):
    folder = make(tmp_path, "table1", *tales, "rows=[bm25]")
    before = (folder / "bm25.0.run.gz").read_bytes()
    make(tmp_path, "table1", *tales, "rows=[ql]", "pack=true")
    assert not times(folder)
    with zipfile.ZipFile(folder / "runs.zip") as archive:
        assert set(archive.namelist()) == {f"{row}.0.{end}" for row in ("bm25", "ql") for end in ("json", "run.gz")}
        assert archive.read("bm25.0.run.gz") == before
    packed = (folder / "runs.zip").read_bytes()
    make(tmp_path, "table1", *tales, "rows=[bm25,ql]")
    assert not times(folder)  # nothing again
    assert "| QL |" in (folder / "table1.md").read_text()
    make(tmp_path, "table1", *tales, "rows=[ql]", "measures=[RR@10]", "report.differences=null")
    assert set(times(folder)) == {"ql.0.json", "ql.0.run.gz"}  # what has changed counts before what is packed
    assert (folder / "runs.zip").read_bytes() == packed
