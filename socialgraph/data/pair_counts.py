"""How often word pieces of a collection stand near each other."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

#: pairs of places that are counted at once
_AT_ONCE = 1 << 22


class PairCounts:
    r"""Counts of neighbours: how often word t stands within ``window`` places of word s, in all documents.

    .. math:: n(s, t) = |\{(i, j) : 0 < |i - j| \le window, \; x_i = s, x_j = t\}|

    over the ordered pairs of places of each document, so n(s, t) = n(t, s), and a pair of equal words counts twice.
    Pairs that are rarer than ``least`` are not kept, for most pairs are; the sums still count them.

    Args:
        key: s V + t of the pairs s <= t that are kept, sorted, ``[P]``.
        count: n of each, ``[P]``.
        frequency: the sum of n(s, t) over all t, for each s, ``[V]``.
    """

    def __init__(self, key: Tensor, count: Tensor, frequency: Tensor) -> None:
        self.key = key
        self.count = count
        self.frequency = frequency
        self.total = int(frequency.sum())

    @classmethod
    def of(cls, documents: Iterable[Tensor], vocab_size: int, window: int, least: int) -> PairCounts:
        """Count over documents of word pieces, each ``[L]``."""
        frequency = torch.zeros(vocab_size, dtype=torch.long)
        key, count = frequency.new_empty(0), frequency.new_empty(0)
        waiting: list[Tensor] = []

        def added() -> tuple[Tensor, Tensor]:
            """Return what is known with the pairs that wait, summed up by key."""
            new, times = torch.unique(torch.cat(waiting), return_counts=True) if waiting else (key[:0], count[:0])
            both, place = torch.unique(torch.cat([key, new]), return_inverse=True)
            return both, torch.zeros_like(both).index_add_(0, place, torch.cat([count, times]))

        for ids in documents:
            for distance in range(1, min(window, len(ids) - 1) + 1):
                one, two = ids[:-distance].long(), ids[distance:].long()
                waiting.append(torch.minimum(one, two) * vocab_size + torch.maximum(one, two))
                frequency += torch.bincount(one, minlength=vocab_size) + torch.bincount(two, minlength=vocab_size)
            if sum(map(len, waiting)) > _AT_ONCE:
                key, count = added()
                waiting = []
        key, count = added()
        count = torch.where(key // vocab_size == key % vocab_size, 2 * count, count)
        kept = count >= least
        return cls(key[kept], count[kept], frequency)

    def __call__(self, s: Tensor, t: Tensor) -> Tensor:
        """Return n(s, t) for word pieces that broadcast; 0 for pairs that are not kept."""
        key = torch.minimum(s, t) * self.frequency.numel() + torch.maximum(s, t)
        if not self.key.numel():
            return torch.zeros_like(key)
        place = torch.searchsorted(self.key, key).clamp(max=self.key.numel() - 1)
        return torch.where(self.key[place] == key, self.count[place], 0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key.numel():,} pairs)"
