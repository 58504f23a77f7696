"""Queries and documents as word pieces; what was tokenised is found again by its text."""

import pytest
import torch
from tales import random_texts

from socialgraph.data import Cache, Document, TermStatistics, Tokens
from socialgraph.data.collection import StoredDocuments

DOCUMENTS = {f"d{i}": Document(f"d{i}", f"w{i} w{i + 1}") for i in range(6)}


def counted(tokens):
    """Note how many texts are tokenised at once from now on."""
    calls, encode = [], tokens.encoder._encode
    tokens.encoder._encode = lambda texts: calls.append(len(texts)) or encode(texts)
    return calls


def reference(tokens, document):
    """Tokenise one document as the library does it."""
    text = document.full_text.encode("utf-8", "replace").decode()
    return tokens.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_a_query_is_tokenised_once_and_cut(tiny_bert):
    tokens = Tokens(tiny_bert[0], max_query_length=3)
    calls, text = counted(tokens), "w1 w7 w9 w2"
    ids = tokens.query(text)
    assert ids.tolist() == tokens.tokenizer.convert_tokens_to_ids(["w1", "w7", "w9"])
    assert ids.dtype == torch.int64
    assert tokens.query(text) is ids
    assert calls == [1]


def test_documents_are_tokenised_together_and_kept(tiny_bert):
    tokens = Tokens(tiny_bert[0])
    calls = counted(tokens)
    first = tokens.documents(["d1", "d2", "d1"], DOCUMENTS)
    assert torch.equal(first[0], first[2])
    tokens.documents(["d2", "d3", "d1", "d4"], DOCUMENTS)
    assert tokens.lengths(["d4", "d5"], DOCUMENTS) == [2, 2]
    assert calls == [2, 2, 1]
    with pytest.raises(KeyError):
        tokens.documents(["d1", "d9"], DOCUMENTS)


def test_another_text_of_the_same_name_is_another(tiny_bert):
    tokens = Tokens(tiny_bert[0])
    tokens.document(DOCUMENTS["d1"])
    assert tokens.document(Document("d1", "w9")).tolist() == reference(tokens, Document("d1", "w9"))


@pytest.mark.parametrize("place", ["memory", "disk", "nowhere"])
def test_word_pieces_are_those_of_each_document_alone(tiny_bert, tmp_path, place, monkeypatch):
    monkeypatch.setattr("socialgraph.data.tokens.BATCH_CHARACTERS", 500)
    texts = random_texts([i * i % 90 for i in range(40)])
    documents = {f"D{7 * i}": Document(f"D{7 * i}", text, "w1 w2" * (i % 2)) for i, text in enumerate(texts)}
    documents["empty"] = Document("empty", " \u200b ")
    documents["odd \ud800"] = Document("odd \ud800", "w3 \ud800 w4 \x00 w5")
    cache = {"memory": Cache(), "disk": Cache(tmp_path), "nowhere": Cache(size=0)}[place]
    expected = {name: reference(Tokens(tiny_bert[0]), one) for name, one in documents.items()}
    ids = list(reversed(documents))
    for length in (1, 30, 10_000, 1, 30):
        tokens = Tokens(tiny_bert[0], max_document_length=length, cache=cache)
        found = tokens.documents(ids, documents)
        assert [x.tolist() for x in found] == [expected[name][:length] for name in ids]
        assert all(x.dtype == torch.int32 for x in found)
        assert tokens.lengths(ids, documents) == [min(length, len(expected[name])) for name in ids]
        statistics = TermStatistics.of(tokens, documents)
        holds = [set(expected[name][:length]) for name in ids]
        frequency = [sum(piece in one for one in holds) for piece in range(tokens.vocab_size)]
        assert statistics.document_frequency.tolist() == frequency
        assert statistics.size == len(documents)


class OnDisk(StoredDocuments):
    """Documents that count how often they are read."""

    def __init__(self, documents, name):
        self.documents, self.name, self.passes = documents, name, 0

    def stream(self):
        self.passes += 1
        return iter(self.documents.values())

    def identity(self):
        return self.name

    def __getitem__(self, doc_id):
        return self.documents[doc_id]

    __iter__ = __len__ = None


def test_a_cache_on_disk_is_shared_by_processes_and_lengths(tiny_bert, tmp_path):
    documents = OnDisk(DOCUMENTS, "a")
    first = Tokens(tiny_bert[0], cache=Cache(tmp_path))
    statistics = TermStatistics.of(first, documents)
    assert documents.passes == 0  # nobody has asked yet
    assert statistics.size == len(DOCUMENTS)
    again = Tokens(tiny_bert[0], cache=Cache(tmp_path))
    calls = counted(again)
    assert TermStatistics.of(again, documents).document_frequency.equal(statistics.document_frequency)
    assert again.lengths(list(DOCUMENTS), documents) == [2] * 6
    assert (documents.passes, calls) == (1, [])
    shorter = Tokens(tiny_bert[0], 1, cache=Cache(tmp_path))
    assert int(TermStatistics.of(shorter, documents).document_frequency.sum()) == 6
    assert TermStatistics.of(again, OnDisk({"d": DOCUMENTS["d1"]}, "b")).size == 1
    assert documents.passes == 2
