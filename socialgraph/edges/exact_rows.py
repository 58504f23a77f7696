"""Rows of a social graph, by any probabilities: each coin is compared with its exact float64 probability."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from socialgraph.edges.pairs import Pairs

#: chance that any node of a document has more friends than its bound
FAILURE = 1e-12
#: pairs that are looked at together: as many as fit in a processor's caches, or enough for a GPU to be busy
BLOCK_PAIRS = {"cpu": 1 << 18, "other": 1 << 26}


class ExactRows:
    """Some documents of a social graph, side by side in tables ``[D, W]``, padded; their rows are drawn on demand.

    A node is named by its document's row d in the tables and its place w in the document. The last place of the
    tables is the pad, in every document: a place to point at when there is nothing to point at. It has no friends.

    Args:
        pairs: of all documents.
        document: which of them stand here, ``[D]``.
        as_matrix: see below.

    Attributes:
        node: id of each node, ``[D, W]``; elsewhere the id of the document's first.
        inside: which places are nodes, ``[D, W]``.
        as_matrix: whether these documents are best drawn as a whole (:meth:`matrix`): about half of a short document's
            rows are needed anyway, and each coin of the whole is tossed once, not from both ends.
        block_size: pairs to ask for at once.
    """

    def __init__(self, pairs: Pairs, document: Tensor, as_matrix: bool) -> None:
        length = pairs.ptr.diff()[document]
        self.pairs = pairs
        self.width = int(length.max()) + 1
        self.as_matrix = as_matrix
        self.block_size = by_device(BLOCK_PAIRS, document.device)
        place = torch.arange(self.width, device=document.device)
        first = pairs.ptr[document][:, None]
        self.inside = place < length[:, None]
        self.node = torch.where(self.inside, first + place, first)
        self.place = place.int()

    def of_node(self, x: Tensor) -> Tensor:
        """Return what ``x [N, ...]`` says of the nodes of the tables, ``[D, W, ...]``."""
        # on a CPU this takes a fourth of the time of x[self.node]
        return x.index_select(0, self.node.flatten()).view(*self.node.shape, *x.shape[1:])

    def friends(self, document: Tensor, place: Tensor, column: Tensor | None = None) -> Tensor:
        """Return who is friends with whom.

        Args:
            document: row of the tables, ``[R]``.
            place: a node of each, ``[R]``.
            column: places to compare with, for each document ``[D, n]``; by default all.

        Returns:
            ``[R, n]`` int32, 1 for friends.
        """
        node = self.node if column is None else self.node.gather(1, column)
        other = (self.place.expand_as(self.node) if column is None else column)[document]
        real = (self.inside if column is None else self.inside.gather(1, column))[document]
        real = real & self.inside[document, place][:, None] & (other != place[:, None])
        return (self.pairs.has_edge(self.node[document, place][:, None], node[document]) & real).int()

    def matrix(self) -> Tensor:
        """Return all rows of each document, ``[D, W, W]`` uint8, 1 for friends; the caller owns it.

        Right of the diagonal each coin is tossed; left of it stand the same.
        """
        size, width = self.node.shape
        whole = torch.zeros(size, width, width, dtype=torch.uint8, device=self.node.device)
        first = 0
        while first < width - 1:
            last = min(width - 1, first + max(1, self.block_size // (size * (width - first))))
            rows, right = slice(first, last), slice(first, width)
            block = self._upper(first, last).to(torch.uint8)
            corner = block[:, :, : last - first]
            whole[:, rows, right] = block
            whole[:, rows, rows] += corner.transpose(1, 2)
            whole[:, last:, rows] = block[:, :, last - first :].transpose(1, 2)
            first = last
        return whole

    def _upper(self, first: int, last: int) -> Tensor:
        """Return the friends of rows first ... last - 1 right of the diagonal, 1 or True, ``[D, R, W - first]``."""
        rows, right = slice(first, last), slice(first, None)
        edge = self.pairs.is_edge(self.node[:, rows, None], self.node[:, None, right])
        edge &= self.inside[:, rows, None] & self.inside[:, None, right]
        return edge.logical_and_(self.place[rows, None] < self.place[right])

    def every_row(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Walk over all rows, in order, in blocks: ``document [R]``, ``place [R]`` and their friends ``[R, W]``."""
        if self.as_matrix:
            document, place = self.inside.nonzero(as_tuple=True)
            yield document, place, self.matrix()[self.inside]
        else:
            for document, place in self._blocks():
                yield document, place, self.friends(document, place)

    def _blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        document, place = self.inside.nonzero(as_tuple=True)
        step = max(1, self.block_size // self.width)
        yield from zip(torch.split(document, step), torch.split(place, step), strict=True)

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the probabilities of edges between a place ``i [D]`` of each document and others ``j [D, n]``.

        float32; what stands for a node and itself, or the pad, means nothing.
        """
        return self.pairs.weight(self.node.gather(1, i[:, None]), self.node.gather(1, j))

    def degree_bound(self) -> Tensor:
        """Return what no node's degree exceeds, but for a chance of 1e-12 in each document: ``[D, W]`` int64."""
        return self._degree_bound(1.0)

    def _degree_bound(self, reach: Tensor | float) -> Tensor:
        """Return the bound where the terms of P that are summed are no larger than ``reach``.

        P is a sum of rounded numbers: a pair that can never meet may have one just below 0, which hides as much of the
        others in the expected degree. All roundings of a pair together are less than 2^-17 of the largest terms, and
        that much is added for each of the others.
        """
        others = self.inside.sum(1, keepdim=True) - 1
        expected = self.pairs.expected[self.node] + 2.0**-17 * reach * others
        # a bound for one node that fails with FAILURE / (nodes) fails for any of them with at most FAILURE
        bound = upper_tail(expected, others, math.log(1.0 / FAILURE) + torch.log(others + 1.0))
        return torch.where(self.inside, bound.floor().long(), 0)


def upper_tail(expected: Tensor, number: Tensor, surprise: Tensor) -> Tensor:
    r"""Return what a sum of independent coins exceeds with a chance of at most exp(-surprise).

    .. math::
        U = E + \lambda / 3 + \sqrt{(\lambda / 3)^2 + 2 \lambda E (1 - E / n)}

    (Bernstein's inequality; Boucheron, Lugosi and Massart, Concentration Inequalities, 2013, section 2.8. The variance
    of n coins of mean E together is at most E (1 - E / n).) It holds too where E is more than the true mean: larger
    probabilities only add to the sum.

    Args:
        expected: E, the expected sum.
        number: n, the number of coins; U is never more.
        surprise: lambda.
    """
    expected = torch.minimum(expected.clamp(min=0.0), number.double())
    variance = expected * (1.0 - expected / number.clamp(min=1))
    third = surprise / 3.0
    return torch.minimum(expected + third + torch.sqrt(third * third + 2.0 * surprise * variance), number.double())


def by_device(amounts: dict[str, int], device: torch.device) -> int:
    """Return the amount for a kind of device, or for others."""
    return amounts.get(device.type, amounts["other"])
