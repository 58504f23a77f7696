"""Leiden: communities of high modularity, each of them connected."""

from __future__ import annotations

from typing import Any

from socialgraph.partition.modularity import Modularity


class Leiden(Modularity):
    """Communities of high modularity, see :class:`Modularity`, as :class:`Louvain` seeks them, never in two pieces.

    Vincent A. Traag, Ludo Waltman and Nees Jan van Eck, "From Louvain to Leiden: guaranteeing well-connected
    communities", Scientific Reports 9, 2019. Through igraph, until nothing gets better.
    """

    def clustered(self, graph: Any, weight: list[float] | None) -> list[int]:
        """Return the communities; see :meth:`Modularity.clustered`."""
        parts = graph.community_leiden("modularity", weights=weight, resolution=self.resolution, n_iterations=-1)
        found: list[int] = parts.membership
        return found
