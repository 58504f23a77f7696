"""The folder that is built: places, candidates and balanced splits, and that the loader reads it."""

import gzip
from dataclasses import replace

import pytest
from excerpts import write_fairytale

from socialgraph.data import load_folder
from socialgraph.data.collection import Document
from socialgraph.data.sources.build import Pieces, fill, write_folder
from socialgraph.data.sources.fairytale import FAIRYTALE
from socialgraph.data.sources.source import Question, bucket, sha1
from socialgraph.ranking import BM25


def build(where, first_stage=None, **options):
    """Return the folder of six tales."""
    source, folder = write_fairytale(where / "source"), where / "built"
    folder.mkdir()
    recipe = replace(FAIRYTALE, **options)
    write_folder(recipe, recipe.read(source), source / "LICENSE", folder, first_stage or BM25())
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The tales with balanced splits of one question for each bucket."""
    return build(tmp_path_factory.mktemp("tales"), balanced={"test": 1})


def lines(file):
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode().splitlines()


def test_word_pieces_and_places():
    text = "Unbelievably long: otters swam."
    pieces = Pieces({"d": Document("d", text, "A title that counts nothing")})
    count, at = pieces.lengths["d"], text.index("swam")
    assert pieces.span(Question("q", "", "d", (at, at + 4))) == (count - 2, count - 1)
    assert pieces.span(Question("q", "", "d", (0, len(text)))) == (0, count)
    # a place that begins in a blank begins at the next word
    assert pieces.span(Question("q", "", "d", (at - 1, at + 4))) == (count - 2, count - 1)
    assert pieces.span(Question("q", "", "d", None)) is None
    assert [bucket(length) for length in (0, 511, 512, 1023, 1024, 2047, 2048, 90_000)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_the_loader_reads_what_was_built(built):
    collection = load_folder(built)
    assert set(collection.splits) == {"train", "dev", "test", "test_bal"}
    assert collection["dev"].qrels["the-newt-1"] == {"the-newt": 1}
    assert (built / "LICENSE").read_text() == "A licence.\n"
    assert "a24ddc1" in (built / "NOTICE").read_text()
    # candidates of train hold no document of the test
    rest = {"the-heron", "the-stoat", "the-otter"}
    assert all(set(found) == rest for found in collection["train"].candidates.values())
    assert all(len(found) == 6 for found in collection["test"].candidates.values())
    assert list(collection["test"].candidates) == list(collection["test"].queries)


def test_documents_that_share_no_word_come_last_by_id():
    documents = {doc_id: None for doc_id in ("c", "a", "d", "b")}
    run = fill({"q1": {"c": 2.0}}, {"q1": "", "q2": ""}, documents)
    assert [list(found.items()) for found in run.values()] == [
        [("c", 2.0), ("a", 0.0), ("b", 0.0), ("d", 0.0)],
        [("a", 0.0), ("b", 0.0), ("c", 0.0), ("d", 0.0)],
    ]
    many = {f"d{number:03d}": None for number in range(300)}
    assert list(fill({}, {"q": ""}, many)["q"]) == [f"d{number:03d}" for number in range(100)]


def test_evidence_is_sorted_and_lacks_questions_without_a_place(built):
    header, *rows = lines(built / "evidence.tsv.gz")
    assert header == "qid\tdoc_id\tstart_tok\tend_tok"
    found = {row.split("\t")[0]: row.split("\t")[1:] for row in rows}
    assert list(found) == sorted(found)
    assert "the-newt-10" not in found
    # 'once there was a newt . it lived by a brook .' has 12 pieces
    assert found["the-newt-1"] == ["the-newt", "0", "12"]


def test_a_balanced_split_is_drawn_by_hash(built):
    (row,) = lines(built / "queries.test_bal.tsv")  # all tales are short: one bucket
    asked = [line.split("\t")[0] for line in lines(built / "queries.test.tsv")]
    assert row.split("\t")[0] == min(asked, key=sha1)
    whole = lines(built / "run.bm25.test.txt.gz")
    assert lines(built / "run.bm25.test_bal.txt.gz") == [one for one in whole if one.split()[0] == row.split("\t")[0]]


def test_only_found_leaves_out_questions_whose_document_is_no_candidate(tmp_path):
    class Blind(BM25):
        """Never finds the toad."""

        def retrieve(self, queries, k=100):
            return {query_id: {f"x{n}": 1.0 for n in range(100)} for query_id in queries}

    folder = build(tmp_path, Blind(), balanced={"test": 9}, only_found=True)
    assert lines(folder / "queries.test_bal.tsv") == []
    assert len(lines(folder / "queries.test.tsv")) == 8


def test_the_same_source_gives_the_same_bytes(built, tmp_path):
    again = build(tmp_path, balanced={"test": 1})
    assert {file.name: file.read_bytes() for file in again.iterdir()} == {
        file.name: file.read_bytes() for file in built.iterdir()
    }
