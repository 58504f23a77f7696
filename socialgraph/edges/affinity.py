r"""The probability matrix of a pattern, which is never stored.

Every pattern of the paper has the same shape, and so have their mixtures:

.. math::
    P_{ij} = g \, \kappa(|i - j|) + \langle \ell_i, r_j \rangle + c

a kernel of the distance (Toeplitz), a product of a few numbers per node (low rank) and a constant.
One pair, one row, all row sums and the sum over the document then cost O(1), O(l), O(l) and O(l).

Numbers that are multiplied or summed are rounded first: node factors to multiples of 2^-22, the kernel and what
is summed over a document to multiples of 2^-30. Products and sums are then exact in float64 in whatever order a
device takes them, so that a graph is the same bit for bit on every device.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.utils import cumsum, scatter

from socialgraph.edges.layout import padded, positions
from socialgraph.kernels import ClosedForm

FACTOR_STEP = 2.0**-22
SUM_STEP = 2.0**-30
#: up to this distance pairs are looked at one by one: neighbours' kernel would make every node suspicious
NEAR = 8


def fixed(x: Tensor, step: float) -> Tensor:
    """Round to multiples of ``step``, as float64."""
    return torch.round(x.double() / step) * step


class Affinity:
    """How likely two tokens of one document are to be friends: a symmetric matrix, row by row.

    Args:
        batch: document of each node, ``[N]``, sorted.
        ptr: bounds of the documents, ``[B + 1]``.

    A pattern of your own that has no closed form implements :meth:`pair` and inherits everything else,
    at O(l^2) time and bounded memory where the closed form needs O(l).
    """

    #: pairs computed at once by the blockwise methods
    block_size = 1 << 20

    def __init__(self, batch: Tensor, ptr: Tensor) -> None:
        self.batch = batch
        self.ptr = ptr

    @property
    def lengths(self) -> Tensor:
        """Number of nodes of each document, ``[B]``."""
        return self.ptr.diff()

    def pair(self, i: Tensor, j: Tensor) -> Tensor:
        """Return P for node ids ``i`` and ``j`` (broadcast against each other), float64.

        Both ids of a pair lie in the same document. What stands at i == j is never used.
        """
        raise NotImplementedError(f"{type(self).__name__} has no pair")

    def row_sums(self) -> Tensor:
        """Return the sum of each node's row without itself, ``[N]``: its expected degree before scaling.

        What exceeds 1 counts as 1, so that sums stay exact however P was scaled; closed forms count all of it.
        """
        sums = torch.zeros(self.batch.numel(), dtype=torch.float64, device=self.batch.device)
        for i, j, upper, p in self.blocks():
            p = fixed(p.clamp(max=1.0), SUM_STEP).masked_fill_(~upper, 0.0)
            sums.index_add_(0, i.flatten(), p.sum(2).flatten())
            sums.index_add_(0, j.flatten(), p.sum(1).flatten())
        return sums

    def totals(self) -> Tensor:
        """Return the sum over all ordered pairs i != j of each document, ``[B]``."""
        # whole numbers: float64 cannot hold the sums over long documents, and a GPU adds in any order
        sums = self.row_sums()
        whole = torch.round(sums / SUM_STEP).long()
        nothing = scatter(sums * 0.0, self.batch, dim_size=self.ptr.numel() - 1)  # not 0 where a sum is no number
        return scatter(whole, self.batch, dim_size=self.ptr.numel() - 1).double() * SUM_STEP + nothing

    def highest(self) -> Tensor:
        """Return what no pair of a document exceeds, ``[B]``; not always reached."""
        return torch.ones(self.ptr.numel() - 1, dtype=torch.float64, device=self.ptr.device)

    def clipped(self, factor: Tensor) -> tuple[Tensor, Tensor]:
        """Return how many pairs i < j have P * ``factor [B]`` > 1, and the sum of P over the others: ``[B]`` each."""
        count, rest = torch.zeros_like(factor), torch.zeros_like(factor)
        for _, _, upper, p in self.blocks():
            full = (p * factor[:, None, None] > 1.0) & upper
            count += full.sum((1, 2))
            # whole numbers, so that the order of the sum does not matter
            rest += (p * 2.0**24).round_().masked_fill_(full | ~upper, 0.0).sum((1, 2))
        return count, rest / 2.0**24

    def dense(self) -> list[Tensor]:
        """Return the whole matrix of each document, ``[l, l]``, diagonal 0. For plots and tests."""
        matrices = []
        for start, end in zip(self.ptr[:-1].tolist(), self.ptr[1:].tolist(), strict=True):
            ids = torch.arange(start, end, device=self.ptr.device)
            matrices.append(self.pair(ids[:, None], ids[None, :]).fill_diagonal_(0.0))
        return matrices

    def blocks(self, nodes: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Walk over all pairs i < j of all documents at once, in blocks of rows.

        Yields ``i [B, R, 1]``, ``j [B, 1, C]``, a mask ``[B, R, C]`` of the places that are pairs, and P there.
        Columns left of the block's first row are skipped, which saves half of the square.

        Args:
            nodes: only pairs of these, sorted, ``[M]``; by default of all.
        """
        ptr = self.ptr if nodes is None else cumsum(torch.bincount(self.batch[nodes], minlength=self.ptr.numel() - 1))
        width = int(ptr.diff().max()) if ptr.numel() > 1 else 0
        ids, inside = padded(ptr, width)
        ids = ids if nodes is None else nodes[ids]
        rows = max(1, self.block_size // max(1, ids.numel()))
        for first in range(0, width, rows):
            i, j = ids[:, first : first + rows, None], ids[:, None, first:]
            upper = inside[:, first : first + rows, None] & inside[:, None, first:]
            yield i, j, upper.logical_and_(i < j), self.block(i, j) if nodes is None else self.pair(i, j)

    def block(self, i: Tensor, j: Tensor) -> Tensor:
        """Return P for a block of :meth:`blocks`: rows and columns begin at the same place of each document."""
        return self.pair(i, j)


class LowRank(Affinity):
    r"""P = gain * kernel(|i - j|) + <left_i, right_j> + constant, in closed form.

    Args:
        batch: document of each node, ``[N]``.
        ptr: bounds of the documents, ``[B + 1]``.
        kernel: value at each distance, ``[K]`` with K at least the longest document, or None.
        gain: factor of the kernel in each document, ``[B]``; 1 by default.
        left: node factors, ``[N, r]``, or None.
        right: node factors, ``[N, r]``; swapping left and right must not change the product's sum.
        constant: ``[B]``; 0 by default.
    """

    def __init__(
        self,
        batch: Tensor,
        ptr: Tensor,
        kernel: Tensor | None = None,
        gain: Tensor | None = None,
        left: Tensor | None = None,
        right: Tensor | None = None,
        constant: Tensor | None = None,
    ) -> None:
        super().__init__(batch, ptr)
        documents = ptr.numel() - 1
        width = int(self.lengths.max()) if documents else 0
        zero = torch.zeros((), dtype=torch.float64, device=ptr.device)
        none = zero.expand(batch.numel(), 0)
        self.kernel = zero.expand(width) if kernel is None else fixed(kernel, SUM_STEP)[:width]
        self.gain = (zero + 1.0).expand(documents) if gain is None else gain.double()
        self.left = none if left is None else fixed(left, FACTOR_STEP)
        self.right = none if right is None else fixed(right, FACTOR_STEP)
        self.constant = zero.expand(documents) if constant is None else constant.double()

    @property
    def is_constant(self) -> bool:
        """Whether all pairs of a document have the same P, as far as is known without looking at factors."""
        return not (self.left.numel() or bool(self.kernel.any()))

    @cached_property
    def terms(self) -> tuple[Tensor, Tensor]:
        """The product with fewer columns: ``<left_i, right_j> = <l_i, r_j>``, ``l`` and ``r`` ``[N, 2 + s]``.

        Columns of ``right`` that are constant in every document are summed up in column 0 of ``l``, those of ``left``
        in column 1 of ``r``; what stands opposite is 1. All sums are exact.
        """
        first = self.ptr.index_select(0, self.batch)
        product, one = self.left * self.right, torch.ones_like(self.batch, dtype=torch.float64)[:, None]
        row = (self.right == self.right.index_select(0, first)).all(0)
        column = (self.left == self.left.index_select(0, first)).all(0) & ~row
        rest = ~(row | column)
        left = torch.cat([product[:, row].sum(1, keepdim=True), one, self.left[:, rest]], 1)
        right = torch.cat([one, product[:, column].sum(1, keepdim=True), self.right[:, rest]], 1)
        return left, right

    def closed_form(self, key: Tensor) -> ClosedForm:
        """Return what the kernels need.

        Args:
            key: of each document, ``[B]``.
        """
        left, right = self.terms
        row, column, u, v = left[:, 0], right[:, 1], left[:, 2:].T, right[:, 2:].T
        form = ClosedForm(self.ptr, self.kernel, self.gain, self.constant, row, column, u, v, key)
        return ClosedForm(*(x.contiguous() for x in form))

    def pair(self, i: Tensor, j: Tensor) -> Tensor:
        """Return P for the pairs; see :meth:`Affinity.pair`."""
        document = self.batch[i]
        near = self.gain[document] * self.kernel[(i - j).abs()] + self.constant[document]
        if not self.left.size(1):
            return near
        # the terms have two columns at least: of fewer there is nothing to save
        left, right = self.terms if self.left.size(1) > 2 else (self.left, self.right)
        return near + (left[i] * right[j]).sum(-1)

    def block(self, i: Tensor, j: Tensor) -> Tensor:
        """Return P for a block; the same numbers as :meth:`pair`, without a table of distances."""
        rows, columns = i.size(1), j.size(2)
        # windows[s, c] = kernel(|c - (columns - 1 - s)|): row r of the block is window columns - 1 - r
        windows = torch.cat([self.kernel[1:columns].flip(0), self.kernel[:columns]]).unfold(0, columns, 1)
        near = windows[torch.arange(columns - 1, columns - 1 - rows, -1, device=i.device)]
        known = torch.bmm(self.left[i[:, :, 0]], self.right[j[:, 0]].transpose(1, 2))
        p = near * self.gain[:, None, None]
        return p.add_(self.constant[:, None, None]).add_(known)

    def row_sums(self) -> Tensor:
        """Return the row sums in O(l); see :meth:`Affinity.row_sums`."""
        place = positions(self.batch, self.ptr)
        others = self.lengths[self.batch] - 1
        near = torch.cumsum(self.kernel, 0) - self.kernel[:1]  # near[d]: the sum over distances 1 ... d
        sums = self.gain[self.batch] * (near[place] + near[others - place])
        sums = sums + self.constant[self.batch] * others
        everyone = scatter(self.right, self.batch, dim_size=self.ptr.numel() - 1)
        for term in (self.left * (everyone[self.batch] - self.right)).T:  # one after the other, on every device
            sums = sums + term
        return sums

    def highest(self) -> Tensor:
        """Return a bound in O(l), no more than 1; see :meth:`Affinity.highest`."""
        documents = self.ptr.numel() - 1
        left, right = (scatter(x.abs(), self.batch, dim_size=documents, reduce="max") for x in self.terms)
        return (self._highest_from(1) + self.constant + (left * right).sum(1)).clamp(max=1.0)

    def _highest_from(self, distance: int) -> Tensor:
        """Return what the kernel's part of P does not exceed at this and all larger distances, ``[B]``."""
        kernel = self.kernel[distance:]
        if kernel.numel() == 0:
            return torch.zeros_like(self.gain)
        return self.gain * kernel.cummax(0).values[(self.lengths - 1 - distance).clamp(min=0)]

    def clipped(self, factor: Tensor) -> tuple[Tensor, Tensor]:
        """Return what is clipped, and the rest; see :meth:`Affinity.clipped`.

        Neighbours are looked at one by one. Of pairs farther apart only those are whose nodes could both be clipped
        with somebody: O(l + h^2) for h such nodes. The rest is the document's sum without what is clipped.
        """
        documents = factor.numel()
        count, steps = torch.zeros(2, documents, dtype=torch.long, device=factor.device)

        def note(document: Tensor, p: Tensor, pairs: Tensor) -> None:
            full = (p * factor[document][:, None] > 1.0) & pairs
            count.index_add_(0, document, full.sum(1))
            # whole numbers, so that the order of the sum does not matter
            steps.index_add_(0, document, torch.round(p / SUM_STEP).long().masked_fill_(~full, 0).sum(1))

        i = torch.arange(self.batch.numel(), device=factor.device)[:, None]
        j = i + torch.arange(1, NEAR + 1, device=factor.device)
        end = self.ptr[1:][self.batch][:, None]
        note(self.batch, self.pair(i, torch.minimum(j, end - 1)), j < end)

        left, right = self.terms
        low, high = (scatter(right, self.batch, dim_size=documents, reduce=way)[self.batch] for way in ("min", "max"))
        bound = torch.maximum(left * low, left * high).sum(1)
        bound = bound + (self._highest_from(NEAR + 1) + self.constant)[self.batch]
        suspects = (bound * factor[self.batch] > 1.0 - 1e-9).nonzero().flatten()  # the bound is rounded, too
        document = torch.arange(documents, device=factor.device)
        for i, j, upper, p in self.blocks(suspects):
            far = upper & (j - i > NEAR)
            note(document.repeat_interleave(i.size(1)), p.flatten(0, 1), far.flatten(0, 1))

        rest = self.totals() / 2.0 - steps * SUM_STEP
        # what is smaller than all roundings together is nothing
        return count.double(), torch.where(rest > (count + self.lengths) * SUM_STEP, rest, 0.0)

    def totals(self) -> Tensor:
        """Return the documents' sums in O(l); see :meth:`Affinity.totals`.

        Not the sum of :meth:`row_sums`, whose terms are rounded: every sum here is exact.
        """
        documents, n = self.ptr.numel() - 1, self.lengths
        near = torch.cumsum(self.kernel, 0) - self.kernel[:1]
        below = torch.cumsum((near / SUM_STEP).long(), 0)  # below[m]: the sum over pairs i < j < m + 1, in steps
        last = (n - 1).clamp(min=0)
        pairs = below[last].double() * SUM_STEP if below.numel() else torch.zeros_like(self.gain)
        totals = 2.0 * self.gain * pairs + self.constant * (n * last)
        products = fixed(self.left * self.right, SUM_STEP)
        left, right, own = (scatter(x, self.batch, dim_size=documents).T for x in (self.left, self.right, products))
        for term in left * right - own:
            totals = totals + term
        return torch.where(n > 1, totals, 0.0)
