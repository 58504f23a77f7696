"""How often word pieces of a collection stand near each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

#: word pieces whose neighbours are counted at once
_AT_ONCE = 1 << 20


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
        for text in joined(documents, window):
            pairs = []
            for distance in range(1, window + 1):
                one, two = text[:-distance], text[distance:]
                within = (one >= 0) & (two >= 0)
                one, two = one[within], two[within]
                frequency += torch.bincount(torch.cat([one, two]), minlength=vocab_size)
                pairs.append(torch.minimum(one, two) * vocab_size + torch.maximum(one, two))
            # once for all distances: what is known of a large collection is far more than what is new
            new, times = torch.unique(torch.cat(pairs), return_counts=True)
            key, place = torch.unique(torch.cat([key, new]), return_inverse=True)
            count = torch.zeros_like(key).index_add_(0, place, torch.cat([count, times]))
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


def joined(documents: Iterable[Tensor], window: int) -> Iterator[Tensor]:
    """Yield documents of word pieces one after the other, many in one tensor, with ``window`` times -1 behind each."""
    gap = torch.full((window,), -1)
    parts: list[Tensor] = []
    size = 0
    for ids in documents:
        parts += [ids.long(), gap]
        size += len(ids)
        if size >= _AT_ONCE:
            yield torch.cat(parts)
            parts, size = [], 0
    if parts:
        yield torch.cat(parts)
