"""A store gives what tokenising each document gives, is found again, and is whole or not there."""

import os
import pickle

import numpy as np
import pytest
import torch
from tales import random_texts

from socialgraph.data import Document, TermStatistics, Tokens, TokenStore
from socialgraph.data import token_store as module
from socialgraph.data.collection import StoredDocuments
from socialgraph.errors import InputError


@pytest.fixture
def documents():
    texts = random_texts([i * i % 90 for i in range(40)], words=300)
    documents = {f"D{7 * i}": Document(f"D{7 * i}", text, "w1 w2" * (i % 2)) for i, text in enumerate(texts)}
    documents["empty"] = Document("empty", " \u200b ")
    documents["odd \ud800"] = Document("odd \ud800", "w3 \ud800 w4 \x00 w5")
    return documents


def reference(tokens, document):
    """Tokenise one document as the library does it."""
    text = document.full_text.encode("utf-8", "replace").decode()
    return tokens.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_a_store_holds_every_document_whole(documents, tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_CHARACTERS", 500)
    monkeypatch.setattr(module, "_BATCH_DOCUMENTS", 7)
    memory = Tokens(tiny_bert[0])
    store = TokenStore.of(documents, memory.tokenizer, tmp_path / "cache")
    ids = list(reversed(documents))
    expected = {name: reference(memory, documents[name]) for name in ids}
    for length in (1, 30, 10_000):
        tokens = Tokens(tiny_bert[0], max_document_length=length, store=store)
        memory = Tokens(tiny_bert[0], max_document_length=length)
        for where in (tokens, memory):
            found = where.documents(ids, documents)
            assert [x.tolist() for x in found] == [expected[name][:length] for name in ids]
            assert all(x.dtype == torch.int32 for x in found)
            assert where.lengths(ids, documents) == [min(length, len(expected[name])) for name in ids]
        assert tokens.document(documents["D7"]).tolist() == expected["D7"][:length]
        holds = [set(expected[name][:length]) for name in ids]
        frequency = [sum(piece in one for one in holds) for piece in range(tokens.vocab_size)]
        for statistics in (TermStatistics.of(tokens, documents), TermStatistics.of(memory, documents)):
            assert statistics.document_frequency.tolist() == frequency
            assert statistics.size == len(documents)
        assert (store.folder / f"frequency-{length}.safetensors").is_file()
    assert os.path.getsize(store.folder / "ids.bin") == 2 * sum(map(len, expected.values()))
    assert len(store) == len(documents)
    assert (store.find(["D7", "D8"]) >= 0).tolist() == [True, False]


class OnDisk(StoredDocuments):
    """Documents that count how often they are read; nothing but one pass is allowed."""

    passes = 0

    def __init__(self, documents, name):
        self.documents, self.name = documents, name

    def stream(self):
        type(self).passes += 1
        return iter(self.documents.values())

    def identity(self):
        return self.name

    def __getitem__(self, doc_id):
        raise KeyError(doc_id)

    __iter__ = __len__ = None


def test_a_store_is_built_once_for_each_collection_and_tokenizer(documents, tiny_bert, tmp_path):
    folder = tiny_bert[0]
    OnDisk.passes = 0
    first = Tokens.stored(OnDisk(documents, "a"), folder, 20, cache=tmp_path / "cache")
    again = Tokens.stored(OnDisk(documents, "a"), folder, 50, cache=tmp_path / "cache")  # another length
    assert first.store.folder == again.store.folder
    assert OnDisk.passes == 1
    assert TermStatistics.of(again, OnDisk(documents, "a")).size == len(documents)
    assert again.documents(["D14"], OnDisk(documents, "a"))[0].tolist() == reference(again, documents["D14"])[:50]
    with pytest.raises(KeyError):
        again.documents(["D14", "D8"], OnDisk(documents, "a"))
    assert OnDisk.passes == 1
    other = Tokens.stored(OnDisk(documents, "b"), folder, cache=tmp_path / "cache")
    assert OnDisk.passes == 2
    changed = Tokens.stored({**documents, "D7": Document("D7", "w9")}, folder, cache=tmp_path / "cache")
    lower = Tokens(folder).tokenizer
    lower.add_tokens(["w1 w2"])
    pieces = TokenStore.of(OnDisk(documents, "a"), lower, tmp_path / "cache")
    assert len({first.store.folder, other.store.folder, changed.store.folder, pieces.folder}) == 4


def test_a_document_that_the_store_lacks_is_tokenised(documents, tiny_bert, tmp_path):
    tokens = Tokens.stored(documents, tiny_bert[0], cache=tmp_path / "cache")
    more = {**documents, "new": Document("new", "w3 w4 w3")}
    ids = ["new", "D7", "empty", "new"]
    assert tokens.lengths(ids, more)[::3] == [3, 3]
    assert [x.tolist() for x in tokens.documents(ids, more)] == [reference(tokens, more[name]) for name in ids]


def test_a_store_that_breaks_off_leaves_nothing(documents, tiny_bert, tmp_path):
    class Breaks(OnDisk):
        def stream(self):
            yield from list(self.documents.values())[:9]
            raise InputError("corpus.jsonl:10: damaged")

    with pytest.raises(InputError, match="jsonl:10: damaged"):
        Tokens.stored(Breaks(documents, "a"), tiny_bert[0], cache=tmp_path / "cache")
    assert list((tmp_path / "cache" / "tokens").iterdir()) == []

    class Twice(OnDisk):
        def stream(self):
            return iter([*self.documents.values(), self.documents["D7"]])

    with pytest.raises(InputError, match="documents 2 and 43 of the collection have the same id"):
        Tokens.stored(Twice(documents, "a"), tiny_bert[0], cache=tmp_path / "cache")
    assert list((tmp_path / "cache" / "tokens").iterdir()) == []


def test_no_room_and_damage_are_one_line(documents, tiny_bert, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written .*; set SOCIALGRAPH_CACHE to a folder with room"):
        Tokens.stored(documents, tiny_bert[0], cache=tmp_path / "file")
    store = Tokens.stored(documents, tiny_bert[0], cache=tmp_path / "cache").store
    np.save(store.folder / "starts.npy", np.zeros(3, np.int64))
    with pytest.raises(InputError, match="no whole token store, delete the folder"):
        TokenStore(store.folder)


def test_an_empty_collection_has_an_empty_store(tiny_bert, tmp_path):
    tokens = Tokens.stored({}, tiny_bert[0], cache=tmp_path / "cache")
    assert len(tokens.store) == 0
    assert tokens.store.find(["a"]).tolist() == [-1]
    assert tokens.store.document_frequency(5).tolist() == [0] * tokens.vocab_size


def test_large_vocabularies_take_four_bytes(documents, tiny_bert, tmp_path):
    tokenizer = Tokens(tiny_bert[0]).tokenizer
    tokenizer.add_tokens([f"x{i}" for i in range(70_000)])
    store = TokenStore.of({"d": Document("d", "w1 x69999 w2")}, tokenizer, tmp_path / "cache")
    assert store.row(0, 9).tolist() == tokenizer.convert_tokens_to_ids(["w1", "x69999", "w2"])


def test_a_worker_opens_the_files_itself(documents, tiny_bert, tmp_path):
    tokens = Tokens.stored(documents, tiny_bert[0], cache=tmp_path / "cache")
    data = pickle.dumps(tokens.store)
    assert len(data) < 500
    assert pickle.loads(data).row(3, 9).tolist() == tokens.store.row(3, 9).tolist()
    assert pickle.loads(pickle.dumps(tokens)).lengths(["D7"], {}) == tokens.lengths(["D7"], {})


def test_what_a_killed_process_had_built_is_removed_by_the_next(documents, tiny_bert, tmp_path):
    store = Tokens.stored(documents, tiny_bert[0], cache=tmp_path / "cache").store
    half = store.folder.with_name(f".{store.folder.name}.abcdefgh.part")
    other = store.folder.with_name(".0123456789abcdef.abcdefgh.part")  # of another store: may be in work
    store.folder.rename(half)
    other.mkdir()
    again = Tokens.stored(documents, tiny_bert[0], cache=tmp_path / "cache").store
    assert again.folder == store.folder
    assert {path.name for path in store.folder.parent.iterdir()} == {store.folder.name, other.name}
