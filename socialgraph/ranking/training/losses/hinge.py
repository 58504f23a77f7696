"""Pairwise hinge: the relevant document must lead by a margin."""

from __future__ import annotations

from torch import Tensor

from socialgraph.ranking.training.losses.pairs import mean_of_groups, pairs


def pairwise_hinge(scores: Tensor, group: Tensor, relevant: Tensor, margin: float = 1.0) -> Tensor:
    r"""Return the mean over the queries of the mean over the query's pairs.

    .. math:: L(d^+, d^-) = \max(0, m - s(d^+) + s(d^-))

    Joachims, "Optimizing Search Engines using Clickthrough Data", KDD 2002. Taken from it: a pair costs nothing once it
    is in order by the margin. Different here: scores of any model, and no penalty on its weights.

    Args:
        scores: one for each document, ``[B]``.
        group: which query each document belongs to, 0, 1, ..., ``[B]``; groups may differ in size.
        relevant: which documents are relevant, ``[B]`` bool. A group without a relevant or without another document
            does not count; where no group has a pair, the loss is 0.
        margin: m, in units of the score.
    """
    better, worse = pairs(group, relevant)
    return mean_of_groups((margin - scores[better] + scores[worse]).clamp(min=0), group[better])
