"""Who knows whom: probability patterns over pairs of tokens, and the sampler that draws edges from them."""

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.draws import HASH_RANGE, draw_key
from socialgraph.edges.dynamic_centrality import DynamicCentrality
from socialgraph.edges.dynamic_distance import DynamicDistance
from socialgraph.edges.edge_sampler import EdgeSampler
from socialgraph.edges.learned import Learned
from socialgraph.edges.mixture import Mixture, mix
from socialgraph.edges.network_models import Kleinberg, Nearby, QueryToAll, Uniform, WattsStrogatz
from socialgraph.edges.pattern import Centrality, Pattern
from socialgraph.edges.pmi import Pmi
from socialgraph.edges.reading_order import ReadingOrder
from socialgraph.edges.rules import (
    BlockHubs,
    BlockWindow,
    Hubs,
    QueryHubs,
    RandomBlocks,
    Rule,
    SentenceHubs,
    SlidingWindow,
)
from socialgraph.edges.social import SocialEdges
from socialgraph.edges.social_graph import SocialGraph
from socialgraph.edges.sparse import BigBirdEdges, LongformerEdges, QDSEdges, SparseEdges
from socialgraph.edges.static_centrality import StaticCentrality
from socialgraph.edges.static_distance import StaticDistance

__all__ = [
    "HASH_RANGE",
    "Affinity",
    "BigBirdEdges",
    "BlockHubs",
    "BlockWindow",
    "Centrality",
    "DynamicCentrality",
    "DynamicDistance",
    "EdgeSampler",
    "Hubs",
    "Kleinberg",
    "Learned",
    "LongformerEdges",
    "LowRank",
    "Mixture",
    "Nearby",
    "Pattern",
    "Pmi",
    "QDSEdges",
    "QueryHubs",
    "QueryToAll",
    "RandomBlocks",
    "ReadingOrder",
    "Rule",
    "SentenceHubs",
    "SlidingWindow",
    "SocialEdges",
    "SocialGraph",
    "SparseEdges",
    "StaticCentrality",
    "StaticDistance",
    "Uniform",
    "WattsStrogatz",
    "draw_key",
    "mix",
]
