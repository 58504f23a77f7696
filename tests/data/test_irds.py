"""The real ir_datasets, on collections that lie beside the project.

ir_datasets reads IR_DATASETS_HOME when it is imported, so each home gets a process of its own, which prints
what it found as JSON.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from socialgraph.data import irds
from socialgraph.data.collection import Document
from socialgraph.errors import InputError

ROOT = Path(__file__).parents[2]

PRELUDE = """
import json, multiprocessing, pickle, sys, warnings
from socialgraph.data.irds import load_irds
from socialgraph.errors import InputError

def error(*arguments, **options):
    try:
        load_irds(*arguments, **options)
    except InputError as caught:
        return str(caught)

def sizes(collection):
    return {name: [len(split.queries), sum(map(len, split.qrels.values()))]
            for name, split in collection.splits.items()}

found = {}
"""


def ask(home, script):
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script + "\nprint('JSON' + json.dumps(found))"],
        env=os.environ | {"IR_DATASETS_HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.split("JSON", 1)[1].splitlines()[0])


def unpacked(shared, name, folder):
    shutil.unpack_archive(shared / "data" / f"{name}.tar.gz", folder)
    return folder / name


@pytest.fixture(scope="module")
def whole(shared, tmp_path_factory):
    """Cranfield and vaswani whole; queries and judgements of msmarco-document."""
    return ask(
        unpacked(shared, "irds_home", tmp_path_factory.mktemp("irds")),
        """
for name in ("cranfield", "vaswani"):
    collection = load_irds(name)
    seen = list(collection.documents.values())
    looked_up = {one.doc_id: collection.documents[one.doc_id] for one in seen[::100]}
    found[name] = {
        "sizes": sizes(collection), "again": sizes(load_irds(name)) == sizes(collection),
        "whole": sizes(load_irds(name, shares=None)), "documents": len(collection.documents),
        "seen": len(seen), "same": all(looked_up[one.doc_id] == one for one in seen[::100]),
        "first": [seen[0].doc_id, seen[0].title, seen[0].text], "unknown": "nope" in collection.documents,
        "candidates": [split.has_candidates for split in collection.splits.values()],
        "overlap": len(set(collection["train"].queries) & set(collection["test"].queries)),
    }
seventh = collection.documents["7"].text
with multiprocessing.get_context("fork").Pool(1) as pool:
    found["forked"] = pool.apply(collection.documents.__getitem__, ("7",)).text == seventh
found["pickled"] = pickle.loads(pickle.dumps(collection)).documents["7"].text == seventh
found["msmarco"] = sizes(load_irds("msmarco-document/trec-dl-2019/judged", dev="msmarco-document/dev"))
found["all"] = sizes(load_irds("msmarco-document/trec-dl-2019", shares=None))
found["split"] = sizes(load_irds("msmarco-document/trec-dl-2019"))
found["errors"] = [error("msmarco-document"), error("cranfield", dev="vaswani")]
""",
    )


@pytest.fixture(scope="module")
def mini(shared, tmp_path_factory):
    """40 tales as msmarco-document, with documents and scoreddocs."""
    home = unpacked(shared, "irds_home_mini", tmp_path_factory.mktemp("irds"))
    found = ask(
        home,
        """
collection = load_irds(
    "msmarco-document/trec-dl-2019/judged", dev="msmarco-document/dev", train="msmarco-document/train")
