"""Cores against networkx and by hand."""

import networkx as nx
import numpy as np
import pytest
import torch
from circles import circles_of, compact
from graphs import clique, from_pairs, random_graph

from socialgraph.partition.k_core import KCore


@pytest.mark.parametrize("seed", range(30))
def test_the_first_core_is_the_innermost(seed: int) -> None:
    graph = random_graph(30, 0.05 + 0.01 * seed, seed)
    _, g = compact(graph)
    nodes = torch.unique(graph.edge_index).tolist()
    pieces = [{nodes[i] for i in piece} for piece in nx.connected_components(nx.k_core(g))]
    assert set(circles_of(KCore(k=1), [graph])[0][0][1]) in pieces


def test_cores_one_after_the_other() -> None:
    # a clique of 5, a clique of 4 that shares node 4 with it, and a tail
    graph = from_pairs(10, [*clique(range(5)), *clique(range(4, 8)), (7, 8), (8, 9)])
    want = [(0, [0, 1, 2, 3, 4]), (4, [4, 5, 6, 7]), (8, [7, 8, 9])]
    assert circles_of(KCore(), [graph]) == [want]
    assert circles_of(KCore(k=1), [graph]) == [want[:1]]


def test_cores_share_no_edge_and_every_edge_is_met_in_the_end() -> None:
    graph = random_graph(40, 0.3, 2)
    adjacency, _ = graph.dense()
    met = np.zeros_like(adjacency, dtype=int)
    for _, members in circles_of(KCore(k=1000, max_size=6), [graph])[0]:
        assert len(members) <= 6
        met[np.ix_(members, members)] += 1
    assert ((met > 0) >= adjacency).all()
    first = circles_of(KCore(k=1, max_size=6), [graph])[0][0][1]
    by_degree = np.argsort(-adjacency.sum(0), kind="stable")[:6]
    assert adjacency[np.ix_(first, first)].sum() >= adjacency[np.ix_(by_degree, by_degree)].sum()


def test_a_core_that_is_too_large_keeps_its_dense_middle() -> None:
    # a ring of 12 around a clique of 4; all of it is a 3-core
    ring = [(i, 4 + (i - 3) % 12) for i in range(4, 16)]
    spokes = [(i % 4, i) for i in range(4, 16)]
    graph = from_pairs(16, [*clique(range(4)), *ring, *spokes])
    assert circles_of(KCore(k=1, max_size=4), [graph]) == [[(0, [0, 1, 2, 3])]]
