"""Weighted sums of affinities."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.edges.affinity import Affinity, LowRank, ordered_sum
from socialgraph.edges.word_table import WordTable


class Mixture(Affinity):
    """A weighted sum of affinities over the same documents, for those that have no closed form."""

    def __init__(self, parts: list[Affinity], weights: list[float]) -> None:
        super().__init__(parts[0].batch, parts[0].ptr)
        self.parts = parts
        self.weights = weights

    def pair(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the weighted sum over the parts; see :meth:`Affinity.pair`."""
        p = self.weights[0] * self.parts[0].pair(i, j)
        for part, weight in zip(self.parts[1:], self.weights[1:], strict=True):
            p = p + weight * part.pair(i, j)
        return p


def mix(parts: list[Affinity], weights: list[float]) -> Affinity:
    """Return the sum of ``weights[x] * parts[x]``, in closed form where all parts have one.

    Args:
        parts: affinities over the same documents, none of them scaled.
        weights: a factor for each, not negative.
    """
    pairs = list(zip(parts, weights, strict=True))
    low = [(part, weight) for part, weight in pairs if isinstance(part, LowRank)]
    tables = [(part, weight) for part, weight in pairs if isinstance(part, WordTable)]
    batch, ptr = parts[0].batch, parts[0].ptr
    nothing = torch.zeros_like(ptr[1:], dtype=torch.float64)
    constant = ordered_sum([nothing, *(weight * part.constant for part, weight in low)])
    if len(low) == len(parts):
        kernels = [weight * part.kernel[: part.longest] for part, weight in low if part.kernel is not None]
        return LowRank(
            batch,
            ptr,
            kernel=ordered_sum(kernels) if kernels else None,
            row=ordered_sum([weight * part.row for part, weight in low]),
            factor=torch.cat([weight**0.5 * part.factor for part, weight in low], 1),
            sign=sum((part.sign for part, _ in low), ()),
            constant=constant,
        )
    if len(tables) == 1 and len(low) == len(parts) - 1 and all(part.is_constant for part, _ in low):
        ((table, weight),) = tables
        return table.shifted(torch.full_like(constant, weight), constant)
    return Mixture(parts, weights)
