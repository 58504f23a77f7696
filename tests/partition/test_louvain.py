"""Louvain against igraph, and how good its communities are against networkx."""

import random

import networkx as nx
import pytest
import torch
from circles import circles_of, compact, ruled, some_graphs
from graphs import Graph, random_graph

from socialgraph.partition.louvain import Louvain

igraph = pytest.importorskip("igraph")


@some_graphs
def test_louvain(graph: Graph) -> None:
    nodes, g = compact(graph)
    pairs = sorted(sorted(edge) for edge in g.edges)
    weight = [g.edges[edge]["weight"] for edge in pairs]
    random.seed(5)
    found = igraph.Graph(len(nodes), pairs).community_multilevel(weight, resolution=1.4)
    groups = [[nodes[i] for i in group] for group in found]
    assert circles_of(Louvain(5, 7, resolution=1.4, seed=5), [graph]) == [ruled(graph, groups, 5, 7)]


@pytest.mark.parametrize("seed", range(5))
def test_communities_are_as_good_as_those_of_networkx(seed: int) -> None:
    graph = random_graph(300, 0.07, seed)  # as dense as a document
    ends, weight = graph.edge_index, graph.edge_weight
    label = Louvain(seed=seed).communities(ends, weight, 300)[1]
    _, g = compact(graph)
    groups = [torch.nonzero(label == name).flatten().tolist() for name in label.unique()]
    others = nx.community.louvain_communities(g, seed=seed)
    assert nx.community.modularity(g, groups) > nx.community.modularity(g, others) - 0.01
