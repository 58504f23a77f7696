"""Queries and documents as word pieces; what was tokenised is kept."""

import pytest
import torch

from socialgraph.data import Document, Tokens

DOCUMENTS = {f"d{i}": Document(f"d{i}", f"w{i} w{i + 1}") for i in range(6)}


def test_a_query_is_tokenised_once_and_cut(tiny_bert):
    tokens = Tokens(tiny_bert[0], max_query_length=3)
    text = "w1 w7 w9 w2"
    ids = tokens.query(text)
    assert ids.tolist() == tokens.tokenizer.convert_tokens_to_ids(["w1", "w7", "w9"])
    assert ids.dtype == torch.int64
    tokens._encode = None
    assert tokens.query(text) is ids
    with pytest.raises(TypeError):
        tokens.query("another")


def test_documents_are_tokenised_together_and_kept(tiny_bert):
    tokens = Tokens(tiny_bert[0])
    calls = []
    encode = tokens._encode
    tokens._encode = lambda texts: calls.append(len(texts)) or encode(texts)
    first = tokens.documents(["d1", "d2", "d1"], DOCUMENTS)
    assert torch.equal(first[0], first[2])
    tokens.documents(["d2", "d3", "d1", "d4"], DOCUMENTS)
    assert tokens.lengths(["d4", "d5"], DOCUMENTS) == [2, 2]
    assert calls == [2, 2, 1]
    with pytest.raises(KeyError):
        tokens.documents(["d1", "d9"], DOCUMENTS)


def test_without_room_documents_are_tokenised_again(tiny_bert):
    roomy, narrow = Tokens(tiny_bert[0]), Tokens(tiny_bert[0], cache_size=0)
    for _ in range(2):
        for one, other in zip(
            roomy.documents(list(DOCUMENTS), DOCUMENTS), narrow.documents(list(DOCUMENTS), DOCUMENTS), strict=True
        ):
            assert torch.equal(one, other)
