"""A graph of the pairs of highest probability: as many as sparsity says, none passed over, the same on every road."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from circles import LEVELS
from drawing import DOCUMENTS, MIXTURES, PATTERNS, assert_same_circles, documents, drawn, scaled
from graphs import random_document
from torch_geometric.data import Batch

from socialgraph.edges import HASH_RANGE, SocialEdges
from socialgraph.edges.draws import constant_key, node_hashes, pair_hash
from socialgraph.errors import OptionError


@pytest.mark.parametrize("sparsity", [0.93, 0.6])
@pytest.mark.parametrize("name", [name for name in PATTERNS if name != "uniform"])
def test_no_pair_that_is_left_out_is_likelier_than_an_edge(name: str, sparsity: float) -> None:
    data = [random_document(length, length, vocabulary=100, draw_key=5) for length in (30, 200, 700)]
    sampler = SocialEdges(PATTERNS[name], sparsity=sparsity, draw="expected")
    graphs = drawn(sampler, data)
    for (adjacency, weight), p in zip(graphs, scaled(sampler, Batch.from_data_list(data)), strict=True):
        edge = np.triu(adjacency)
        other = np.triu(~adjacency, 1)
        assert p[edge].min() >= p[other].max()
        assert weight[adjacency] == pytest.approx(p[adjacency], rel=1e-6), "the probability that it would have had"
        equal = np.triu(np.isclose(p, p[other].max(), rtol=0, atol=2 / HASH_RANGE), 1).sum()  # what the next step adds
        wanted = len(p) * (len(p) - 1) / 2 * (1 - sparsity)
        assert wanted - equal - 0.03 * wanted <= edge.sum() <= 1.03 * wanted
    for one in data:
        one.draw_key += 1
    assert all(np.array_equal(one, other) for (one, _), (other, _) in zip(drawn(sampler, data), graphs, strict=True))


@pytest.mark.parametrize("which", ["no token", "one token", "two tokens", "everything equal"])
def test_where_nothing_is_likelier_the_graph_is_drawn(which: str) -> None:
    samplers = [SocialEdges(MIXTURES["dynamic distance"], sparsity=0.5, draw=draw) for draw in ("random", "expected")]
    (random, _), (expected, _) = (drawn(sampler, [DOCUMENTS[which]])[0] for sampler in samplers)
    assert np.array_equal(random, expected)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PATTERNS)
def test_circles_are_those_of_its_edges(level: str, name: str) -> None:
    batch = Batch.from_data_list([*documents(6, 5, 200), random_document(4100, 8, vocabulary=400)])
    sampler = SocialEdges(PATTERNS[name], draw="expected")
    assert assert_same_circles(LEVELS[level][0](k=4, max_size=20), sampler, batch) > 8


def test_a_key_for_every_hash() -> None:
    wanted = torch.tensor([0, 1, 2, 12345, 1 << 16, HASH_RANGE // 2, HASH_RANGE - 1])
    key = constant_key(wanted)
    assert (key < 0).all()
    lower, higher = node_hashes(key[:, None], torch.arange(5))
    assert torch.equal(pair_hash(lower, higher), wanted[:, None].expand(-1, 5).int())


def test_there_is_no_other_draw() -> None:
    with pytest.raises(OptionError, match="draw must be one of random, expected, got 'best'"):
        SocialEdges(MIXTURES["three"], draw="best")
