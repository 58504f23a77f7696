"""Who meets in which circle: strategies that gather the nodes of a graph in circles."""

from socialgraph.partition.blocks import Blocks
from socialgraph.partition.edge_circles import EdgeCircles
from socialgraph.partition.friend_circles import FriendCircles
from socialgraph.partition.node_circles import NodeCircles
from socialgraph.partition.partition import Partition
from socialgraph.partition.resolver import partition_resolver
from socialgraph.partition.whole import Whole
from socialgraph.partition.windows import Windows

__all__ = [
    "Blocks",
    "EdgeCircles",
    "FriendCircles",
    "NodeCircles",
    "Partition",
    "Whole",
    "Windows",
    "partition_resolver",
]
