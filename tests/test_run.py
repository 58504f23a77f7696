"""experiments/run.py as a user calls it."""

import json
import shutil
import sys

import children
import pytest
import torch
from commands import EXPERIMENTS, WORDS, call, typed_for_tales, write_tales
from tales import write_collection
from workshop import MY_MODULE

from socialgraph import Ranker
from socialgraph.data import read_run
from socialgraph.errors import CheckpointError
from socialgraph.nn import Socialformer


def test_ms_marco_formats_and_a_partition_of_ones_own(shared, tmp_path, monkeypatch):
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
    assert (done.stdout + done.stderr).count(unused) == 1  # two rows build a model with it, and it is said once
    assert (out / "run.log").read_text().count(unused) == 1
    table = (out / "table.md").read_text()
    assert rows_of(table) == ["BM25", "Sentence-MaxP", "KeyB-MaxP", "PARADE-max", "Socialformer-pairs"]
    header = [cell.strip() for cell in table.splitlines()[0].split("|")[3:10]]
    assert header == ["RR@10 untrained", "+ BM25", "weight", "RR@10 trained", "+ BM25", "weight", "s / document"]
    # the table stands on the screen twice, first without what is trained; the sentence encoder is never trained
    assert done.stdout.count("| Model | Doc. length | RR@10 untrained | + BM25 | weight | s / document |") == 1
    assert done.stdout.rstrip().find(table.splitlines()[-1]) > 0
    lines = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("|")]
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
    assert len(mine) == 2
    assert {q: set(d) for q, d in mine.items()} == {q: set(d) for q, d in first.items()}
    assert all(len(set(scores.values())) > 1 for scores in mine.values())
    for name in ("config.yaml", "table.csv", "graph.png", "run.log"):
        assert (out / name).stat().st_size > 0, name
    assert "DEBUG" not in (out / "run.log").read_text()
    saved = out / "runs" / "models" / "socialformer.0"
    model = Socialformer.from_pretrained(saved)
    with pytest.raises(CheckpointError, match=r"pass it, classes=\[Pairs\]"):
        Ranker.from_pretrained(saved)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_module", raising=False)  # another test's module of that name
    ranker = Ranker.from_pretrained(saved, classes=["my_module.Pairs"])
    assert len(ranker.rank("how do rivers flow", ["A river flows to the sea.", "Bread is baked."])) == 2
    assert "1 group of a relevant document and 1 other," in (saved / "README.md").read_text()
    start = Socialformer.from_backbone("minilm")
    assert not torch.equal(model.score.weight, start.score.weight)


def rows_of(table):
    """The first column of a table in Markdown."""
    lines = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert lines[0] == "Model"
    return lines[1:]


def test_a_folder_of_ones_own_with_other_pieces(tmp_path):
    """data=folder without runs, query likelihood, node-level circles, random edges, checkpointing, nothing of dev."""
    folder = tmp_path / "out"
    write_tales(tmp_path / "tales")
    texts, queries = ({word: text.format(word) for word in WORDS} for text in ("{0} w20 w41 " * 10, "{0} w20"))
    write_collection(tmp_path / "tales", texts, queries, train=WORDS[:2], dev=WORDS[2:4], test=WORDS[4:])
    call(
        "run", *typed_for_tales(tmp_path / "tales"), "data.retriever._target_=socialgraph.ranking.QueryLikelihood",
        "partition=node", "edges=random", "trainer.groups=2", "rows=[ql,parade-max,socialformer]", "document_length=64",
        "+trainer.arguments.gradient_checkpointing=true", "model.leader=cls", "data.queries.dev=0",
        f"hydra.runtime.output_dir={folder}",
    )  # fmt: skip
    assert rows_of((folder / "table.md").read_text()) == ["QL", "PARADE-max", "Socialformer-node"]
    value = json.loads((folder / "runs" / "socialformer.0.json").read_text())
    assert set(value["interpolated"]["measures"]["test"]["RR@10"]) == {"q-w4", "q-w5"}
    assert value["interpolated"]["weight"] == 0.5
    assert "| + BM25 | RR@10 trained | + BM25 |" in (folder / "table.md").read_text()  # no weight was chosen
    first = json.loads((folder / "runs" / "ql-untrained.0.json").read_text())
    assert first["measures"]["RR@10"] == {"q-w4": 1.0, "q-w5": 1.0}


def test_a_folder_with_test_alone_is_ranked_untrained(tmp_path, capsys):
    tales, folder = tmp_path / "tales", tmp_path / "out"
    write_tales(tales)
    for split in ("train", "dev"):
        (tales / f"queries.{split}.tsv").unlink()
        (tales / f"qrels.{split}.txt").unlink()
    typed = ["run", *typed_for_tales(tales), "rows=[bm25,maxp]", "document_length=64", "data.queries.dev=0",
             f"hydra.runtime.output_dir={folder}"]  # fmt: skip
    with pytest.raises(SystemExit, match=r"^error: collection tales has no split 'train'; there are: test$"):
        call(*typed)
    assert not list(folder.glob("runs/*.json"))  # it is said before anything is ranked
    capsys.readouterr()
    call(*typed, "trainer.groups=0")
    assert rows_of((folder / "table.md").read_text()) == ["BM25", "BERT-MaxP"]
    assert capsys.readouterr().out.count("| Model |") == 1  # nothing is trained, so there is no second table
