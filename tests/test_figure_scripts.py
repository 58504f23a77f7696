"""experiments/figures.py: a picture and its numbers from one command each."""

import json
import re

import pytest
from commands import call
from lab.results import Results
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

    def draw(figure, *typed):
        call("figures", figure.replace("figure", "figure="), *typed)
        return capsys.readouterr().out

    return draw


def drawn(folder, name):
    """The numbers of a picture that is there."""
    assert (folder / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    return json.loads((folder / f"{name}.json").read_text())


def test_figure4(tales, tmp_path, run):
    run("figure4", *tales, "~edges.patterns.dynamic_centrality", "dpi=40")
    numbers = drawn(tmp_path, "figure4")
    assert numbers["word_pieces"] == 40
    assert numbers["document"] in ("heron", "badger")  # the otter's tale is too short
    assert numbers["query_id"] == f"q-{numbers['document']}"
    assert "sparsity=0.9," in numbers["edges"]
    run("figure4", *tales, "~edges.patterns.dynamic_centrality", "query='a $fish'", "document=otter")
    assert drawn(tmp_path, "figure4")["document"] == "otter"


def test_figure5(tales, tmp_path, run):
    typed = [*tales, "~edges.patterns.dynamic_centrality", "partition.k=3", "partition.max_size=9"]
    printed = run("figure5", *typed, "sparsity=[0.9,0.5]", "dpi=40", "output=sizes.png")
    numbers = drawn(tmp_path, "sizes")
    assert set(numbers["documents"]) == {"heron", "badger"}
    assert numbers["partitions"]["node-level"] == "NodeCircles(k=3, max_size=9, keep='first')"
    for name in ("edge-level", "node-level"):
        assert set(numbers["medians"][name]) == {"0.9", "0.5"}
        for sizes in numbers["sizes"][name].values():
            assert len(sizes) == 2
            assert all(2 <= size <= 9 for found in sizes for size in found)
    assert numbers["medians"]["edge-level"]["0.5"] == [9, 9, 9]
    assert re.search(r"0\.5 +9 +9 +9\n", printed)


def test_figure6(tales, tmp_path, run, capsys):
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
        Results(folder).write(f"{row}.{seed}", results, value)

    for row in ranks:
        write(row, 0, ranks[row])
    write("ours", 1, (2, 2, 2))
    typed = [*tales, f"results={tmp_path / 'results'}", "bounds=[64]"]
    printed = run("figure6", *typed, "rows=[ours,theirs]")
    short, long = drawn(tmp_path, "figure6")["buckets"]
    assert short["queries"] == ["q-otter"]
    assert short["means"] == pytest.approx({"ours $": (1 + 1 / 2) / 2, "theirs $": 1 / 3})
    assert sorted(long["queries"]) == ["q-badger", "q-heron"]
    assert long["errors"]["ours $"] == pytest.approx(1 / 8)  # of 3/4 and 1/2
    assert re.search(r"under 64 +0\.750 +0\.333 +1\n", printed)
    assert long["means"] == pytest.approx({"ours $": (3 / 4 + 1 / 2) / 2, "theirs $": 1 / 3})

    with pytest.raises(SystemExit):
        run("figure6", *typed, "rows=[strange]")
    assert re.search(r"error: there is no finished row 'strange' in .*; there is: ours", capsys.readouterr().err)
    write("old", 0, (1, 1, 1), "another")
    with pytest.raises(SystemExit):
        run("figure6", *typed, "rows=[old]")
    assert re.search(
        r"old.0.run.gz is about another, and the collection is tales: run the table", capsys.readouterr().err
    )
    write_run(folder / "theirs.0.run.gz", {}, "x")
    with pytest.raises(SystemExit):
        run("figure6", *typed, "rows=[theirs]")
    assert re.search(r"theirs.0.run.gz is damaged or of another run", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("figure", "typed", "message"),
    [
        ("figure4", ["query=only"], "query and document come together: give both or none"),
        ("figure5", ["document_length=4000"], "no relevant document of tales, split test, has 4000"),
        ("figure5", ["sparsity=[1.5]"], "sparsity must lie between 0 and 1"),
        ("figure4", ["output=x.gif"], "output must end in .png, .svg or .pdf, got x.gif"),
        ("figure7", [], "figure must be 4, 5 or 6, got 7"),
    ],
)
def test_refusals_take_one_line(tales, run, figure, typed, message, capsys):
    with pytest.raises(SystemExit):
        run(figure, *tales, "~edges.patterns.dynamic_centrality", *typed)
    assert message in capsys.readouterr().err
