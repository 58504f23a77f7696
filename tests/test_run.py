"""experiments/run.py as a user calls it."""

import csv
import json
import shutil
import sys
import zipfile

import children
import pytest
import torch
from commands import EXPERIMENTS, WORDS, call, times, typed_for_tales, write_tales
from tales import write_collection
from workshop import MY_MODULE

from socialgraph import Ranker
from socialgraph.data import read_run
from socialgraph.errors import CheckpointError
from socialgraph.nn import Socialformer


@pytest.fixture
def tales(tmp_path, monkeypatch):
    """Return what a user types: a folder of six documents; the working folder is beside it."""
    monkeypatch.chdir(tmp_path)
    write_tales(tmp_path / "tales")
    return typed_for_tales(tmp_path / "tales")


def test_ms_marco_formats_and_a_partition_of_ones_own(shared, tmp_path):
    """The real ir_datasets on the miniature msmarco-document, MiniLM, all four patterns, a class of the user's."""
    shutil.unpack_archive(shared / "data" / "irds_home_mini.tar.gz", tmp_path)
    (tmp_path / "my_module.py").write_text(MY_MODULE)
    done = children.run(
        EXPERIMENTS / "run.py", "hydra.run.dir=out", "data=irds",
        "data.id=msmarco-document/trec-dl-2019/judged", "data.train=msmarco-document/train",
        "data.dev=msmarco-document/dev", "data.queries.dev=1", "data.queries.test=2", "data.depth=4",
        "trainer.groups=1", "trainer.negatives=1", "document_length=120", "trainer.bf16=false",
        "partition=my_module.Pairs",
        "rows=[bm25,sentence-maxp,'keyb-maxp recipe.document_length=200 recipe.training=null',parade-max,socialformer]",
        cwd=tmp_path, IR_DATASETS_HOME=str(tmp_path / "irds_home_mini"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    out, unused = tmp_path / "out", "my_module.Pairs takes no max_size, keep: left out"
    assert (done.stdout + done.stderr).count(unused) == 1  # two runs build a model with it, and it is said once
    text = (out / "table.md").read_text()
    assert rows_of(text) == ["BM25", "Sentence-MaxP", "KeyB-MaxP", "PARADE-max", "Socialformer-pairs"]
    header = [cell.strip() for cell in text.splitlines()[0].split("|")[3:10]]
    assert header == ["RR@10 untrained", "+ BM25", "weight", "RR@10 trained", "+ BM25", "weight", "s / document"]
    lines = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("|")]
    cells = {line[1]: line for line in lines}
    assert [cells[name][6:9] for name in ("Sentence-MaxP", "KeyB-MaxP")] == [["-", "-", "-"]] * 2
    assert [cells[name][2] for name in ("BM25", "Sentence-MaxP", "KeyB-MaxP")] == ["-", "120", "200"]
    rankings = {path.name: read_run(path) for path in (out / "runs").glob("*.run.gz")}
    assert set(rankings) == {
        f"{row}.0.run.gz" for row in (
            "bm25-untrained", "sentence-maxp-untrained", "keyb-maxp-untrained", "parade-max-untrained", "parade-max",
            "socialformer-untrained", "socialformer",
        )
    }  # fmt: skip
    mine, first = rankings["socialformer.0.run.gz"], rankings["bm25-untrained.0.run.gz"]
    assert {q: set(d) for q, d in mine.items()} == {q: set(d) for q, d in first.items()}
    assert all(len(set(scores.values())) > 1 for scores in mine.values())
    for name in ("config.yaml", "table.csv", "graph.png", "run.log"):
        assert (out / name).stat().st_size > 0, name
    model = Socialformer.from_pretrained(out / "runs" / "models" / "socialformer.0")
    assert not torch.equal(model.score.weight, Socialformer.from_backbone("minilm").score.weight)


def rows_of(text):
    """The first column of a table in Markdown."""
    lines = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert lines[0] == "Model"
    return lines[1:]


MY_PARTS = """
import torch
from socialgraph.partition import EdgeCircles
from lab.report import Column

CALLS = []


class Lightest(EdgeCircles):
    def select(self, leader, friend, weight, tie):
        return super().select(leader, friend, -weight, tie)


class Middle(torch.nn.Module):
    def forward(self, x, index, ptr, dim_size):
        return torch.zeros(dim_size, x.size(-1)).index_reduce(0, index, x, "mean", include_self=False)


def loss(scores, group, relevant):
    CALLS.append(len(scores))
    return (scores - relevant.to(scores.dtype)).pow(2).mean()


def loud(of):
    return [Column("Loud", [line.label.upper() for line in of.lines])]
"""


def test_a_choice_of_friends_a_readout_a_loss_and_a_column_are_one_file(tales, tmp_path, monkeypatch):
    """On a folder without runs, by query likelihood, with checkpointing and nothing of dev."""
    texts, queries = ({word: text.format(word) for word in WORDS} for text in ("{0} w20 w41 " * 10, "{0} w20"))
    write_collection(tmp_path / "tales", texts, queries, train=WORDS[:2], dev=WORDS[2:4], test=WORDS[4:])
    (tmp_path / "my_parts.py").write_text(MY_PARTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_parts", raising=False)
    call(
        "run", *tales, "rows=[ql,maxp,socialformer]", "document_length=64", "partition=my_parts.Lightest",
        "partition.k=2", "partition.max_size=4", "model.readout={_target_: my_parts.Middle}",
        "training.loss=my_parts.loss",
        "report.columns=[model,trained,trained_mixed,my_parts.loud]", "hydra.run.dir=out", "data.queries.dev=0",
        "data.retriever._target_=socialgraph.ranking.QueryLikelihood", "+trainer.arguments.gradient_checkpointing=true",
    )  # fmt: skip
    text = (tmp_path / "out" / "table.md").read_text()
    assert rows_of(text) == ["QL", "BERT-MaxP", "Socialformer-lightest"]
    assert " SOCIALFORMER-LIGHTEST |" in text
    assert "weight" not in text.splitlines()[0]  # none was chosen
    value = json.loads((tmp_path / "out" / "runs" / "socialformer.0.json").read_text())
    assert set(value["interpolated"]["measures"]["test"]["RR@10"]) == {"q-w4", "q-w5"}
    assert value["interpolated"]["weight"] == 0.4
    first = json.loads((tmp_path / "out" / "runs" / "ql-untrained.0.json").read_text())
    assert first["measures"]["RR@10"] == {"q-w4": 1.0, "q-w5": 1.0}
    mine = sys.modules["my_parts"]
    assert mine.CALLS == [2, 2]  # a group of two for each row
    saved = tmp_path / "out" / "runs" / "models" / "socialformer.0"
    with pytest.raises(CheckpointError, match=r"pass it, classes=\[(Lightest|Middle)\]"):
        Ranker.from_pretrained(saved)
    ranker = Ranker.from_pretrained(saved, classes=[mine.Lightest, mine.Middle])
    assert (type(ranker.parts.circles), ranker.parts.circles.max_size) == (mine.Lightest, 4)
    assert type(ranker.model.readout.aggregation) is mine.Middle


def test_a_folder_with_test_alone_is_ranked_untrained(tales, tmp_path, capsys):
    for split in ("train", "dev"):
        (tmp_path / "tales" / f"queries.{split}.tsv").unlink()
        (tmp_path / "tales" / f"qrels.{split}.txt").unlink()
    typed = [*tales, "rows=[bm25,maxp]", "document_length=64", "data.queries.dev=0", "hydra.run.dir=out"]
    with pytest.raises(SystemExit):
        call("run", *typed, "untrained=false")
    assert "error: collection tales has no split 'train'; there are: test\n" in capsys.readouterr().err
    assert not list((tmp_path / "out").glob("runs/*.json"))  # it is said before anything is ranked
    call("run", *typed, "trainer.groups=0")
    assert rows_of((tmp_path / "out" / "table.md").read_text()) == ["BM25", "BERT-MaxP"]
    assert capsys.readouterr().out.count("| Model ") == 1  # nothing is trained, so there is no second table


def changed(before, after):
    """Return the rows whose files were written since."""
    return {name.split(".")[0] for name in after if before.get(name) != after[name]}


def test_rows_are_run_once_and_again_if_something_changed(tales, tmp_path, capsys):
    size = ["size.short=32", "size.long=48", "results=results"]
    typed = ["table=table1", *tales, *size, "rows=[bm25,ql,parade,socialformer-node]"]
    folder = tmp_path / "results" / "tales" / "test"
    call("run", *typed)
    rows, first = {"bm25", "ql", "parade", "socialformer-node"}, times(folder)
    assert set(first) == {f"{row}.0.{end}" for row in rows for end in ("json", "run.gz")}
    row = json.loads((folder / "parade.0.json").read_text())
    assert row["config"]["recipe"]["document_length"] == 48
    assert row["parameters"] > 1e4
    assert row["seconds_per_document"] > 0
    assert any("train_loss" in line for line in row["training"])
    check_table(folder, row)

    # nothing again, whatever is told of the training
    call("run", *typed, "+trainer.arguments.report_to=none", "+trainer.arguments.run_name=another")
    assert times(folder) == first

    # a changed option runs what depends on it, a damaged run is noticed, and nothing else runs again
    run = folder / "ql.0.run.gz"
    run.write_bytes(run.read_bytes()[:-9])
    half = folder / "parade.0.json"
    half.write_text(half.read_text()[:100])
    capsys.readouterr()
    call("run", *typed, "partition.max_size=16")
    assert changed(first, times(folder)) == {"ql", "socialformer-node", "parade"}
    printed = capsys.readouterr().out
    assert "socialformer-node.0: changed: recipe.circles.max_size was 128, is 16; again" in printed
    assert "ql.0.run.gz is damaged or of another run; again" in printed
    again = json.loads(half.read_text())
    assert (again["measures"], again["sha256"]) == (row["measures"], row["sha256"])  # the same seed, the same row

    # the other table takes PARADE from here, and a folder can be kept as one file
    second = times(folder)
    call("run", "table=table2", *tales, *size[1:], "rows=[parade]")
    assert times(folder) == second
    assert "| PARADE " in (folder / "table2.md").read_text()
    call("run", *typed, "partition.max_size=16", "pack=true")
    assert not times(folder)
    with zipfile.ZipFile(folder / "runs.zip") as archive:
        assert set(archive.namelist()) == set(first)
    call("run", *typed, "partition.max_size=16")
    assert not times(folder)  # nothing again


def check_table(folder, parade):
    """The table of the rows above, in three formats."""
    with open(folder / "table1.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["Row"] for line in lines] == ["bm25", "ql", "parade", "socialformer-node"]
    bm25, ql, mine, social = lines
    mean = sum(parade["measures"]["RR@100"].values()) / 3
    assert float(mine["RR@100"]) == pytest.approx(mean)
    assert float(bm25["Δ RR@100 vs PARADE %"]) == pytest.approx(100 * (float(bm25["RR@100"]) - mean) / mean)
    assert (bm25["Doc. length"], mine["Doc. length"], mine["Window"], ql["s / document"]) == ("", "48", "32", "")
    assert social["paper: nDCG@10"] == "0.6534"
    assert 0 <= float(social["p of nDCG@10"]) <= 1
    text = [line for line in (folder / "table1.md").read_text().splitlines() if line.startswith("|")]
    assert {line.count("|") for line in text} == {17}
    assert len(text) == 2 + 3 + 4  # header, groups, rows
    tex = (folder / "table1.tex").read_text()
    assert r"\textit{Passage-based models}" in tex
    assert "%" not in tex.replace(r"\%", "").split("\n", 1)[1]


def test_one_row_a_job(tales, tmp_path):
    """Jobs of one command share a folder of results; the command without jobs makes the table of all."""
    typed = ["table=table1", *tales, "size.long=48", "results=results"]
    call("run", "-m", *typed, "rows=[bm25],[ql]")
    folder = tmp_path / "results" / "tales" / "test"
    before = times(folder)
    assert {name.split(".")[0] for name in before} == {"bm25", "ql"}
    call("run", *typed, "rows=[bm25,ql,parade]")
    assert changed(before, times(folder)) == {"parade"}
    labels = [one for one in rows_of((folder / "table1.md").read_text()) if "**" not in one]
    assert labels == ["BM25", "QL", "PARADE"]


def test_each_call_has_a_folder_of_its_own(tales, tmp_path):
    for _ in range(2):
        call("run", *tales[:3], "rows=[bm25]")
    assert len(list((tmp_path / "outputs").glob("*/*/table.md"))) == 2
