"""Weighted sums of affinities."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.edges.affinity import Affinity, LowRank, fixed, ordered_sum
from socialgraph.edges.word_table import WordTable
from socialgraph.kernels import FACTOR_STEP, SUM_STEP


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
    if len(low) == len(parts):
        given: dict[str, list[tuple[Tensor, float]]] = {"kernel": [], "row": [], "factor": [], "constant": []}
        for part, weight in low:
            for name, x in part.parts.items():
                given[name].append((x, weight))
        width = min((kernel.numel() for kernel, _ in given["kernel"]), default=0)  # each reaches the longest document
        kernels = [(kernel[:width], weight) for kernel, weight in given["kernel"]]
        return LowRank(
            batch,
            ptr,
            kernel=_weighted(kernels),
            row=_weighted(given["row"]),
            factor=_side_by_side(given["factor"]),
            sign=sum((part.sign for part, _ in low), ()),
            constant=_weighted(given["constant"]),
            rounded=True,
        )
    if len(tables) == 1 and len(low) == len(parts) - 1 and all(part.is_constant for part, _ in low):
        ((table, weight),) = tables
        nothing = torch.zeros_like(ptr[1:], dtype=torch.float64)
        constant = ordered_sum([nothing, *(weight * part.constant for part, weight in low)])
        return table.shifted(torch.full_like(constant, weight), constant)
    return Mixture(parts, weights)


def _weighted(terms: list[tuple[Tensor, float]]) -> Tensor | None:
    """Return a weighted sum of rounded tensors, rounded; None of nothing. One that counts fully is taken as it is."""
    if len(terms) == 1 and terms[0][1] == 1.0:
        return terms[0][0]
    return fixed(ordered_sum([weight * x for x, weight in terms]), SUM_STEP) if terms else None


def _side_by_side(factors: list[tuple[Tensor, float]]) -> Tensor | None:
    """Return rounded factors ``[N, S]`` whose products count as much as the weights say; None of nothing."""
    if len(factors) == 1 and factors[0][1] == 1.0:
        return factors[0][0]
    return fixed(torch.cat([weight**0.5 * x for x, weight in factors], 1), FACTOR_STEP) if factors else None
