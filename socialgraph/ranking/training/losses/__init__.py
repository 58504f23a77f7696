"""What a wrong order costs: losses of scores, group and relevant."""

from socialgraph.ranking.training.losses.binary import binary_cross_entropy
from socialgraph.ranking.training.losses.hinge import pairwise_hinge
from socialgraph.ranking.training.losses.listwise import listwise_cross_entropy
from socialgraph.ranking.training.losses.ranknet import ranknet
from socialgraph.ranking.training.losses.resolver import LOSSES, Loss, loss_resolver

__all__ = [
    "LOSSES",
    "Loss",
    "binary_cross_entropy",
    "listwise_cross_entropy",
    "loss_resolver",
    "pairwise_hinge",
    "ranknet",
]
