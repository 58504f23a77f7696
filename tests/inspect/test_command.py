"""``socialgraph inspect``: from the command line to a page, and mistakes in one line."""

from __future__ import annotations

import json
import re
import sys

import pytest
import torch
from tales import random_texts, write_collection

from socialgraph import Ranker
from socialgraph.cli import main
from socialgraph.data import load_folder
from socialgraph.inspect.leave_one_out import scores_without
from socialgraph.nn import PARADE, Socialformer

QUERY = "w7 w30"
#: whose page ``socialgraph inspect`` draws, unless told otherwise
RECIPE = "socialformer-edge"


@pytest.fixture
def world(tiny_bert, tmp_path, monkeypatch):
    """A folder with a small collection, a backbone and a text file; the program runs in it."""
    names = [f"d{n}" for n in range(5)]
    texts = dict(zip(names, random_texts([60] * 5), strict=True))
    write_collection(tmp_path / "collection", texts, {"d1": "w1"}, test=["d1"])
    (tmp_path / "mine.txt").write_text("w1 w2 w3 w7 w2 " * 5)
    monkeypatch.chdir(tmp_path)
    return tiny_bert[0]


def page(path="report.html") -> dict:
    with open(path, encoding="utf-8") as file:
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', file.read())[1])


def run(*arguments: str) -> None:
    main(["inspect", "--query", QUERY, "--collection", "collection", *arguments])


def test_a_document_with_a_model(world, capsys):
    torch.manual_seed(0)
    Socialformer.from_backbone(world).save_pretrained("model")
    run("--document", "d3", "--model", "model", "-k", "3", "--sparsity", "0.8", "--window", "16", "--length", "50")
    assert "report.html (0." in capsys.readouterr().out
    found = page()

    options = ("partition.k=3", "edges.sparsity=0.8")
    ranker = Ranker.from_recipe(RECIPE, *options, backbone=world, window=16, document_length=50)
    texts = load_folder("collection")
    graph = ranker.count(texts).graph(QUERY, texts.documents["d3"]).to("cpu")
    score, without = scores_without(Socialformer.from_pretrained("model").eval(), graph)
    assert found["words"] == ranker.words(graph)
    assert (found["query"], found["document_id"]) == (QUERY, "d3")
    (view,) = found["views"]
    assert view["score"] == pytest.approx(score, abs=1e-4)
    assert [circle["without"] for circle in view["circles"]] == pytest.approx(without.tolist(), abs=1e-4)
    assert sum(not circle["passage"] for circle in view["circles"]) == 3
    for place, circle in enumerate(view["circles"]):
        assert circle["members"] == graph.circle_index[0, graph.circle_index[1] == place].tolist()
    assert set(found["edges"]["shares"]) == set(ranker.parts.edges.patterns)
    assert view["statistics"][0][:2] == ["nodes", "50"]


def test_a_file_and_a_partition_of_ones_own(world, tmp_path, capsys):
    (tmp_path / "inspected_module.py").write_text(
        "from socialgraph.partition import Windows\n\n\n"
        "class Thirds(Windows):\n    def __init__(self, k=16):\n        super().__init__(25 // k + 1)\n"
    )
    mine, before = ("--partition", "inspected_module.Thirds", "-k", "3"), sys.path.copy()
    run("--file", "mine.txt", "--backbone", world, *mine, "--output", "a/b.html")
    found = page("a/b.html")
    assert found["document_id"] == "mine.txt"
    assert found["words"] == ["w1", "w2", "w3", "w7", "w2"] * 5
    assert [len(circle["members"]) for circle in found["views"][0]["circles"] if not circle["passage"]] == [9, 9, 7]
    assert found["views"][0]["score"] is None
    assert str(tmp_path / "a" / "b.html") in capsys.readouterr().out
    assert sys.path == before  # the folder is looked through for this class alone


def test_two_partitions_and_a_pattern_of_ones_own(world, tmp_path):
    (tmp_path / "my_patterns.py").write_text(
        "from socialgraph.edges import Centrality\n\n\n"
        "class Growing(Centrality):\n    def weights(self, graph):\n        return 1.0 + graph.input_ids.double()\n"
    )
    edges = ("--edges", "my_patterns.Growing")
    run("--document", "d1", "--backbone", world, "--partition", "edge,node", "-k", "3", *edges)
    found = page()
    assert [view["name"] for view in found["views"]] == ["edge", "node"]
    assert list(found["edges"]["shares"]) == ["growing"]
    for view in found["views"]:
        names = [circle["name"] for circle in view["circles"] if not circle["passage"]]
        assert len(names) == len(set(names)) == 3
    members = [node for circle in found["views"][1]["circles"] if not circle["passage"] for node in circle["members"]]
    assert len(members) == len(set(members))  # node-level circles share none


def test_the_page_marks_the_evidence_of_a_query_of_the_collection(world, tmp_path):
    run("--document", "d1", "--backbone", world)
    assert page()["evidence"] is None
    folder = tmp_path / "told"
    write_collection(folder, {"d1": "w1 w2 w3 w7 " * 5}, {"d1": "w7 w30"}, test=["d1"])
    # places are in word pieces of MiniLM, in which w2 is two: "w", "##2"
    (folder / "evidence.tsv").write_text("qid\tdoc_id\tstart_tok\tend_tok\nq-d1\td1\t2\t6\n")
    run("--collection", "told", "--document", "d1", "--backbone", world)
    assert page()["evidence"] == [1, 3]
    assert re.fullmatch(r"w2 w3", " ".join(page()["words"][1:3]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--document", "d9"], "collection has no document 'd9'"),
        (["--document", "d1", "--collection", "nowhere"], "nowhere: no such folder"),
        (["--document", "d1", "--partition", "egde"], "no partition is called 'egde'"),
        (["--document", "d1", "--partition", "no_such.Mine"], "--partition no_such.Mine: No module named"),
        (["--document", "d1", "--model", "model", "--model-class", "Nobody"], "socialgraph.nn has no model 'Nobody'"),
        (["--document", "d1", "--model", "model"], "model: not a saved Socialformer"),
        (["--file", "latin1.txt"], "latin1.txt: not UTF-8 text"),
        (["--document", "d1", "--output", "collection"], "collection is a folder: give the path of a file in it"),
        (["--document", "d1", "--partition", "edge,node,metis"], "--partition takes one partition or two different"),
        (["--document", "d1", "--edges", "json.loads"], "loads is no subclass of socialgraph.edges.Pattern or"),
    ],
)
def test_mistakes_take_one_line(world, tmp_path, monkeypatch, arguments, message):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "latin1.txt").write_bytes(b"caf\xe9")
    if "model" in arguments:
        PARADE.from_backbone(world).save_pretrained("model")
    with pytest.raises(SystemExit) as stopped:
        run(*arguments, "--backbone", world)
    text = str(stopped.value)
    assert text.startswith("error: ")
    assert message in text
    assert "\n" not in text
    assert not (tmp_path / "report.html").exists()
