"""Edge-level friend circles: circles share no edge."""

from __future__ import annotations

from torch import Tensor

from socialgraph.partition.friend_circles import FriendCircles
from socialgraph.partition.remaining_graph import RemainingGraph


class EdgeCircles(FriendCircles):
    """Friend circles that share no edge (paper, section 3.2, edge-level partition).

    All edges between two members of a circle leave the graph; its nodes stay and may meet again elsewhere.
    """

    def remove(self, graph: RemainingGraph, circle: Tensor) -> None:
        """Take the edges among the members away."""
        graph.remove_edges_among(circle)
