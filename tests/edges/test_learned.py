"""Learned attraction against the first layer of the BERT that it begins as."""

from __future__ import annotations

import pytest
import torch
from graphs import document

from socialgraph.edges.learned import Learned
from socialgraph.errors import OptionError


def dense(pattern, data):
    (found,) = pattern(data).dense()
    return found


def attention_scores(bert, words):
    """Mean over heads of the first layer's symmetrised attention logits, without positions: [l, l]."""
    layer = bert.encoder.layer[0].attention.self
    heads, embeddings = bert.config.num_attention_heads, bert.embeddings
    with torch.no_grad():
        x = embeddings.word_embeddings(words) + embeddings.token_type_embeddings(torch.zeros_like(words))
        x = embeddings.LayerNorm(x)
        query, key = (f(x).view(len(words), heads, -1).transpose(0, 1).double() for f in (layer.query, layer.key))
    logits = (query @ key.transpose(1, 2) / query.size(2) ** 0.5).mean(0)
    return (logits + logits.T) / 2


def test_learned_is_the_first_layers_attention(tiny_bert):
    folder, bert = tiny_bert
    words = torch.tensor([*range(5, 60), 7, 7, 9])
    want = attention_scores(bert, words)
    everybody = attention_scores(bert, torch.arange(200))
    want = torch.sigmoid(-2 + 2 * (want - everybody.mean()) / everybody.std(correction=0))
    with torch.no_grad():
        found = dense(Learned(folder, rank=32), document(words.tolist()))
    torch.testing.assert_close(found, want.fill_diagonal_(0), atol=1e-4, rtol=0)


def test_a_lower_rank_is_the_best_of_its_rank(tiny_bert):
    folder, bert = tiny_bert
    want = attention_scores(bert, torch.arange(200))
    values = torch.linalg.svdvals(want)
    for rank in (1, 5, 20):
        pattern = Learned(folder, rank)
        vector = pattern.vector.detach().double()
        error = (vector * pattern.sign) @ vector.T - want
        assert error.square().sum().item() == pytest.approx(values[rank:].square().sum().item(), rel=1e-3, abs=1e-6)


def test_learned_learns(tiny_bert):
    pattern, data = Learned(tiny_bert[0], rank=8), document(range(10, 40))
    assert {name for name, _ in pattern.named_parameters()} == {"vector", "gain", "bias"}
    optimizer = torch.optim.SGD(pattern.parameters(), lr=1.0)
    friend, stranger = (torch.tensor(3), torch.tensor(17)), (torch.tensor(3), torch.tensor(4))
    before = [pattern(data).pair(*pair).item() for pair in (friend, stranger)]
    for _ in range(20):
        optimizer.zero_grad()
        p = pattern(data)
        (p.pair(*stranger) - p.pair(*friend)).backward()
        optimizer.step()
    assert all(parameter.grad.abs().sum() > 0 for parameter in pattern.parameters())
    after = [pattern(data).pair(*pair).item() for pair in (friend, stranger)]
    assert after[0] > before[0] + 0.1
    assert after[1] < before[1]
    with pytest.raises(OptionError, match="rank must lie between 1 and 32, got 33"):
        Learned(tiny_bert[0], rank=33)
