"""Who knows whom: probability patterns over pairs of tokens, and the sampler that draws edges from them."""

from socialgraph.edges.affinity import Affinity, LowRank, Mixture, mix
from socialgraph.edges.coins import COIN_SIDES, coin_key
from socialgraph.edges.dynamic_centrality import DynamicCentrality
from socialgraph.edges.dynamic_distance import DynamicDistance
from socialgraph.edges.edge_sampler import EdgeSampler
from socialgraph.edges.pattern import Centrality, Pattern
from socialgraph.edges.social import SocialEdges
from socialgraph.edges.static_centrality import StaticCentrality
from socialgraph.edges.static_distance import StaticDistance
from socialgraph.edges.uniform import Uniform

__all__ = [
    "COIN_SIDES",
    "Affinity",
    "Centrality",
    "DynamicCentrality",
    "DynamicDistance",
    "EdgeSampler",
    "LowRank",
    "Mixture",
    "Pattern",
    "SocialEdges",
    "StaticCentrality",
    "StaticDistance",
    "Uniform",
    "coin_key",
    "mix",
]
