"""Edge-level friend circles: circles share no edge."""

from __future__ import annotations

from socialgraph.partition.friend_circles import FriendCircles


class EdgeCircles(FriendCircles):
    """Friend circles that share no edge (paper, section 3.2, edge-level partition).

    All edges between two members of a circle leave the graph; its nodes stay and may meet again elsewhere.
    """

    node_level = False
