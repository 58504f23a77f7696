r"""Rows of a social graph whose probabilities have a closed form: coins in float32, close calls in float64.

Node i and j are friends when coin < P * COIN_SIDES. Both sides are exact in float64, which is slow. So

1. the **threshold** t = P * COIN_SIDES is computed in float32, from tables that are made once for a document;
2. the **distance** coin - t says who is a friend wherever it is larger than the **error**, a bound on how far the
   float32 distance can be from the exact one;
3. the few pairs within the error, a handful in a million, are decided exactly.

The edges are those of the exact comparison, always.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from socialgraph.edges.affinity import LowRank
from socialgraph.edges.coins import COIN_SIDES, finish
from socialgraph.edges.exact_rows import ExactRows
from socialgraph.edges.fused import coin_distances, fused
from socialgraph.edges.pairs import Pairs

#: a threshold that no coin is below
NEVER = -math.inf


class FilteredRows(ExactRows):
    """Documents side by side whose coins go through the float32 filter; see the module.

    Args:
        pairs: see :class:`ExactRows`.
        p: their probabilities.
        document: see :class:`ExactRows`.
        as_matrix: see :class:`ExactRows`.
        fuse: whether matrices are drawn by one fused kernel, see :mod:`socialgraph.edges.fused`.

    Attributes:
        row: what a node adds to its thresholds as the first of a pair, ``[D, W]`` float32; NEVER for the pad.
        column: ... as the second of a pair.
        left: further factors of the first, each ``[D, W]``.
        right: factors of the second, so that t = gain * kernel(distance) + row + column + sum of left * right.
        gain: ``[D]``.
        kernel: ``[W]``.
        error: how far a distance may be off, ``[D]``.
    """

    def __init__(self, pairs: Pairs, p: LowRank, document: Tensor, as_matrix: bool, fuse: bool) -> None:
        super().__init__(pairs, document, as_matrix)
        self.fuse = fuse
        self.lower, self.higher = self.of_node(pairs.lower), self.of_node(pairs.higher)
        self.swap = self.lower - self.higher  # what the hash of a pair gains when its ends change places
        self.document = torch.arange(len(document), device=document.device)[:, None]

        # P itself: <left, right> is exact in float64, whatever the order (see LowRank)
        left, right = self.exact = self.of_node(p.terms[0]), self.of_node(p.terms[1])  # [D, W, 2 + s] each
        self.exact_gain, self.exact_constant = p.gain[document, None], p.constant[document, None]
        self.exact_kernel = torch.zeros(self.width, dtype=torch.float64, device=document.device)
        self.exact_kernel[: p.kernel.numel()] = p.kernel[: self.width]

        # Thresholds: P * COIN_SIDES, still in float64. Opposite columns 0 of left and 1 of right stand ones.
        sides = float(COIN_SIDES)
        row, column = (left[:, :, 0] + self.exact_constant) * sides, right[:, :, 1] * sides
        # [s, D, W], and in memory too: rows that lie side by side go through vector units
        further, opposite = left[:, :, 2:].permute(2, 0, 1).contiguous() * sides, right[:, :, 2:].permute(2, 0, 1)
        opposite, gain = opposite.contiguous(), p.gain[document] * sides
        self.error = distance_error(gain, self.exact_kernel, row, column, further, opposite)

        self.row = torch.where(self.inside, row, NEVER).float()
        self.column = torch.where(self.inside, column, NEVER).float()
        self.left, self.right = list(further.float()), list(opposite.float())
        self.gain, self.kernel = gain.float(), self.exact_kernel.float()
        # windows[s, c] = kernel(|c - (W - 1 - s)|): the kernel as node W - 1 - s sees it, without a table of distances
        self.windows = torch.cat([self.kernel[1:].flip(0), self.kernel]).unfold(0, self.width, 1)

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """See :meth:`ExactRows.weight`: what LowRank.pair says of these nodes, with less to look up."""
        near = self.exact_kernel[(i[:, None] - j).abs()]
        left, right = self.exact
        known = (left[self.document, i[:, None]] * right[self.document, j]).sum(-1)
        return (self.exact_gain * near + self.exact_constant + known).clamp(max=1.0).float()

    def degree_bound(self) -> Tensor:
        """See :meth:`ExactRows.degree_bound`; error / 12 is at least 2^-24 of the largest sum in sides of a coin."""
        return self._degree_bound(1.0 + self.error.double()[:, None] / 12.0)

    def friends(self, document: Tensor, place: Tensor, column: Tensor | None = None) -> Tensor:
        """See :meth:`ExactRows.friends`."""

        def seen(table: Tensor) -> Tensor:  # [R, n]: of those compared with
            table = table if column is None else table.gather(1, column)
            return table if table.size(0) == 1 else table.index_select(0, document)

        def own(table: Tensor) -> Tensor:  # [R, 1]: of the row's node
            return table[document, place][:, None]

        # The coin: the hash of a pair is its lower end's plus its higher end's. Where the other stands before, the two
        # change places: there, and only there, all bits of the difference's sign are 1.
        other = self.place[None] if column is None else seen(self.place.expand_as(self.node))
        i = place[:, None].int()
        moved = (other - i).bitwise_right_shift_(31).bitwise_and_(seen(self.swap) - own(self.swap))
        coin = finish(moved.add_(seen(self.higher)).add_(own(self.lower)))
        # The threshold, and the distance from it. P is symmetric, so the row's node may always count as the first.
        if column is None:
            near = self.windows.index_select(0, self.width - 1 - place)
        else:
            near = self.kernel.index_select(0, (other - i).abs_().flatten()).view_as(coin)
        threshold = torch.addcmul(seen(self.column), self.gain[document][:, None], near).add_(own(self.row))
        for left, right in zip(self.left, self.right, strict=True):
            threshold.addcmul_(own(left), seen(right))
        distance = coin.float().sub_(threshold)  # a coin has 24 bits: exact in float32
        if column is None:
            distance.scatter_(1, place[:, None], -NEVER)  # nobody is a friend of itself
        else:
            distance.masked_fill_(other == i, -NEVER)

        def ids(row: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
            d = document[row]
            return self.node[d, place[row]], self.node[d, number if column is None else column[d, number]]

        return self._decide(distance, distance.abs().amin(1), self.error[document], ids)

    def _upper(self, first: int, last: int) -> Tensor:
        """See :meth:`ExactRows._upper`."""
        rows, right = slice(first, last), slice(first, self.width)
        places = torch.arange(first, last, device=self.node.device)
        near = self.windows[:, right].index_select(0, self.width - 1 - places)
        compute = fused(self.node.device, len(self.left)) if self.fuse else coin_distances
        distance, nearest = compute(
            self.lower[:, rows], self.higher[:, right], self.gain, near, self.row[:, rows], self.column[:, right],
            [x[:, rows] for x in self.left], [y[:, right] for y in self.right],
        )  # fmt: skip
        height = last - first
        lower = torch.ones(height, height, dtype=torch.bool, device=distance.device).tril_()
        distance[:, :, :height].masked_fill_(lower, -NEVER)

        def ids(row: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
            d = row // height
            return self.node[d, first + row % height], self.node[d, first + number]

        error = self.error.repeat_interleave(height)
        return self._decide(distance.flatten(0, 1), nearest.flatten(), error, ids).view_as(distance)

    def _decide(
        self, distance: Tensor, nearest: Tensor, error: Tensor, ids: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    ) -> Tensor:
        """Return where the exact distance is negative, ``[R, n]`` int32.

        Args:
            distance: of each coin from its threshold, ``[R, n]``; changed.
            nearest: no pair of the row is nearer to its threshold, ``[R]``: few rows have close calls at all.
            error: how far the row's distances may be off, ``[R]``.
            ids: turns rows and columns of the table into ids of nodes.
        """
        row = (nearest <= error).nonzero().flatten()
        if row.numel():
            where, number = (distance[row].abs_() <= error[row, None]).nonzero(as_tuple=True)
            edge = self.pairs.has_edge(*ids(row[where], number))
            distance[row[where], number] = torch.where(edge, -1.0, 1.0)
        # the sign bit: comparisons of two floats are several times slower on a CPU
        return distance.view(torch.int32).bitwise_right_shift_(31).bitwise_and_(1)


def distance_error(gain: Tensor, kernel: Tensor, row: Tensor, column: Tensor, left: Tensor, right: Tensor) -> Tensor:
    r"""Return how far a distance computed in float32 may be from the exact one, ``[D]`` float32.

    Let R be the largest size that a threshold of the document, or any part of its sum, may have:
    max |gain kernel| + max |row| + max |column| + sum over s of max |left_s| max |right_s|. A float32 number or result
    is off by at most u = 2^-24 of its size, so by at most u R. Counted are

    * 4 numbers rounded when they are stored (gain, kernel, row, column), 2 for each product (left, right);
    * gain * kernel, + column, + row: 3 steps; a product and its sum: 2 for each s;
    * the coin is exact, and its difference from t is off by u of the *distance*, which matters at the error itself,
      where it is u times something far smaller than R: 1 is more than enough.

    That is 8 + 4 s. 12 + 4 s leave room for the second-order terms and for the rounding of the bound itself. The exact
    side is not quite exact either: float64 adds 2^-53 of R, nothing beside this room.

    Args:
        gain: in sides of a coin, ``[D]``; all float64.
        kernel: ``[W]``.
        row: ``[D, W]``.
        column: ``[D, W]``.
        left: ``[s, D, W]``.
        right: ``[s, D, W]``.
    """
    reach = gain.abs() * kernel.abs().amax() + row.abs().amax(1) + column.abs().amax(1)
    reach = reach + (left.abs().amax(2) * right.abs().amax(2)).sum(0)
    return ((12 + 4 * len(left)) * 2.0**-24 * reach).float()
