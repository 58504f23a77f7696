"""Label propagation against networkx."""

import networkx as nx
import pytest
from circles import circles_of, compact, ruled
from graphs import random_graph

from socialgraph.partition.label_propagation import LabelPropagation


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_label_propagation_over_random_graphs(seed: int) -> None:
    graph = random_graph(20 + 7 * seed, 0.01 + 0.002 * seed, seed)
    nodes, g = compact(graph)
    groups = [[nodes[i] for i in found] for found in nx.community.label_propagation_communities(g)]
    assert circles_of(LabelPropagation(50, 60), [graph]) == [ruled(graph, groups, 50, 60)]
