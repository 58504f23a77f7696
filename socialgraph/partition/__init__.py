"""Who meets in which circle: strategies that gather the nodes of a graph in circles."""

from socialgraph.partition.blocks import Blocks, Sentences
from socialgraph.partition.communities import Communities
from socialgraph.partition.friend_circles import EdgeCircles, FriendCircles, NodeCircles
from socialgraph.partition.k_core import KCore
from socialgraph.partition.label_propagation import LabelPropagation
from socialgraph.partition.metis import Metis
from socialgraph.partition.modularity import Leiden, Louvain
from socialgraph.partition.partition import Partition
from socialgraph.partition.query_windows import QueryWindows
from socialgraph.partition.random_circles import RandomCircles
from socialgraph.partition.resolver import partition_resolver
from socialgraph.partition.spectral import Spectral
from socialgraph.partition.windows import Whole, Windows

__all__ = [
    "Blocks",
    "Communities",
    "EdgeCircles",
    "FriendCircles",
    "KCore",
    "LabelPropagation",
    "Leiden",
    "Louvain",
    "Metis",
    "NodeCircles",
    "Partition",
    "QueryWindows",
    "RandomCircles",
    "Sentences",
    "Spectral",
    "Whole",
    "Windows",
    "partition_resolver",
]
