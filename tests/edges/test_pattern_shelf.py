"""The shelf of patterns against their formulas, pair by pair."""

from __future__ import annotations

import math

import pytest
import torch
from graphs import document

from socialgraph.edges.kleinberg import Kleinberg
from socialgraph.edges.learned import Learned
from socialgraph.edges.nearby import Nearby
from socialgraph.edges.query_to_all import QueryToAll
from socialgraph.edges.watts_strogatz import WattsStrogatz
from socialgraph.errors import OptionError

LENGTHS = [0, 1, 2, 3, 4, 5, 9, 40]


def matrix(length, rule):
    """The matrix of a rule for pairs of distinct places."""
    rows = [[rule(i, j) if i != j else 0.0 for j in range(length)] for i in range(length)]
    return torch.tensor(rows, dtype=torch.float64).reshape(length, length)


def dense(pattern, data):
    (found,) = pattern(data).dense()
    return found


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("neighbours", "rewire"), [(2, 0.0), (4, 0.25), (6, 1.0), (128, 0.1)])
def test_watts_strogatz(length, neighbours, rewire):
    lattice = matrix(length, lambda i, j: float(abs(i - j) <= neighbours / 2))
    ties, pairs = lattice.sum() / 2, max(1, math.comb(length, 2))
    want = ((1 - rewire) * lattice + rewire * ties / pairs) * (1 - torch.eye(length))
    found = dense(WattsStrogatz(neighbours, rewire), document(range(10, 10 + length)))
    torch.testing.assert_close(found, want, atol=1e-8, rtol=0)
    torch.testing.assert_close(found.sum() / 2, ties, atol=1e-6, rtol=0)  # rewiring loses no tie


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("r", [0.0, 0.5, 1.0, 2.0, 7])
def test_kleinberg(length, r):
    found = dense(Kleinberg(r), document(range(10, 10 + length)))
    torch.testing.assert_close(found, matrix(length, lambda i, j: abs(i - j) ** -r), atol=1e-9, rtol=0)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("width", [1, 3, 50])
def test_nearby(length, width):
    found = dense(Nearby(width), document(range(10, 10 + length)))
    assert torch.equal(found, matrix(length, lambda i, j: float(abs(i - j) <= width)))


@pytest.mark.parametrize(
    ("words", "query"), [([], [3]), ([3], [3]), ([3, 4, 5, 3, 6], [3, 6, 3]), ([4, 5, 6], [3]), ([3, 3, 3], [3, 9])]
)
def test_query_to_all(words, query):
    found = dense(QueryToAll(), document(words, query))
    assert torch.equal(found, matrix(len(words), lambda i, j: float(words[i] in query or words[j] in query)))


# --- learned --------------------------------------------------------------------------------------


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


def test_a_gradient_changes_nothing_but_roundings(tiny_bert):
    pattern, data = Learned(tiny_bert[0], rank=8), document([*range(10, 40), 12, 12, 39])
    with torch.no_grad():
        found = dense(pattern, data)
    assert not found.requires_grad
    torch.testing.assert_close(found, dense(pattern, data).detach(), atol=1e-5, rtol=0)


def test_learned_states_are_saved(tiny_bert):
    pattern = Learned(tiny_bert[0], rank=8)
    torch.nn.init.normal_(pattern.vector)
    again = Learned(tiny_bert[0], rank=8)
    again.load_state_dict(pattern.state_dict())
    data = document(range(10, 40))
    assert torch.equal(dense(again, data), dense(pattern, data))


# --- options --------------------------------------------------------------------------------------


def test_options_out_of_range_are_refused(tiny_bert):
    for bad in (0, 3, 127):
        with pytest.raises(OptionError, match=f"neighbours must be even and at least 2, got {bad}"):
            WattsStrogatz(bad)
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(OptionError, match="rewire must lie between 0 and 1"):
            WattsStrogatz(rewire=bad)
    for bad in (-1, math.inf, math.nan):
        with pytest.raises(OptionError, match="r must be finite and not negative"):
            Kleinberg(bad)
    with pytest.raises(OptionError, match="width must be at least 1, got 0"):
        Nearby(0)
    for bad in (0, 33):
        with pytest.raises(OptionError, match=f"rank must lie between 1 and 32, got {bad}"):
            Learned(tiny_bert[0], rank=bad)
