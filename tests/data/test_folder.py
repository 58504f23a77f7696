"""A collection from a folder of plain files; one that is none is refused with file and line."""

import gzip
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings

import pytest
from children import fresh

from socialgraph.data.collection import Document
from socialgraph.data.folder import load_folder
from socialgraph.errors import InputError

CORPUS = [
    {"doc_id": "d1", "title": "One", "text": "first\u2028text\nof two lines"},
    {"doc_id": "d2", "text": "zweiter – Text", "more": [1]},
    {"doc_id": "d3", "title": None, "text": "third"},
]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("SOCIALGRAPH_CACHE", str(folder))
    return folder


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "small"
    path.mkdir()
    corpus(path, *map(json.dumps, CORPUS))
    (path / "queries.dev.tsv").write_text("q1\twhat is first?\nq2\twhat is second?\n")
    (path / "qrels.dev.txt").write_text("q1 0 d1 1\nq2 0 d2 2\n")
    (path / "run.bm25.dev.txt").write_text("q1 Q0 d1 1 2.5 x\nq1 Q0 d3 2 1.5 x\n")
    (path / "queries.test.tsv").write_text("q3\twhat is third?\n")
    return path


def corpus(path, *lines):
    (path / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def pack(path):
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_is_loaded(folder, packed):
    if packed:
        for name in ("corpus.jsonl", "run.bm25.dev.txt", "qrels.dev.txt"):
            pack(folder / name)
    loaded = load_folder(folder)
    assert loaded.name == "small"
    assert list(loaded.splits) == ["dev", "test"]
    assert loaded["dev"].queries == {"q1": "what is first?", "q2": "what is second?"}
    assert loaded["dev"].qrels == {"q1": {"d1": 1}, "q2": {"d2": 2}}
    assert loaded["dev"].candidates == {"q1": {"d1": 2.5, "d3": 1.5}}
    assert loaded["test"].qrels == {}
    assert loaded["test"].candidates is None
    documents = loaded.documents
    assert list(documents) == ["d1", "d2", "d3"]
    assert documents["d1"] == Document("d1", "first\u2028text\nof two lines", "One")
    assert documents["d2"] == Document("d2", "zweiter – Text")
    assert list(documents.values()) == [documents[name] for name in documents]
    assert "d4" not in documents
    with pytest.raises(KeyError):
        documents["d4"]
    assert "3 documents" in repr(loaded)


@pytest.mark.parametrize("packed", [False, True])
def test_other_text_of_the_same_size_and_time_is_another_corpus(folder, cache, packed):
    file = folder / ("corpus.jsonl.gz" if packed else "corpus.jsonl")

    def write(text):
        raw = json.dumps({"doc_id": "d1", "text": text}).encode() + b"\n"
        file.write_bytes(gzip.compress(raw, compresslevel=0, mtime=0) if packed else raw)
        os.utime(file, (1_000_000, 1_000_000))
        return load_folder(folder, candidates=None).documents

    (folder / "corpus.jsonl").unlink()
    (folder / "qrels.dev.txt").unlink()
    old, size = write("one text"), file.stat().st_size
    new = write("new text")
    assert file.stat().st_size == size
    assert new["d1"].text == "new text"
    assert new.identity() != old.identity() == write("one text").identity()
    assert len(list(cache.rglob("*.jsonl"))) == (2 if packed else 0)  # each is unpacked once


def test_candidates_are_read_when_asked_for(folder):
    (folder / "run.bm25.dev.txt").write_text("no run\n")
    loaded = load_folder(folder)
    with pytest.raises(InputError, match=r"run\.bm25\.dev\.txt:1: expected 6 columns"):
        _ = loaded["dev"].candidates
    assert load_folder(folder, candidates=None)["dev"].candidates is None
    (folder / "run.bm25.dev.txt").write_text("q1 Q0 d1 1 2.5 x\nq1 Q0 d9 2 1.5 x\n")
    with pytest.raises(InputError, match=r"run\.bm25\.dev\.txt: candidate 'd9' of query 'q1'"):
        _ = load_folder(folder)["dev"].candidates


def test_the_name_of_a_run_may_have_points(folder):
    (folder / "run.bm25.dev.txt").rename(folder / "run.bm25.k1=0.9.dev.txt")
    with pytest.raises(InputError, match=r"no run\.bm25\..* there are runs named bm25.k1=0.9$"):
        load_folder(folder)
    (folder / "run.bm25.k1=0.9.dev.txt").rename(folder / "run.bm25.v2.dev.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody may say that this file is not read
        found = load_folder(folder, candidates="bm25.v2")
    assert found["dev"].candidates == {"q1": {"d1": 2.5, "d3": 1.5}}


def test_what_is_left_out_or_empty_is_counted(folder):
    more = ['{"doc_id": "e1", "text": ""}', '{"doc_id": "e2", "text": null}']
    corpus(folder, *map(json.dumps, CORPUS), *more)
    (folder / "qrels.dev.txt").write_text("q1 0 d1 1\nq1 0 x 1\nq8 0 d1 1\n")
    (folder / "run.bm25.dev.txt").write_text("q7 Q0 d1 1 2.5 x\nq1 Q0 d1 1 2.5 x\n")
    with (
        pytest.warns(UserWarning, match="2 documents have no text: e1, e2"),
        pytest.warns(UserWarning, match="1 judgements are on documents that the corpus lacks .*: x"),
        pytest.warns(UserWarning, match=r"qrels\.dev\.txt: 1 queries that this split does not have are left out: q8"),
    ):
        loaded = load_folder(folder)
    assert loaded.documents["e2"].text == ""
    assert loaded["dev"].qrels == {"q1": {"d1": 1}}
    with pytest.warns(UserWarning, match=r"run\.bm25\.dev\.txt: 1 queries that this split .*: q7"):
        assert loaded["dev"].candidates == {"q1": {"d1": 2.5}}


def test_a_document_that_changed_on_disk_is_noticed(folder):
    loaded = load_folder(folder)
    corpus(folder, *map(json.dumps, reversed(CORPUS)))
    with pytest.raises(InputError, match=r"corpus\.jsonl:"):
        [loaded.documents[name] for name in loaded.documents]


def _text(documents):
    return documents["d2"].text


FORKS = """
import multiprocessing, sys
from socialgraph.data import load_folder
documents = load_folder(sys.argv[1]).documents
_ = documents["d1"].text  # the file is open in the parent
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.apply(documents.__getitem__, ("d2",)).text)
"""


def test_workers_read_documents(folder):
    pack(folder / "corpus.jsonl")
    loaded = load_folder(folder)
    with fresh().Pool(1) as pool:
        assert pool.apply(_text, (loaded.documents,)) == CORPUS[1]["text"]
    if "fork" in multiprocessing.get_all_start_methods():  # from a process in which torch has not worked
        told = subprocess.run([sys.executable, "-c", FORKS, str(folder)], capture_output=True, text=True, check=True)
        assert told.stdout.strip() == CORPUS[1]["text"]
    assert pickle.loads(pickle.dumps(loaded))["dev"].candidates == {"q1": {"d1": 2.5, "d3": 1.5}}


def test_wtq(shared):
    loaded = load_folder(shared / "data" / "wtq")
    sizes = {name: len(split.queries) for name, split in loaded.splits.items()}
    assert sizes == {"train": 14109, "dev": 3561, "test": 4357, "dev_bal": 240, "test_bal": 600}
    assert len(loaded.documents) == 2104
    assert loaded.documents["W10023387"].title == "South Korea Davis Cup team"
    train = loaded["train"].candidates
    assert sum(map(len, train.values())) == 1_410_900
    assert not loaded.held_out_documents() & {doc_id for scores in train.values() for doc_id in scores}


def test_the_program_may_go_to_another_folder_before_it_reads(folder, tmp_path, monkeypatch):
    pack(folder / "corpus.jsonl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOCIALGRAPH_CACHE", "cache")
    loaded = load_folder("small")
    monkeypatch.chdir("/")
    assert loaded["dev"].candidates == {"q1": {"d1": 2.5, "d3": 1.5}}
    assert loaded.documents["d3"].text == "third"


def test_a_folder_may_be_named_with_a_tilde_and_hold_links(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    (folder / "corpus.jsonl").rename(tmp_path / "elsewhere.jsonl")
    (folder / "corpus.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    assert load_folder("~/small").documents["d3"].text == "third"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"doc_id": "d1", "text": "again"}', r"'d1' comes twice \(first in row 1\)"),
        ('{"doc_id": "d4", "text": "x"', "expected a JSON object"),
        ("[" * 100_000, "expected a JSON object"),
        ('["d4", "x"]', "expected a JSON object, got list"),
        ('{"doc_id": "d4"}', "the key 'text' is missing; there are: 'doc_id'"),
        ('{"text": "x"}', "the key 'doc_id' is missing"),
        ('{"doc_id": 4, "text": "x"}', "'doc_id' must be a string, got int '4'"),
        ('{"doc_id": "d4", "text": "x", "title": ["t"]}', "'title' must be a string, got list"),
        ('{"doc_id": "d 4", "text": "x"}', "one word without blanks"),
        (r'{"doc_id": "d4", "text": "\ud800"}', "'text' must be a string, got str"),
        ('{"doc_id": "d4", "text": "\udcff"}', "not UTF-8"),  # the byte ff
    ],
)
def test_bad_corpus_lines_are_named(folder, line, message):
    file = folder / "corpus.jsonl"
    file.write_bytes("\n".join([*map(json.dumps, CORPUS), line]).encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=message) as caught:
        load_folder(folder)
    assert f"{file}:4: " in str(caught.value)
    pack(file)
    with pytest.raises(InputError, match=message) as caught:
        load_folder(folder)
    assert f"{file}.gz:4: " in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [("q9\t  ", "'q9' is empty"), ("q9\ta\tb", "2 columns"), ("q1\tagain", "'q1' comes twice"), ("q 9\tx", "one word")],
)
def test_bad_query_lines_are_named(folder, line, message):
    (folder / "queries.dev.tsv").write_text(f"q1\tone\n{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        load_folder(folder)
    assert f"{folder / 'queries.dev.tsv'}:2: " in str(caught.value)


def test_missing_files_are_named(folder, tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        load_folder(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no run\.splade.* there are runs named bm25"):
        load_folder(folder, candidates="splade")
    (folder / "run.bm25.dev.txt").unlink()
    assert not load_folder(folder)["dev"].has_candidates
    for file in folder.glob("queries.*"):
        file.unlink()
    with pytest.raises(InputError, match="no queries"):
        load_folder(folder)
    (folder / "corpus.jsonl.gz").write_bytes(b"not packed")
    with pytest.raises(InputError, match="keep one"):
        load_folder(folder)
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(InputError, match=r"corpus\.jsonl\.gz:1: damaged gzip"):
        load_folder(folder)
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(InputError, match="the corpus is empty"):
        load_folder(folder)
    (folder / "corpus.jsonl.gz").unlink()
    with pytest.raises(InputError, match=r"neither corpus\.jsonl nor corpus\.jsonl\.gz"):
        load_folder(folder)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "..", "", "x\0", "bm25\n", "C:\\x", "\x1b[31m", "~"])
def test_the_name_of_a_run_cannot_leave_the_folder(folder, name):
    (folder.parent / "run.x.dev.txt").write_text("q1 Q0 d1 1 1.0 t\n")
    with pytest.raises(InputError, match="the name of a run") as caught:
        load_folder(folder, candidates=name)
    assert str(caught.value).isprintable()