found["sizes"] = sizes(collection)
found["lazy"] = "not read yet" in repr(collection)
document = collection.documents["D1"]
found["document"] = [document.title, document.text[:20]]
found["documents"] = [len(collection.documents), len(list(collection.documents))]
query = next(iter(collection["test"].candidates))
found["candidates"] = [query, list(collection["test"].candidates[query].items())[:2]]
found["depths"] = sorted({len(scores) for scores in collection["test"].candidates.values()})
alone = load_irds("msmarco-document/trec-dl-2019/judged")
held_out = alone.held_out_documents()
found["leak"] = sum(one in held_out for scores in alone["train"].candidates.values() for one in scores)
found["kept"] = sum(one in held_out for scores in alone["test"].candidates.values() for one in scores) > 0
found["alone"] = sizes(alone)
""",
    )
    (home / "msmarco-document" / "dev" / "qrels.gz").write_bytes(b"damaged")
    found["damaged"] = ask(home, "found['error'] = error('msmarco-document/dev')")["error"]
    return found


@pytest.mark.parametrize(
    ("name", "documents", "queries", "judgements", "title", "text"),
    [("cranfield", 1400, 225, 1837, "experimental", "experimental"), ("vaswani", 11429, 93, 2083, "", "compact mem")],
)
def test_a_whole_collection_is_split_by_hash(whole, name, documents, queries, judgements, title, text):
    got = whole[name]
    assert got["documents"] == got["seen"] == documents
    assert got["whole"] == {"test": [queries, judgements]}
    assert list(got["sizes"]) == ["train", "dev", "test"]
    assert [sum(column) for column in zip(*got["sizes"].values(), strict=True)] == [queries, judgements]
    assert min(size for size, _ in got["sizes"].values()) >= 10
    assert got["again"]
    assert got["same"]
    assert not got["unknown"]
    assert (got["overlap"], got["candidates"]) == (0, [False, False, False])
    assert got["first"][0] == "1"
    assert got["first"][1][:12] == title
    assert got["first"][2].startswith(text)


def test_workers_read_documents(whole):
    assert whole["forked"]
    assert whole["pickled"]


def test_given_ids_are_the_splits_and_a_hash_split_has_judged_queries_alone(whole):
    assert whole["msmarco"] == {"dev": [5193, 5193], "test": [43, 16258]}
    assert whole["all"] == {"test": [200, 16258]}
    assert sum(queries for queries, _ in whole["split"].values()) == 43


def test_wrong_ids_are_named(whole):
    no_queries, two_corpora = whole["errors"]
    assert "'msmarco-document' has no queries, no qrels; with judgements there are msmarco-" in no_queries
    assert "share one corpus" in two_corpora
    with pytest.raises(InputError, match=r"^ir_datasets knows no dataset 'cranfeld'; near it: cranfield$"):
        irds.load_irds("cranfeld")


def test_msmarco_document_end_to_end(mini):
    assert mini["sizes"] == {"train": [104, 104], "dev": [16, 16], "test": [40, 40]}
    assert mini["lazy"]
    assert mini["document"] == ["a legend of confucius", "When Confucius came "]
    assert mini["documents"] == [40, 40]
    assert mini["candidates"] == ["121", [["D3", 6.5592], ["D38", 0.9768]]]
    assert mini["depths"] == [40]
    # the train candidates of a hash split hold nothing from dev and test
    assert sum(queries for queries, _ in mini["alone"].values()) == 40
    assert mini["leak"] == 0
    assert mini["kept"]


def test_a_file_that_cannot_be_read_is_one_error(mini):
    assert mini["damaged"].startswith("the judgements of msmarco-document/dev cannot be read")


def test_documents_that_break_off_are_one_error_and_their_readers_errors_are_their_own(monkeypatch):
    def records():
        yield SimpleNamespace(doc_id="d", text="one")
        raise OSError("cut short")

    monkeypatch.setattr(irds, "_dataset", lambda _: SimpleNamespace(docs_iter=records))
    read = []
    with pytest.raises(InputError, match=r"the documents of any cannot be read .*cut short"):
        read.extend(irds.IrdsDocuments("any").stream())
    assert read == [Document("d", "one")]
    with pytest.raises(ValueError, match=r"^invalid literal"):
        [int(document.text) for document in irds.IrdsDocuments("any").stream()]


def library_of(monkeypatch, **rows):
    """Let the library have these rows for any id."""
    things = {name: [SimpleNamespace(**one) for one in some] for name, some in rows.items()}
    given = {f"{name}_iter": lambda some=some: iter(some) for name, some in things.items()}
    monkeypatch.setattr(irds, "_dataset", lambda _: SimpleNamespace(**given))


def rows(names, *values):
    return [dict(zip(names, one, strict=False)) for one in values]


def test_scoreddocs_without_meaning_keep_their_order(monkeypatch):
    scored = rows(
        ("query_id", "doc_id", "score"), ("q1", "b", 0.0), ("q1", "a", 0.0), ("q1", "c", 0.0), ("q2", "x", 3.0),
        ("q2", "y", 5.0), ("q3", "n"), ("q3", "m"), ("q4", "only", 0.0), ("other", "a", 1.0),
    )  # fmt: skip
    library_of(monkeypatch, scoreddocs=scored)
    run = irds._candidates("any", dict.fromkeys(["q2", "q1", "q3", "q4", "q5"], "text"))
    assert list(run.items()) == [
        ("q2", {"x": 3.0, "y": 5.0}),
        ("q1", {"b": 3.0, "a": 2.0, "c": 1.0}),
        ("q3", {"n": 2.0, "m": 1.0}),
        ("q4", {"only": 0.0}),
    ]


def test_fields_of_other_collections():
    def made(**fields):
        return irds.as_document(SimpleNamespace(doc_id="d", default_text=lambda: "all of it", **fields))

    assert made(headline="h", body="b") == Document("d", "b", "h")
    assert made(title="t", abstract="a") == Document("d", "a", "t")
    assert made(title="t", body=b"<html>") == Document("d", "all of it")
    assert made(title="t", abstract="a", body=(("h", "section"),)) == Document("d", "all of it")  # cord19/fulltext
    assert made(title="t", abstract="a", body="b") == Document("d", "all of it")  # pmc: neither is left out
    assert made(title="t", abstract=["a"]) == Document("d", "all of it")
    assert made(title="  ", text="x") == Document("d", "x")


def test_empty_queries_and_second_judgements_are_told_of(monkeypatch):
    queries = [{"query_id": "q1", "text": " "}, {"query_id": "q2", "default_text": lambda: "two"}]
    judged = (("q", "a", 1), ("q", "a", 1), ("q", "b", 0), ("q", "b", 2))
    library_of(monkeypatch, queries=queries, qrels=rows(("query_id", "doc_id", "relevance"), *judged))
    with pytest.warns(UserWarning, match="1 queries are empty and left out: q1"):
        assert irds._queries("any") == {"q2": "two"}
    with pytest.warns(UserWarning, match="any: 1 judgements are followed by another one .* which counts: b"):
        assert irds._qrels("any") == {"q": {"a": 1, "b": 2}}


def test_the_documents_of_the_library_with_sections_are_read_to_their_end():
    from ir_datasets.datasets.cord19 import Cord19FullTextDoc, Cord19FullTextSection

    sections = (Cord19FullTextSection("Methods", "we asked"), Cord19FullTextSection("Results", "they answered"))
    text = irds.as_document(Cord19FullTextDoc("d", "a title", "", "", "an abstract", sections)).full_text
    assert [text.count(one) for one in ("a title", "an abstract", "Methods", "we asked", "they answered")] == [1] * 5
