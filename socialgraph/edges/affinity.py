r"""The probability matrix of a pattern, which is never stored.

Every pattern of the paper has the same shape, and so have their mixtures: a kernel of the distance (Toeplitz), a
summand and a product of a few numbers for each node (low rank) and a constant, see :class:`LowRank`. One pair, one
row, all row sums and the sum over the document then cost O(1), O(l), O(l) and O(l).

Numbers that are multiplied or summed are rounded first: factors of nodes to multiples of 2^-22, what is summed to
multiples of 2^-30. Products and sums are then exact in float64 in whatever order a device takes them, so that a graph
is the same bit for bit on every device.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.utils import cumsum, scatter, segment

from socialgraph.edges.layout import padded, positions
from socialgraph.errors import InputError
from socialgraph.kernels import FACTOR_STEP, SUM_STEP, ClosedForm, totals

#: up to this distance pairs are looked at one by one: neighbours' kernel would make every node suspicious
NEAR = 8


def fixed(x: Tensor, step: float) -> Tensor:
    """Round to multiples of ``step``, as float64."""
    return torch.round(x.double() / step) * step


def ordered_sum(terms: Sequence[Tensor]) -> Tensor:
    """Return the sum of tensors, from left to right on every device."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


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

    @cached_property
    def lengths(self) -> Tensor:
        """Number of nodes of each document, ``[B]``."""
        return self.ptr.diff()

    @cached_property
    def longest(self) -> int:
        """Number of nodes of the longest document."""
        return int(self.lengths.max()) if self.lengths.numel() else 0

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

    def scaled(self, scale: Tensor, otherwise: Tensor) -> Affinity:
        """Return P * ``scale``, and ``otherwise`` for every pair of a document whose scale is 0: ``[B]`` each."""
        return Scaled(self, scale, otherwise)

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


class Scaled(Affinity):
    """Another affinity times a number for each document; see :meth:`Affinity.scaled`."""

    def __init__(self, whole: Affinity, scale: Tensor, otherwise: Tensor) -> None:
        super().__init__(whole.batch, whole.ptr)
        self.whole, self.scale = whole, scale
        self.constant = torch.where(scale > 0, 0.0, otherwise)

    def pair(self, i: Tensor, j: Tensor) -> Tensor:
        """Return P for the pairs; see :meth:`Affinity.pair`."""
        document = self.batch[i]
        return self.scale[document] * self.whole.pair(i, j) + self.constant[document]


