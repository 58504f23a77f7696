"""Node-level friend circles: circles share no node."""

from __future__ import annotations

from socialgraph.partition.friend_circles import FriendCircles


class NodeCircles(FriendCircles):
    """Friend circles that share no node (paper, section 3.2, node-level partition).

    All members of a circle leave the graph, the leader too. (The released code leaves the leader in, so that
    many leaders are swallowed by a later circle.)
    """

    node_level = True
