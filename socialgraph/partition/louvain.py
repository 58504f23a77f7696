"""Louvain: communities of high modularity, grown from single nodes."""

from __future__ import annotations

from typing import Any

from socialgraph.partition.modularity import Modularity


class Louvain(Modularity):
    """Communities of high modularity, see :class:`Modularity`: nodes move one by one, then communities as a whole.

    Vincent D. Blondel, Jean-Loup Guillaume, Renaud Lambiotte and Etienne Lefebvre, "Fast unfolding of communities in
    large networks", Journal of Statistical Mechanics, 2008. Through igraph. :class:`Leiden` finds communities of
    modularity as high or higher.
    """

    def clustered(self, graph: Any, weight: list[float] | None) -> list[int]:
        """Return the communities; see :meth:`Modularity.clustered`."""
        found: list[int] = graph.community_multilevel(weights=weight, resolution=self.resolution).membership
        return found
