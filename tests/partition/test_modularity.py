"""Louvain and Leiden against igraph, and how good communities are against networkx."""

import random

import pytest
from circles import circles_of, compact, ruled, some_graphs
from graphs import Graph

from socialgraph.partition.modularity import Leiden, Louvain

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


@some_graphs
def test_leiden(graph: Graph) -> None:
    nodes, g = compact(graph)
    other = igraph.Graph(len(nodes), list(g.edges))
    weight = [g.edges[edge]["weight"] for edge in g.edges]
    igraph.set_random_number_generator(random.Random(0))
    found = other.community_leiden("modularity", weights=weight, n_iterations=-1)
    igraph.set_random_number_generator(random)
    circles = circles_of(Leiden(100, 1000), [graph])[0]
    label = {node: number for number, (_, members) in enumerate(circles) for node in members}
    assert len(label) == len(nodes)
    # another order of edges may lead elsewhere, but not to something worse
    got = other.modularity([label[node] for node in nodes], weight)
    assert got == pytest.approx(found.modularity, abs=0.02)
    assert got > 0.1
    # the last of igraph's own random numbers are Python's again
    random.seed(1)
    one = other.community_leiden("modularity", n_iterations=1).membership
    circles_of(Leiden(), [graph])
    random.seed(1)
    assert other.community_leiden("modularity", n_iterations=1).membership == one
