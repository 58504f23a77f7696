"""Network models against their formulas, pair by pair."""

from __future__ import annotations

import math

import pytest
import torch
from graphs import document

from socialgraph.edges import DynamicDistance, Pmi, StaticDistance
from socialgraph.edges.network_models import Kleinberg, Nearby, QueryToAll, WattsStrogatz
from socialgraph.errors import OptionError

LENGTHS = [0, 1, 2, 5, 40]


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
@pytest.mark.parametrize("r", [0.0, 0.5, 2.0])
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


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: WattsStrogatz(3), "neighbours must be even and at least 2, got 3"),
        (lambda: WattsStrogatz(rewire=math.nan), "rewire must lie between 0 and 1"),
        (lambda: Kleinberg(math.inf), "r must be finite and not negative"),
        (lambda: Nearby(0), "width must be at least 1, got 0"),
        (lambda: StaticDistance(p=math.nan), "p must be positive"),
        (lambda: DynamicDistance(p=0.0), "p must be positive"),
        (lambda: Pmi(window=1.5), "window must be a whole number of at least 1, got 1.5"),
    ],
)
def test_options_out_of_range_are_refused(make, told):
    with pytest.raises(OptionError, match=told):
        make()
