"""METIS against pymetis."""

import numpy as np
import pytest
from circles import circles_of, compact, grouped, ruled, some_graphs
from graphs import Graph

from socialgraph.partition.metis import Metis

pymetis = pytest.importorskip("pymetis")


@some_graphs
def test_metis(graph: Graph) -> None:
    nodes, g = compact(graph)
    friends = [sorted(g[node]) for node in range(len(nodes))]
    starts = np.cumsum([0, *map(len, friends)]).tolist()
    parts = pymetis.CSRAdjacency(starts, [node for row in friends for node in row])
    _, label = pymetis.part_graph(4, parts, options=pymetis.Options(seed=7))
    circles = circles_of(Metis(4, 1000, seed=7), [graph], weighted=False)[0]
    assert circles == ruled(graph, grouped(nodes, label), 4, 1000)
    # with weights, the weight cut is about what METIS says it can be
    _, weight = graph.dense()
    sizes = [len(members) for _, members in circles_of(Metis(4, 1000), [graph])[0]]
    assert max(sizes) <= 1.1 * len(nodes) / 4 + 1
    cut = lambda circles: weight.sum() - sum(weight[np.ix_(m, m)].sum() for _, m in circles)  # noqa: E731
    assert cut(circles_of(Metis(4, 1000), [graph])[0]) <= 1.02 * cut(circles)
