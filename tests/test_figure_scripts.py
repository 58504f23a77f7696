"""experiments/figures.py: a picture and its numbers from one command each."""

import importlib
import json
import sys

import pytest
from lab.store import Store
from tales import write_collection

from socialgraph.data import load_folder
from socialgraph.data.trec import write_run

ANIMALS = ["otter", "heron", "badger"]


@pytest.fixture
def tales(tmp_path):
    """Return what a user types: a folder of three documents, 40 word pieces of which are read."""
    folder = tmp_path / "tales"
    texts = {
        animal: f"The {animal} went to the river with ${place} and saw a fish swim. " * 8 ** (place > 0)
        for place, animal in enumerate(ANIMALS)
    }
    queries = {animal: f"how did the {animal} $find a river" for animal in ANIMALS}
    write_collection(folder, texts, queries, train=ANIMALS, dev=ANIMALS, test=ANIMALS)
    return ["data=folder", f"data.path={folder}", "data.label=tales", "document_length=40"]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return what runs a script as if it was typed, and returns what it prints."""
    monkeypatch.chdir(tmp_path)

    def call(figure, *typed):
        monkeypatch.setattr(sys, "argv", ["figures.py", figure.removeprefix("figure"), *typed])
        importlib.import_module("figures").main()
        return capsys.readouterr().out

    return call


def drawn(folder, name):
    """The numbers of a picture that is there."""
    assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    return json.loads((folder / f"{name}.json").read_text())


def test_figure4(tales, tmp_path, run):
    run("figure4", *tales, "~edges.patterns.dynamic_centrality", "--dpi", "40")
    numbers = drawn(tmp_path, "figure4")
    assert numbers["word_pieces"] == 40
    assert numbers["document"] in ("heron", "badger")  # the otter's tale is too short
    assert numbers["query_id"] == f"q-{numbers['document']}"
    assert "sparsity=0.9)" in numbers["edges"]
    run("figure4", *tales, "~edges.patterns.dynamic_centrality", "--query", "a $fish", "--document", "otter")
    assert drawn(tmp_path, "figure4")["document"] == "otter"


def test_figure5(tales, tmp_path, run):
    typed = [*tales, "~edges.patterns.dynamic_centrality", "partition.k=3", "partition.max_size=9"]
    printed = run("figure5", *typed, "--sparsity", "0.9", "0.5", "--dpi", "40", "--output", "sizes.png")
    numbers = drawn(tmp_path, "sizes")
    assert set(numbers["documents"]) == {"heron", "badger"}
    assert numbers["partitions"]["node-level"] == "NodeCircles(k=3, max_size=9, keep='first')"
    for name in ("edge-level", "node-level"):
        assert set(numbers["medians"][name]) == {"0.9", "0.5"}
        for sizes in numbers["sizes"][name].values():
            assert len(sizes) == 2
            assert all(2 <= size <= 9 for found in sizes for size in found)
    assert numbers["medians"]["edge-level"]["0.5"] == [9, 9, 9]
    assert "edge-level     0.5: 9" in printed


def test_figure6(tales, tmp_path, run):
    folder = tmp_path / "results" / "tales" / "test"
    folder.mkdir(parents=True)
    for name, line in (("queries.test.tsv", "q-mole\tmole\n"), ("qrels.test.txt", "q-mole 0 otter 0\n")):
        with open(tmp_path / "tales" / name, "a") as file:
            file.write(line)  # a question that no document answers
    collection = load_folder(tmp_path / "tales").name
    ranks = {"ours": (1, 1, 2), "theirs": (3, 3, 3)}  # where each query finds its document

    def write(row, seed, ranks, name=collection):
        results = {}
        for query, rank in zip(ANIMALS, ranks, strict=True):
            others = iter(animal for animal in ANIMALS if animal != query)
            results[f"q-{query}"] = {query if place == rank else next(others): 1.0 / place for place in (1, 2, 3)}
        results["q-mole"] = {"otter": 1.0}
        measures = {"RR@10": {query: 0.0 for query in results}}
        value = {"name": f"{row} $", "collection": name, "measures": measures, "config": {}}
        Store(folder).write(f"{row}.{seed}", results, value)

    for row in ranks:
        write(row, 0, ranks[row])
    write("ours", 1, (2, 2, 2))
    typed = [*tales, "--results", str(tmp_path / "results"), "--measure", "RR@100", "--bounds", "64"]
    run("figure6", "data.splits.test=[test]", *typed, "--rows", "ours,theirs")
    short, long = drawn(tmp_path, "figure6")["buckets"]
    assert short["queries"] == ["q-otter"]
    assert short["means"] == pytest.approx({"ours $": (1 + 1 / 2) / 2, "theirs $": 1 / 3})
    assert sorted(long["queries"]) == ["q-badger", "q-heron"]
    assert long["means"] == pytest.approx({"ours $": (3 / 4 + 1 / 2) / 2, "theirs $": 1 / 3})

    with pytest.raises(SystemExit, match=r"error: there is no finished row 'strange' in .*; there is: ours, theirs"):
        run("figure6", *typed, "--rows", "strange")
    write("old", 0, (1, 1, 1), "another")
    with pytest.raises(SystemExit, match=r"old.0.run.gz is about another, and the collection is tales: run the table"):
        run("figure6", *typed, "--rows", "old")
    write_run(folder / "theirs.0.run.gz", {}, "x")
    with pytest.raises(SystemExit, match=r"theirs.0.run.gz is damaged or of another run: run the table again"):
        run("figure6", *typed, "--rows", "theirs")


def test_refusals_take_one_line(tales, tmp_path, run):
    with pytest.raises(SystemExit, match=r"^error: --query and --document come together: give both or none$"):
        run("figure4", "--query", "only")
    with pytest.raises(SystemExit, match=r"^error: no relevant document of tales, split test, has 4000"):
        run("figure5", *tales, "document_length=4000", "~edges.patterns.dynamic_centrality")
    with pytest.raises(SystemExit, match=r"^error: sparsity must lie between 0 and 1"):
        run("figure5", *tales, "~edges.patterns.dynamic_centrality", "--sparsity", "1.5")
    with pytest.raises(SystemExit, match=r"^error: --output must end in .png, .svg or .pdf, got x.gif"):
        run("figure4", "document_length=-1", "--output", "x.gif")  # which only composing would find
    with pytest.raises(SystemExit, match=r"^error: data.splits.test must be one split here, got dev, test$"):
        run("figure6", *tales, "data.splits.test=[dev,test]")
    with pytest.raises(SystemExit, match=r"^error: no option is called rows; there are: measures, (?!.*\brows\b)"):
        run("figure6", "rows=ours")  # an option of run.py; figures.py has --rows


def test_edges_without_patterns_are_refused(tales, run):
    patterns = [f"~edges.{option}" for option in ("patterns", "weights", "sparsity")]
    with pytest.raises(SystemExit, match=r"^error: edges: .* gives a BigBirdEdges, and no SocialEdges"):
        run("figure5", *tales, "edges._target_=socialgraph.edges.BigBirdEdges", *patterns)
