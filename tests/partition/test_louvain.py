"""Louvain against networkx."""

import networkx as nx
from circles import circles_of, compact, ruled, some_graphs
from graphs import Graph

from socialgraph.partition.louvain import Louvain


@some_graphs
def test_louvain(graph: Graph) -> None:
    nodes, g = compact(graph)
    groups = [[nodes[i] for i in found] for found in nx.community.louvain_communities(g, resolution=1.4, seed=5)]
    assert circles_of(Louvain(5, 7, resolution=1.4, seed=5), [graph]) == [ruled(graph, groups, 5, 7)]
