"""Who meets in which circle: strategies that gather the nodes of a graph in circles."""

from socialgraph.partition.blocks import Blocks
from socialgraph.partition.communities import Communities
from socialgraph.partition.edge_circles import EdgeCircles
from socialgraph.partition.friend_circles import FriendCircles
from socialgraph.partition.k_core import KCore
from socialgraph.partition.label_propagation import LabelPropagation
from socialgraph.partition.leiden import Leiden
from socialgraph.partition.louvain import Louvain
from socialgraph.partition.metis import Metis
from socialgraph.partition.node_circles import NodeCircles
from socialgraph.partition.partition import Partition
from socialgraph.partition.query_windows import QueryWindows
from socialgraph.partition.random_circles import RandomCircles
from socialgraph.partition.resolver import partition_resolver
from socialgraph.partition.sentences import Sentences
from socialgraph.partition.spectral import Spectral
from socialgraph.partition.whole import Whole
from socialgraph.partition.windows import Windows

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