class LowRank(Affinity):
    r"""P in closed form: a kernel of the distance, a summand and a few factors of each node, and a constant.

    .. math::
        P_{ij} = scale \, \bigl(\kappa(|i - j|) + constant + row_i + row_j + \sum_s sign_s f_{is} f_{js}\bigr)

    All but ``scale`` is rounded, so what stands in the parentheses is exact in float64, in whatever order it is summed.

    Args:
        batch: document of each node, ``[N]``.
        ptr: bounds of the documents, ``[B + 1]``.
        kernel: value at each distance, ``[K]`` with K at least the longest document, or None.
        row: summand of each node, ``[N]``, or None.
        factor: factors of each node, ``[N, S]``, or None.
        sign: 1 or -1 for each factor; 1 by default.
        constant: ``[B]``; 0 by default.
        rounded: whether all of that is rounded already.

    ``scale`` is 1, but for what :meth:`scaled` returns.

    Raises:
        InputError: the kernel ends before the longest document does.
    """

    def __init__(
        self,
        batch: Tensor,
        ptr: Tensor,
        kernel: Tensor | None = None,
        row: Tensor | None = None,
        factor: Tensor | None = None,
        sign: tuple[float, ...] | None = None,
        constant: Tensor | None = None,
        rounded: bool = False,
    ) -> None:
        super().__init__(batch, ptr)
        if kernel is not None and not rounded and kernel.numel() < self.longest:
            raise InputError(f"the kernel has {kernel.numel()} distances, a document {self.longest} word pieces")
        given = {"kernel": kernel, "row": row, "factor": factor, "constant": constant}
        #: what was given, rounded
        self.parts = {
            name: x if rounded else fixed(x, FACTOR_STEP if name == "factor" else SUM_STEP)
            for name, x in given.items()
            if x is not None
        }
        nodes, documents = batch.numel(), ptr.numel() - 1

        def part(name: str, *size: int) -> Tensor:
            return self.parts[name] if name in self.parts else ptr.new_zeros(size, dtype=torch.float64)

        self.kernel = self.parts.get("kernel")
        self.row, self.factor, self.constant = part("row", nodes), part("factor", nodes, 0), part("constant", documents)
        self.sign = (1.0,) * self.factor.size(1) if sign is None else sign
        self.scale = ptr.new_ones(documents, dtype=torch.float64)

    @property
    def is_constant(self) -> bool:
        """Whether all pairs of a document have the same P, as far as is known without looking at numbers."""
        return self.parts.keys() <= {"constant"}

    def scaled(self, scale: Tensor, otherwise: Tensor) -> LowRank:
        """See :meth:`Affinity.scaled`."""
        whole = copy.copy(self)
        whole.__dict__.pop("_totals", None)  # other sums know nothing of scale and constant
        speaks = scale > 0
        whole.constant = torch.where(speaks, self.constant, otherwise)
        whole.scale = torch.where(speaks, self.scale * scale, 1.0)
        return whole

    @cached_property
    def signed(self) -> Tensor:
        """The factors with their signs, ``[N, S]``."""
        return self.factor if min(self.sign, default=1.0) > 0 else self.factor * self.factor.new_tensor(self.sign)

    def closed_form(self, key: Tensor) -> ClosedForm:
        """Return what the kernels need.

        Args:
            key: of each document, ``[B]``.
        """
        kernel = self.row.new_zeros(self.longest) if self.kernel is None else self.kernel
        left, right = self.signed.T, self.factor.T
        form = ClosedForm(self.ptr, kernel, self.constant, self.scale, self.row, left, right, key)
        return ClosedForm(*(x.detach().contiguous() for x in form))

    def pair(self, i: Tensor, j: Tensor) -> Tensor:
        """Return P for the pairs; see :meth:`Affinity.pair`."""
        document = self.batch[i]
        p = self.constant[document] + self.row[i] + self.row[j]
        if self.kernel is not None:
            p = p + self.kernel[(i - j).abs()]
        if self.factor.size(1):
            p = p + (self.signed[i] * self.factor[j]).sum(-1)
        return self.scale[document] * p

    def block(self, i: Tensor, j: Tensor) -> Tensor:
        """Return P for a block; the same numbers as :meth:`pair`, without a table of distances."""
        rows, columns = i.size(1), j.size(2)
        p = torch.bmm(self.signed[i[:, :, 0]], self.factor[j[:, 0]].transpose(1, 2))
        p.add_(self.constant[:, None, None]).add_(self.row[i]).add_(self.row[j])
        if self.kernel is not None:
            # windows[s, c] = kernel(|c - (columns - 1 - s)|): row r of the block is window columns - 1 - r
            windows = torch.cat([self.kernel[1:columns].flip(0), self.kernel[:columns]]).unfold(0, columns, 1)
            p.add_(windows[torch.arange(columns - 1, columns - 1 - rows, -1, device=i.device)])
        return p.mul_(self.scale[:, None, None])

    @cached_property
    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """Sums over each document: of ``row [B]``, of the factors and of their squares ``[B, S]``; all exact."""
        table = self.table
        factor = table[:, :, 1:]
        square = fixed(factor * factor, SUM_STEP).sum(1)
        return table[:, :, 0].sum(1), factor.sum(1), square

    @cached_property
    def table(self) -> Tensor:
        """Row and factors of each document side by side, 0 behind its end: ``[B, longest, 1 + S]``."""
        ids, inside = padded(self.ptr, self.longest)
        return torch.cat([self.row[:, None], self.factor], 1)[ids].masked_fill_(~inside[:, :, None], 0.0)

    def row_sums(self) -> Tensor:
        """Return the row sums in O(l); see :meth:`Affinity.row_sums`."""
        others = self.lengths[self.batch] - 1
        row, factor, _ = self.sums
        sums = (self.constant[self.batch] + self.row) * others + (row[self.batch] - self.row)
        for term in (self.signed * (factor[self.batch] - self.factor)).T:  # one after the other, on every device
            sums = sums + term
        if self.kernel is not None:
            place = positions(self.batch, self.ptr)
            near = torch.cumsum(self.kernel, 0) - self.kernel[:1]  # near[d]: the sum over distances 1 ... d
            sums = sums + near[place] + near[others - place]
        return self.scale[self.batch] * sums

    def highest(self) -> Tensor:
        """Return a bound in O(l), no more than 1; see :meth:`Affinity.highest`."""
        return self._totals[1]

    def _highest_from(self, distance: int) -> Tensor:
        """Return what the kernel does not exceed at this and all larger distances, ``[B]``."""
        if self.kernel is None or self.kernel.numel() <= distance:
            return torch.zeros_like(self.constant)
        return self.kernel[distance:].cummax(0).values[(self.lengths - 1 - distance).clamp(min=0)]

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

        numbers = torch.cat([self.row[:, None], self.factor], 1)
        low, high = (segment(numbers, self.ptr, reduce=way)[self.batch] for way in ("min", "max"))
        bound = torch.maximum(self.signed * low[:, 1:], self.signed * high[:, 1:]).sum(1) + self.row + high[:, 0]
        bound = self.scale[self.batch] * (bound + (self._highest_from(NEAR + 1) + self.constant)[self.batch])
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
        return self._totals[0]

    @cached_property
    def _totals(self) -> tuple[Tensor, Tensor]:
        return totals(self.closed_form(self.ptr[1:]))  # keys play no part
