"""experiments/table1.py and table2.py: rows are run once, and again where something changed."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from socialgraph.data import read_run
from socialgraph.errors import OptionError

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
ANIMALS = ["otter", "heron", "badger", "lynx", "newt", "raven"]


@pytest.fixture
def hydra():
    with initialize_config_dir(str(EXPERIMENTS / "conf"), version_base="1.3"):
        yield


@pytest.fixture
def tales(tmp_path):
    """Return what a user types: a folder of six documents, and sizes to match."""
    folder = tmp_path / "tales"
    folder.mkdir()
    with open(folder / "corpus.jsonl", "w") as corpus:
        for animal in ANIMALS:
            text = f"The {animal} went to the river. " * 12
            corpus.write(json.dumps({"doc_id": animal, "text": text, "title": f"The {animal}"}) + "\n")
    for split, part in (("train", ANIMALS[:2]), ("dev", ANIMALS[2:4]), ("test", ANIMALS[3:])):
        (folder / f"queries.{split}.tsv").write_text("".join(f"q-{a}\thow did the {a} find the river\n" for a in part))
        (folder / f"qrels.{split}.txt").write_text("".join(f"q-{a} 0 {a} 1\n" for a in part))
    return [
        "data=folder", f"data.path={folder}", "data.label=tales", "size.short=32", "size.long=48", "window=32",
        "trainer.groups=1", "trainer.negatives=1", "trainer.bf16=false", f"results={tmp_path / 'results'}",
    ]  # fmt: skip


def make(folder, table, *overrides):
    from tables import make_table

    make_table(compose(table, list(overrides)), list(overrides))
    return folder / "results" / "tales" / "test"


def times(folder):
    return {file.name: file.stat().st_mtime_ns for file in folder.iterdir() if file.name.count(".") > 1}


def changed(before, after):
    return {name.split(".")[0] for name in after if before.get(name) != after[name]}


def test_rows_are_run_once_and_again_if_something_changed(tales, hydra, tmp_path, monkeypatch, caplog):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    caplog.set_level("INFO")
    typed = [*tales, "rows=[bm25,ql,parade,socialformer-node]"]
    folder = make(tmp_path, "table1", *typed)
    rows = {"bm25", "ql", "parade", "socialformer-node"}
    first = times(folder)
    assert set(first) == {f"{row}.0.{end}" for row in rows for end in ("json", "run.gz")}
    row = json.loads((folder / "parade.0.json").read_text())
    assert row["config"]["recipe"]["document_length"] == 48
    assert row["parameters"] > 2e7
    assert row["seconds_per_document"] > 0
    assert any("train_loss" in line for line in row["training"])
    runs = {row: read_run(folder / f"{row}.0.run.gz") for row in rows}
    for run in runs.values():  # every row ranks the same documents
        assert {query: set(scores) for query, scores in run.items()} == {
            query: set(scores) for query, scores in runs["bm25"].items()
        }

    # nothing again
    make(tmp_path, "table1", *typed)
    assert times(folder) == first

    # a changed option runs what depends on it, a damaged run is noticed, and nothing else runs again
    run = folder / "ql.0.run.gz"
    run.write_bytes(run.read_bytes()[:-9])
    caplog.clear()
    make(tmp_path, "table1", *typed, "partition.max_size=16")
    second = times(folder)
    assert changed(first, second) == {"ql", "socialformer-node"}
    assert "socialformer-node, seed 0: changed: recipe.circles.max_size; running" in caplog.text
    assert f"ql, seed 0: {run} is damaged or of another run; running" in caplog.text

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
    assert list(lines[0])[2:14] == [
        "Model", "Doc. length", "Window", "RR@100", "RR@10", "nDCG@100", "nDCG@10", "Δ RR@100 vs PARADE %",
        "Parameters (M)", "Training (s)", "s / document", "Memory (GB)",
    ]  # fmt: skip
    bm25, ql, mine, social = lines
    mean = sum(parade["measures"]["RR@100"].values()) / 3
    assert float(mine["RR@100"]) == pytest.approx(mean)
    assert float(mine["Δ RR@100 vs PARADE %"]) == 0
    assert float(bm25["RR@100"]) == 1.0
    assert float(bm25["Δ RR@100 vs PARADE %"]) == pytest.approx(100 * (1 - mean) / mean)
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


def test_seeds_are_averaged_query_by_query_and_significance_is_marked(hydra, monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    from report import lines, markdown

    config = compose("table1", ["data.label=x", "seeds=[0,1]"])

    def row(*values):
        recipe = {"first_stage": None, "document_length": 7}
        return {
            "config": {"recipe": recipe}, "parameters": 5_000_000, "training_seconds": 60.0,
            "seconds_per_document": values[0], "peak_memory_bytes": None,
            "measures": {name: {f"q{i}": v for i, v in enumerate(values)} for name in config.measures},
        }  # fmt: skip

    finished = {
        "parade": [row(0.1, 0.2, 0.3, 0.2), row(0.3, 0.2, 0.1, 0.2)],  # mean of each query: 0.2
        "maxp": [row(0.1, 0.3, 0.2, 0.2), row(0.1, 0.3, 0.2, 0.2)],  # differences -0.1, 0.1, 0, 0: t = 0, p = 1
        "qds": [row(0.9, 0.9, 0.8, 0.8), row(0.9, 0.9, 1.0, 0.8)],  # far above
    }
    maxp, parade, qds = lines(config, finished)
    assert parade.measures["RR@100"] == pytest.approx(0.2)
    assert maxp.p_values["RR@100"] == pytest.approx(1.0)
    assert qds.differences == pytest.approx({"RR@100 vs PARADE %": 337.5})  # 0.875 of 0.2
    assert (maxp.marked, qds.marked, parade.p_values) == ([], ["RR@100", "nDCG@10"], {})
    assert "| 0.8750 † | 0.8750 | 0.8750 | 0.8750 † | +337.50 | 5.0 | 60 | 0.9000 | - |" in markdown(config, [qds])


def test_a_model_may_train_in_stages(hydra, monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    from rows import stages

    shares = OmegaConf.create({"passage": 0.4, "document": 0.4, "selection": 0.2})
    assert list(stages(shares, 10)) == [("passage", range(4)), ("document", range(4, 8)), ("selection", range(8, 10))]
    assert [list(part) for _, part in stages(shares, 2)] == [[0], [1], [1]]
    assert list(stages(None, 3)) == [(None, range(3))]


@pytest.mark.parametrize("table", ["table1", "table2"])
@pytest.mark.parametrize("size", ["cpu", "gpu"])
def test_every_row_is_something_to_type(hydra, monkeypatch, table, size):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    from results import row_config
    from tables import latest

    config = compose(table, [f"size={size}"])
    seen = []
    for entries in config.table.groups.values():
        for row, entry in entries.items():
            one = row_config(compose("config", latest([*config.size.overrides, *entry.overrides])))
            if "short" in row or row == "firstp":
                assert one["recipe"]["document_length"] == config.size.short
            assert one["recipe"] not in seen, f"{row} is the same as another row"
            seen.append(one["recipe"])
            assert len(entry.get("paper") or config.table.paper) == len(config.table.paper)
    assert len(seen) == {"table1": 25, "table2": 8}[table]
    assert all(one.to in str(config.table.groups) for one in config.table.differences)


def test_the_commands(tales, tmp_path):
    def call(script, *arguments):
        command = [sys.executable, str(EXPERIMENTS / script), *arguments, f"hydra.run.dir={tmp_path / 'out'}"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    done = call("table1.py", *tales, "rows=[bm25]")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "| BM25 | - | - | 1.0000 | 1.0000 |" in done.stdout
    done = call("table2.py", "--help")
    for words in ("rows=[bm25,parade,socialformer-edge] seeds=[0,1,2]", "size: cpu, gpu", "recipe: bigbird, bm25"):
        assert words in done.stdout


def test_a_row_that_is_not_there(tales, hydra, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    with pytest.raises(OptionError, match="table2 has no row 'bm25'; there are: parade, socialformer-edge, "):
        make(tmp_path, "table2", *tales, "rows=[bm25]")
