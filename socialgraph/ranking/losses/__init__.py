"""What a wrong order costs: losses of scores, group and relevant."""

from socialgraph.ranking.losses.binary import binary_cross_entropy
from socialgraph.ranking.losses.hinge import pairwise_hinge
from socialgraph.ranking.losses.listwise import listwise_cross_entropy
from socialgraph.ranking.losses.ranknet import ranknet
from socialgraph.ranking.losses.resolver import LOSSES, Loss, loss_resolver

__all__ = [
    "LOSSES",
    "Loss",
    "binary_cross_entropy",
    "listwise_cross_entropy",
    "loss_resolver",
    "pairwise_hinge",
    "ranknet",
]
