"""Leiden: communities of high modularity, each of them connected."""

from __future__ import annotations

import math
import random

import torch
from torch import Tensor

from socialgraph.errors import OptionError
from socialgraph.partition.communities import Communities, disjoint, library


class Leiden(Communities):
    """Communities of high modularity, as :class:`Louvain` seeks them, faster and never in two pieces.

    Vincent A. Traag, Ludo Waltman and Nees Jan van Eck, "From Louvain to Leiden: guaranteeing well-connected
    communities", Scientific Reports 9, 2019. Through igraph, until nothing gets better.

    Unlike friend circles, each word has one circle, and the number of communities is found, not asked for. A higher
    resolution makes more and smaller ones.

    Args:
        k: number of circles of a document at most.
        max_size: members of a circle at most; see :class:`Communities`.
        resolution: the factor of what chance puts inside, as in :class:`Louvain`.
        seed: of the order in which nodes are visited.

    Raises:
        OptionError: a resolution that is not above 0, or igraph is missing; see also :class:`Communities`.
    """

    def __init__(self, k: int = 16, max_size: int = 128, resolution: float = 1.0, seed: int = 0) -> None:
        super().__init__(k, max_size)
        if not 0 < resolution < math.inf:
            raise OptionError(f"resolution must be above 0, got {resolution}")
        self.resolution = resolution
        self.seed = seed

    def communities(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        """Return the communities; see :meth:`Communities.communities`."""
        igraph = library("igraph", self)
        once = edge_index[0] < edge_index[1]
        graph = igraph.Graph(num_nodes, list(zip(*edge_index[:, once].tolist(), strict=True)))
        weight = None if edge_weight is None else edge_weight[once].tolist()
        # igraph has one source of random numbers for everything: lend it ours, then give back Python's, its default.
        igraph.set_random_number_generator(random.Random(self.seed))
        try:
            parts = graph.community_leiden("modularity", weights=weight, resolution=self.resolution, n_iterations=-1)
        finally:
            igraph.set_random_number_generator(random)
        return disjoint(torch.tensor(parts.membership))
