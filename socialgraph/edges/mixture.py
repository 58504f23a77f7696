"""Weighted sums of affinities."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.word_table import WordTable


class Mixture(Affinity):
    """A weighted sum of affinities over the same documents, for those that have no closed form."""

    def __init__(self, parts: list[Affinity], weights: list[Tensor]) -> None:
        super().__init__(parts[0].batch, parts[0].ptr)
        self.parts = parts
        self.weights = weights

    def pair(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the weighted sum over the parts; see :meth:`Affinity.pair`."""
        document = self.batch[i]
        p = self.weights[0][document] * self.parts[0].pair(i, j)
        for part, weight in zip(self.parts[1:], self.weights[1:], strict=True):
            p = p + weight[document] * part.pair(i, j)
        return p


def mix(parts: list[Affinity], weights: list[Tensor]) -> Affinity:
    """Return the sum of ``weights[x][document] * parts[x]``, in closed form where all parts have one.

    Args:
        parts: affinities over the same documents.
        weights: for each part a factor for each document, ``[B]``.
    """
    low = [part for part in parts if isinstance(part, LowRank)]
    pairs = list(zip(parts, weights, strict=True))
    tables = [(part, weight) for part, weight in pairs if isinstance(part, WordTable)]
    constants = [weight * part.constant for part, weight in pairs if isinstance(part, LowRank) and part.is_constant]
    if len(tables) == 1 and len(constants) == len(parts) - 1:
        ((table, weight),) = tables
        return table.shifted(weight, sum(constants, torch.zeros_like(weight)))
    # Several different kernels with a gain for each document have no common kernel.
    if len(low) < len(parts) or sum(bool(part.kernel.any()) for part in low) > 1:
        return Mixture(parts, weights)
    batch, ptr = parts[0].batch, parts[0].ptr
    left, right, constant, kernel, gain = [], [], torch.zeros_like(weights[0]), None, None
    for part, weight in zip(low, weights, strict=True):
        root = weight.clamp(min=0).sqrt().index_select(0, batch)[:, None]
        left.append(root * part.left)
        right.append(root * part.right)
        constant = constant + weight * part.constant
        if part.kernel.any():
            kernel, gain = part.kernel, weight * part.gain
    return LowRank(batch, ptr, kernel, gain, torch.cat(left, 1), torch.cat(right, 1), constant)
