"""Cores against networkx and by hand."""

import networkx as nx
import pytest
import torch
from circles import circles_of, compact
from graphs import clique, from_pairs, random_graph

from socialgraph.partition.k_core import KCore


@pytest.mark.parametrize("seed", range(0, 30, 3))
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
