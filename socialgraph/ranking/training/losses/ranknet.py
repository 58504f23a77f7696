"""RankNet: the probability that the relevant document comes first."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from socialgraph.ranking.training.losses.pairs import mean_of_groups, pairs


def ranknet(scores: Tensor, group: Tensor, relevant: Tensor) -> Tensor:
    r"""Return the mean over the queries of the mean over the query's pairs.

    .. math:: L(d^+, d^-) = \log\big(1 + \exp(-(s(d^+) - s(d^-)))\big)

    Burges, Shaked, Renshaw, Lazier, Deeds, Hamilton and Hullender, "Learning to Rank using Gradient Descent",
    ICML 2005. Taken from it: the cross-entropy of the pair's order. Different here: the order of a pair is certain, and
    equally relevant documents are not compared.

    Args:
        scores: one for each document, ``[B]``.
        group: which query each document belongs to, 0, 1, ..., ``[B]``; groups may differ in size.
        relevant: which documents are relevant, ``[B]`` bool. A group without a relevant or without another document
            does not count; where no group has a pair, the loss is 0.
    """
    better, worse = pairs(group, relevant)
    # softplus does not overflow where a pair is in the wrong order by far
    return mean_of_groups(F.softplus(scores[worse] - scores[better]), group[better])
