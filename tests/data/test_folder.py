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
    {"doc_id": "d3", "title": "", "text": "third"},
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
        pack(folder / "corpus.jsonl")
        pack(folder / "run.bm25.dev.txt")
        pack(folder / "qrels.dev.txt")
    loaded = load_folder(folder)
    assert loaded.name == "small"
    assert list(loaded.splits) == ["dev", "test"]
    assert loaded["dev"].queries == {"q1": "what is first?", "q2": "what is second?"}
    assert loaded["dev"].qrels == {"q1": {"d1": 1}, "q2": {"d2": 2}}
    assert loaded["dev"].candidates == {"q1": {"d1": 2.5, "d3": 1.5}}
    assert loaded["test"].qrels == {}
    assert loaded["test"].candidates is None
    documents = loaded.documents
    assert len(documents) == 3
    assert list(documents) == ["d1", "d2", "d3"]
    assert documents["d1"] == Document("d1", "first\u2028text\nof two lines", "One")
    assert documents["d2"] == Document("d2", "zweiter – Text")
    assert list(documents.values()) == [documents[name] for name in documents]
    assert "d4" not in documents
    with pytest.raises(KeyError):
        documents["d4"]
    assert "3 documents" in repr(loaded)
    loaded.check()


def test_a_packed_corpus_is_unpacked_once_and_again_when_it_changes(folder, cache):
    plain = folder / "corpus.jsonl"
    pack(plain)
    load_folder(folder)
    copies = list(cache.rglob("*.jsonl"))
    assert len(copies) == 1
    written = copies[0].stat().st_mtime_ns
    load_folder(folder)
    assert copies[0].stat().st_mtime_ns == written
    corpus(folder, json.dumps({"doc_id": "d1", "text": "new"}), *map(json.dumps, CORPUS[1:]))
    pack(plain)
    assert load_folder(folder).documents["d1"].text == "new"


@pytest.mark.parametrize("packed", [False, True])
def test_other_text_of_the_same_size_and_time_is_another_corpus(folder, packed):
    file = folder / ("corpus.jsonl.gz" if packed else "corpus.jsonl")

    def write(text):
        raw = json.dumps({"doc_id": "d1", "text": text}).encode() + b"\n"
        file.write_bytes(gzip.compress(raw, compresslevel=0, mtime=0) if packed else raw)
        os.utime(file, (1_000_000, 1_000_000))
        return load_folder(folder, candidates=None).documents

    (folder / "corpus.jsonl").unlink()
    (folder / "qrels.dev.txt").unlink()
    old = write("one text")
    size = file.stat().st_size
    new = write("new text")
    assert file.stat().st_size == size
    assert new["d1"].text == "new text"
    assert new.identity() != old.identity()


def test_candidates_are_read_when_asked_for(folder):
    (folder / "run.bm25.dev.txt").write_text("no run\n")
    loaded = load_folder(folder)
    assert loaded["dev"].has_candidates
    with pytest.raises(InputError, match=r"run\.bm25\.dev\.txt:1: expected 6 columns"):
        _ = loaded["dev"].candidates
    assert load_folder(folder, candidates=None)["dev"].candidates is None


def test_the_name_of_a_run_may_have_points(folder):
    (folder / "run.bm25.dev.txt").rename(folder / "run.bm25.k1=0.9.dev.txt")
    with pytest.raises(InputError, match=r"no run\.bm25\..* there are runs named bm25.k1=0.9$"):
        load_folder(folder)
    (folder / "run.bm25.k1=0.9.dev.txt").rename(folder / "run.bm25.v2.dev.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody may say that this file is not read
        found = load_folder(folder, candidates="bm25.v2")
    assert found["dev"].candidates == {"q1": {"d1": 2.5, "d3": 1.5}}


def test_a_candidate_that_is_missing_from_the_corpus_is_named(folder):
    (folder / "run.bm25.dev.txt").write_text("q1 Q0 d1 1 2.5 x\nq1 Q0 d9 2 1.5 x\n")
    with pytest.raises(InputError, match=r"run\.bm25\.dev\.txt: candidate 'd9' of query 'q1'"):
        load_folder(folder).check()


def test_empty_documents_are_counted(folder):
    corpus(folder, *map(json.dumps, CORPUS), '{"doc_id": "e1", "text": ""}', '{"doc_id": "e2", "text": " "}')
    with pytest.warns(UserWarning, match="2 documents have no text: e1, e2"):
        loaded = load_folder(folder)
    assert loaded.documents["e1"].text == ""


def test_unknown_documents_in_judgements_are_counted_and_left_out(folder):
    (folder / "qrels.dev.txt").write_text("q1 0 d1 1\nq1 0 x 1\nq2 0 y 1\n")
    with pytest.warns(UserWarning, match="2 judgements are on documents that the corpus lacks .*: x, y"):
        loaded = load_folder(folder)
    assert loaded["dev"].qrels == {"q1": {"d1": 1}}


def test_unknown_queries_are_counted_and_left_out(folder):
    (folder / "qrels.dev.txt").write_text("q1 0 d1 1\nq8 0 d1 1\n")
    (folder / "run.bm25.dev.txt").write_text("q7 Q0 d1 1 2.5 x\nq1 Q0 d1 1 2.5 x\n")
    with pytest.warns(UserWarning, match="judgements of 1 queries .*: q8"):
        loaded = load_folder(folder)
    assert loaded["dev"].qrels == {"q1": {"d1": 1}}
    with pytest.warns(UserWarning, match="candidates of 1 queries .*: q7"):
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


def test_another_corpus_has_another_identity(folder):
    identity = load_folder(folder).documents.identity()
    assert load_folder(folder).documents.identity() == identity
    corpus(folder, *map(json.dumps, [*CORPUS[:2], CORPUS[2] | {"text": "other text"}]))
    assert load_folder(folder).documents.identity() != identity


def test_the_program_may_go_to_another_folder_before_it_reads(folder, tmp_path, monkeypatch):
    pack(folder / "corpus.jsonl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOCIALGRAPH_CACHE", "cache")
    loaded = load_folder("small")
    monkeypatch.chdir("/")
    assert loaded["dev"].candidates == {"q1": {"d1": 2.5, "d3": 1.5}}
    assert loaded.documents["d3"].text == "third"


def test_the_users_own_folder_may_be_named_with_a_tilde(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert load_folder("~/small").documents["d3"].text == "third"


def test_a_link_into_another_folder_is_followed(folder, tmp_path):
    (folder / "corpus.jsonl").rename(tmp_path / "elsewhere.jsonl")
    (folder / "corpus.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    assert len(load_folder(folder).documents) == 3
