"""Louvain: communities of high modularity, grown from single nodes."""

from __future__ import annotations

import math

import networkx as nx
import torch
from torch import Tensor

from socialgraph.errors import OptionError
from socialgraph.partition.communities import Communities, disjoint


class Louvain(Communities):
    r"""Communities with more weight inside than chance would put there.

    .. math::
        Q = \frac{1}{2m} \sum_{ij} \Big( w_{ij} - \gamma \frac{d_i d_j}{2m} \Big) [c_i = c_j]

    with d the sum of a node's weights, 2m the sum over all nodes, and :math:`\gamma` the resolution.

    Vincent D. Blondel, Jean-Loup Guillaume, Renaud Lambiotte and Etienne Lefebvre, "Fast unfolding of communities in
    large networks", Journal of Statistical Mechanics, 2008. Through networkx, in Python: seconds for a document of
    2,048 words; :class:`Leiden` is several times faster.

    Unlike friend circles, each word has one circle, and the number of communities is found, not asked for: often fewer
    than ten in 2,048 words at sparsity 0.93, each larger than ``max_size``. A higher resolution makes more and smaller
    ones.

    Args:
        k: number of circles of a document at most.
        max_size: members of a circle at most; see :class:`Communities`.
        resolution: :math:`\gamma`.
        seed: of the order in which nodes are visited.

    Raises:
        OptionError: a resolution that is not above 0; see also :class:`Communities`.
    """

    def __init__(self, k: int = 16, max_size: int = 128, resolution: float = 1.0, seed: int = 0) -> None:
        super().__init__(k, max_size)
        if not 0 < resolution < math.inf:
            raise OptionError(f"resolution must be above 0, got {resolution}")
        self.resolution = resolution
        self.seed = seed

    def communities(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        """Return the communities; see :meth:`Communities.communities`."""
        graph = weighted_graph(edge_index, edge_weight, num_nodes)
        label = torch.empty(num_nodes, dtype=torch.long)
        clustering = nx.community.louvain_communities(graph, resolution=self.resolution, seed=self.seed)
        for number, nodes in enumerate(clustering):
            label[list(nodes)] = number
        return disjoint(label)


def weighted_graph(edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> nx.Graph:
    """Return the graph as networkx knows it."""
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    once = edge_index[0] < edge_index[1]
    row, column = edge_index[:, once].tolist()
    weight = [1.0] * len(row) if edge_weight is None else edge_weight[once].tolist()
    graph.add_weighted_edges_from(zip(row, column, weight, strict=True))
    return graph
