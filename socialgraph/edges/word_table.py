"""Affinities of words: how likely two are to be friends, wherever they stand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.utils import cumsum, scatter

from socialgraph.edges.affinity import Affinity, fixed
from socialgraph.edges.layout import positions
from socialgraph.kernels import SUM_STEP


class Words:
    """The different word pieces of each document of a batch, and the pairs of them: a square for each document.

    Args:
        batch: document of each node, ``[N]``.
        ptr: bounds of the documents, ``[B + 1]``.
        input_ids: word piece of each node, ``[N]``.

    Attributes:
        piece: the different word pieces, document by document, ``[U]``.
        document: of each of them, ``[U]``.
        times: how often it stands there, ``[U]``.
        of_node: which of them each node is, ``[N]``.
        size: how many a document has, ``[B]``.
        bounds: of the documents among them, ``[B + 1]``.
        place: of each within its document, ``[U]``.
        base: where each document's square begins among all pairs, ``[B + 1]``.
    """

    def __init__(self, batch: Tensor, ptr: Tensor, input_ids: Tensor) -> None:
        vocabulary = int(input_ids.max()) + 1 if input_ids.numel() else 1
        key, self.of_node, self.times = torch.unique(
            batch * vocabulary + input_ids, return_inverse=True, return_counts=True
        )
        self.piece, self.document = key % vocabulary, key // vocabulary
        self.size = torch.bincount(self.document, minlength=ptr.numel() - 1)
        self.bounds, self.base = cumsum(self.size), cumsum(self.size**2)
        self.place = positions(self.document, self.bounds)

    def entry(self, one: Tensor, other: Tensor) -> Tensor:
        """Return where pairs of words of the same document stand among all pairs (broadcast)."""
        document = self.document[one]
        return self.base[document] + self.place[one] * self.size[document] + self.place[other]

    @cached_property
    def pairs(self) -> tuple[Tensor, Tensor]:
        """Both words of every pair, ``[T]`` each: the square of each document, row by row."""
        document = torch.repeat_interleave(self.size**2)
        place = torch.arange(document.numel(), device=document.device) - self.base[document]
        first, width = self.bounds[document], self.size[document]
        return first + place // width, first + place % width


class WordTable(Affinity):
    """P by the two words alone: a table for each document, of its different word pieces.

    A document of u different word pieces costs O(u^2), however long it is; only its edges are drawn pair by pair.

    Args:
        batch: document of each node, ``[N]``.
        ptr: bounds of the documents, ``[B + 1]``.
        words: of the documents.
        table: P of every pair of :attr:`Words.pairs`, ``[T]``, float64, symmetric.
    """

    def __init__(self, batch: Tensor, ptr: Tensor, words: Words, table: Tensor) -> None:
        super().__init__(batch, ptr)
        self.words = words
        self.table = table

    @classmethod
    def of(cls, batch: Tensor, ptr: Tensor, input_ids: Tensor, table: Callable[[Words], Tensor]) -> WordTable:
        """Return the affinity of documents whose table is computed from their words."""
        words = Words(batch, ptr, input_ids)
        return cls(batch, ptr, words, table(words))

    def pair(self, i: Tensor, j: Tensor) -> Tensor:
        """Return P for the pairs; see :meth:`Affinity.pair`."""
        return self.table[self.words.entry(self.words.of_node[i], self.words.of_node[j])]

    @cached_property
    def _own(self) -> Tensor:
        """Where each word's pair with itself stands in the table, ``[U]``."""
        word = torch.arange(self.words.piece.numel(), device=self.table.device)
        return self.words.entry(word, word)

    @cached_property
    def _amount(self) -> Tensor:
        """How many ordered pairs of distinct nodes each place of the table stands for, ``[T]`` float64."""
        one, other = self.words.pairs
        times = self.words.times.double()
        amount = times[one] * times[other]
        amount[self._own] -= times
        return amount

    def row_sums(self) -> Tensor:
        """Return the row sums in O(u^2), the same numbers as those of all pairs; see :meth:`Affinity.row_sums`."""
        p = fixed(self.table.clamp(max=1.0), SUM_STEP)
        one, other = self.words.pairs
        sums = torch.zeros(self.words.piece.numel(), dtype=torch.float64, device=p.device)
        sums.index_add_(0, one, p * self.words.times[other])  # exact, in whatever order
        return (sums - p[self._own])[self.words.of_node]

    def highest(self) -> Tensor:
        """Return the highest P of two nodes, ``[B]``, 0 where there are no two; see :meth:`Affinity.highest`."""
        p = torch.where(self._amount > 0, self.table, 0.0)
        document = self.words.document[self.words.pairs[0]]
        return scatter(p, document, dim_size=self.ptr.numel() - 1, reduce="max")

    def clipped(self, factor: Tensor) -> tuple[Tensor, Tensor]:
        """Return what is clipped, and the rest, in O(u^2); see :meth:`Affinity.clipped`."""
        document = self.words.document[self.words.pairs[0]]
        full = self.table * factor[document] > 1.0
        # every pair stands here twice; whole numbers, so that the order of the sums does not matter
        clipped = torch.where(full, self._amount, 0.0)
        rest = torch.where(full, 0.0, (self.table * 2.0**24).round() * self._amount)
        count, rest = (scatter(x, document, dim_size=factor.numel()) for x in (clipped, rest))
        return count / 2.0, rest / 2.0**25

    def scaled(self, scale: Tensor, otherwise: Tensor) -> WordTable:
        """See :meth:`Affinity.scaled`."""
        return self.shifted(scale, torch.where(scale > 0, 0.0, otherwise))

    def shifted(self, factor: Tensor, constant: Tensor) -> WordTable:
        """Return ``factor [B]`` * P + ``constant [B]``."""
        document = self.words.document[self.words.pairs[0]]
        return WordTable(self.batch, self.ptr, self.words, factor[document] * self.table + constant[document])
