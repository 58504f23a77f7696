"""Label propagation against networkx."""

import networkx as nx
from circles import circles_of, compact, ruled, some_graphs
from graphs import Graph

from socialgraph.partition.label_propagation import LabelPropagation


@some_graphs
def test_label_propagation(graph: Graph) -> None:
    nodes, g = compact(graph)
    groups = [[nodes[i] for i in found] for found in nx.community.label_propagation_communities(g)]
    assert circles_of(LabelPropagation(5, 7), [graph]) == [ruled(graph, groups, 5, 7)]
