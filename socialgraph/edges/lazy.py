r"""A social graph that nobody stores: its edges are drawn where somebody looks.

A coin is a function of names and places (:mod:`socialgraph.edges.coins`), so any row can be drawn without the others,
and drawn again. Coins are compared with float32 thresholds first, whose error is bounded; only the few coins that fall
within that bound are compared with the exact float64 probability. The edges are those of the exact comparison, always.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from functools import cache, cached_property

import torch
from torch import Tensor

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.coins import COIN_SIDES, finish, node_hashes, toss
from socialgraph.edges.layout import positions

#: chance that any node of a document has more friends than its bound
FAILURE = 1e-12
#: bytes of the matrices that are drawn together, and pairs of them at once: as much as fits in a processor's caches, or
#: so much that a GPU computes longer than it takes to tell it what
GROUP_BYTES = {"cpu": 1 << 25, "other": 1 << 30}
BLOCK_PAIRS = {"cpu": 1 << 18, "other": 1 << 26}
#: a threshold that no coin is below
NEVER = -math.inf


class LazyGraph:
    """The social graph of a document or of a batch of them.

    Args:
        probability: P / mu of each pair, not yet clipped at 1.
        coin_key: one for each document, ``[B]``.
        compile: draw whole documents by one fused kernel; None: where the graph lies on a GPU. See
            :class:`SocialEdges`.
        dense_up_to: documents of at most so many tokens are drawn as a whole, see :attr:`LazyGroup.short`.
    """

    def __init__(
        self, probability: Affinity, coin_key: Tensor, compile: bool | None = False, dense_up_to: int = 4096
    ) -> None:
        self.probability = probability
        self.batch, self.ptr = probability.batch, probability.ptr
        self.fuse = self.ptr.is_cuda if compile is None else compile
        self.lower, self.higher = node_hashes(coin_key[self.batch], positions(self.batch, self.ptr))
        self.dense_up_to = dense_up_to

    @cached_property
    def expected(self) -> Tensor:
        """Each node's expected degree, or a bit more where probabilities are clipped at 1: ``[N]`` float64."""
        return self.probability.row_sums()

    def has_edge(self, i: Tensor, j: Tensor) -> Tensor:
        """Return which pairs of nodes are friends (ids, broadcast); what stands at i == j means nothing."""
        low, high = torch.minimum(i, j), torch.maximum(i, j)
        return toss(self.lower[low], self.higher[high]) < self.probability.pair(low, high) * COIN_SIDES

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the probability of an edge, float32."""
        return self.probability.pair(torch.minimum(i, j), torch.maximum(i, j)).clamp(max=1.0).float()

    def groups(self) -> Iterator[LazyGroup]:
        """Walk over the documents that may have edges, in groups of similar length: at most twice the shortest."""
        room = by_device(GROUP_BYTES, self.ptr.device)
        length = self.ptr.diff()
        octave = torch.frexp((length - 1).clamp(min=0).double()).exponent
        for number in torch.unique(octave).tolist():
            document = (octave == number).nonzero().flatten()
            if number > 0:  # two tokens or more
                width = int(length[document].max()) + 1
                short = width - 1 <= self.dense_up_to
                amount = max(1, room // width**2) if short else 8
                for part in torch.split(document, amount):
                    yield LazyGroup(self, part)

    def edges(self) -> tuple[Tensor, Tensor]:
        """Return all edges: ``edge_index [2, E]``, sorted by row and column, and ``edge_weight [E]``."""
        none = torch.empty(0, dtype=torch.long, device=self.ptr.device)
        rows, columns, groups = [none], [none], 0
        for group in self.groups():
            groups += 1
            for document, place, hit in group.everything():
                row, column = hit.nonzero(as_tuple=True)
                rows.append(group.node[document[row], place[row]])
                columns.append(group.node[document[row], column])
        edge_index = torch.stack([torch.cat(rows), torch.cat(columns)])
        if groups > 1:
            edge_index = edge_index[:, torch.argsort(edge_index[0], stable=True)]
        return edge_index, self.weight(edge_index[0], edge_index[1])


class LazyGroup:
    """Some documents of a :class:`LazyGraph`, side by side in tables ``[D, W]``, padded.

    A node is named by its document's row d in the tables and its place w in the document. The last place of the
    tables is nobody's, in every document: a place to point at when there is nothing to point at.

    Attributes:
        node: id of each node, ``[D, W]``; elsewhere the id of the document's first.
        inside: which places are nodes, ``[D, W]``.
        short: whether these documents are best drawn as a whole (:meth:`dense`): about half of a short document's
            rows are needed anyway, and each coin of the whole is tossed once, not from both ends.
    """

    def __init__(self, graph: LazyGraph, document: Tensor) -> None:
        device = document.device
        self.graph = graph
        length = graph.ptr.diff()[document]
        self.width = int(length.max()) + 1
        self.short = self.width - 1 <= graph.dense_up_to
        self.block_size = by_device(BLOCK_PAIRS, device)
        place = torch.arange(self.width, device=device)
        first = graph.ptr[document][:, None]
        self.inside = place < length[:, None]
        self.node = torch.where(self.inside, first + place, first)
        self.lower, self.higher = graph.lower[self.node], graph.higher[self.node]
        self.swap = self.lower - self.higher  # what a pair's hash gains when its ends change places
        self.place = place.int()
        self.fast = isinstance(graph.probability, LowRank)
        if isinstance(graph.probability, LowRank):
            self._tabulate(graph.probability, document)

    def _tabulate(self, p: LowRank, document: Tensor) -> None:
        """Write P down as float32 multiples of one coin side, and how far off it may be."""
        inside, sides = self.inside, float(COIN_SIDES)
        self.document = torch.arange(len(document), device=document.device)[:, None]
        self.exact = tuple(table[self.node] for table in p.terms)
        self.exact_gain, self.exact_constant = p.gain[document, None], p.constant[document, None]
        # [2 + s, D, W], and in memory too: rows that lie side by side go through vector units
        left, right = (table.permute(2, 0, 1).contiguous() for table in self.exact)
        row, column = (left[0] + p.constant[document, None]) * sides, right[1] * sides
        left, right = left[2:] * sides, right[2:]
        kernel = torch.zeros(self.width, dtype=torch.float64, device=document.device)
        kernel[: p.kernel.numel()] = p.kernel[: self.width]
        self.exact_kernel = kernel
        gain = p.gain[document] * sides
        reach = gain.abs() * kernel.abs().amax() + row.abs().amax(1) + column.abs().amax(1)
        reach = reach + (left.abs().amax(2) * right.abs().amax(2)).sum(0)
        # Every number and every step is off by at most 2^-24 of the largest sum that may stand there.
        self.error = ((12 + 4 * len(left)) * 2.0**-24 * reach).float()
        self.row = torch.where(inside, row, NEVER).float()
        self.column = torch.where(inside, column, NEVER).float()
        self.left, self.right = list(left.float()), list(right.float())
        self.gain = gain.float()
        self.kernel = kernel.float()
        # windows[s, c] = kernel(|c - (W - 1 - s)|): the kernel as node W - 1 - s sees it
        self.windows = torch.cat([self.kernel[1:].flip(0), self.kernel]).unfold(0, self.width, 1)

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the probabilities of edges between a place ``i [D]`` of each document and others ``j [D, n]``.

        float32; what stands for a node and itself, or nobody, means nothing.
        """
        if not self.fast:
            return self.graph.weight(self.node.gather(1, i[:, None]), self.node.gather(1, j))
        # What LowRank.pair says of these nodes, with less to look up. P is symmetric, so either end may come first.
        near = self.exact_kernel[(i[:, None] - j).abs()]
        left, right = self.exact
        known = (left[self.document, i[:, None]] * right[self.document, j]).sum(-1)
        return (self.exact_gain * near + self.exact_constant + known).clamp(max=1.0).float()

    def degree_bound(self) -> Tensor:
        """Return what no node's degree exceeds, but for a chance of 1e-12 in each document: ``[D, W]`` int64."""
        others = self.inside.sum(1, keepdim=True) - 1
        # P is a sum of rounded numbers: a pair that can never meet may have one just below 0, which hides as much of
        # the others in the sum. All roundings of a pair together are less than 2^-17 of the largest terms.
        reach = self.error.double()[:, None] / 12.0 if self.fast else 0.0
        expected = self.graph.expected[self.node] + 2.0**-17 * (1.0 + reach) * others
        bound = upper_tail(expected, others, math.log(1.0 / FAILURE) + torch.log(others + 1.0))
        return torch.where(self.inside, bound.floor().long(), 0)

    def hits(self, document: Tensor, place: Tensor, column: Tensor | None = None) -> Tensor:
        """Return who is friends with whom.

        Args:
            document: row of the tables, ``[R]``.
            place: a node of each, ``[R]``.
            column: places to compare with, for each document ``[D, n]``; by default all.

        Returns:
            ``[R, n]`` int32, 1 for friends. The last place is nobody's friend.
        """
        if not self.fast:
            node = self.node if column is None else self.node.gather(1, column)
            other = (self.place.expand_as(self.node) if column is None else column)[document]
            real = (self.inside if column is None else self.inside.gather(1, column))[document]
            real = real & self.inside[document, place][:, None] & (other != place[:, None])
            return (self.graph.has_edge(self.node[document, place][:, None], node[document]) & real).int()

        def seen(table: Tensor) -> Tensor:
            table = table if column is None else table.gather(1, column)
            return table if table.size(0) == 1 else table.index_select(0, document)

        def own(table: Tensor) -> Tensor:
            return table[document, place][:, None]

        other = self.place[None] if column is None else seen(self.place.expand_as(self.node))
        i = place[:, None].int()
        # Both names change places where the other stands before: all bits are 1 there.
        x = (other - i).bitwise_right_shift_(31).bitwise_and_(seen(self.swap) - own(self.swap))
        coin = finish(x.add_(seen(self.higher)).add_(own(self.lower)))
        if column is None:
            near = self.windows.index_select(0, self.width - 1 - place)
        else:
            near = self.kernel.index_select(0, (other - i).abs_().flatten()).view_as(x)
        p = torch.addcmul(seen(self.column), self.gain[document][:, None], near).add_(own(self.row))
        for left, right in zip(self.left, self.right, strict=True):
            p.addcmul_(own(left), seen(right))
        distance = coin.float().sub_(p)
        if column is None:
            distance.scatter_(1, place[:, None], -NEVER)  # nobody is a friend of itself
        else:
            distance.masked_fill_(other == i, -NEVER)

        def names(row: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
            d = document[row]
            return self.node[d, place[row]], self.node[d, number if column is None else column[d, number]]

        return self._settle(distance, distance.abs().amin(1), self.error[document], names)

    def _settle(
        self,
        distance: Tensor,
        nearest: Tensor,
        error: Tensor,
        names: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    ) -> Tensor:
        """Return where the distance from threshold to coin is negative, ``[R, n]``; decide the close ones exactly.

        A row has close ones only where its smallest distance, at least ``nearest [R]``, is within the ``error [R]``.
        """
        row = (nearest <= error).nonzero().flatten()
        if row.numel():
            where, number = (distance[row].abs_() <= error[row, None]).nonzero(as_tuple=True)
            edge = self.graph.has_edge(*names(row[where], number))
            distance[row[where], number] = torch.where(edge, -1.0, 1.0)
        # the sign bit: comparisons of two floats are several times slower on a CPU
        return distance.view(torch.int32).bitwise_right_shift_(31).bitwise_and_(1)

    def everything(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Walk over all rows, in order, in blocks: ``document [R]``, ``place [R]`` and hits ``[R, W]``."""
        document, place = self.inside.nonzero(as_tuple=True)
        if self.short:
            yield document, place, self.dense()[self.inside]
            return
        step = max(1, self.block_size // self.width)
        for d, w in zip(torch.split(document, step), torch.split(place, step), strict=True):
            yield d, w, self.hits(d, w)

    def dense(self) -> Tensor:
        """Return the whole matrix of each document, ``[D, W, W]`` uint8, 1 for friends."""
        size, width = self.node.shape
        whole = torch.zeros(size, width, width, dtype=torch.uint8, device=self.node.device)
        if not self.fast:
            document, place = self.inside.nonzero(as_tuple=True)
            step = max(1, self.block_size // width)
            for d, w in zip(torch.split(document, step), torch.split(place, step), strict=True):
                whole[d, w] = self.hits(d, w).to(torch.uint8)
            return whole
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
        """Return the hits of rows first ... last - 1 right of the diagonal, ``[D, R, W - first]``."""
        rows, right = slice(first, last), slice(first, self.width)
        places = torch.arange(first, last, device=self.node.device)
        near = self.windows[:, right].index_select(0, self.width - 1 - places)
        compute = fused(self.node.device, len(self.left)) if self.graph.fuse else above
        distance, nearest = compute(
            self.lower[:, rows], self.higher[:, right], self.gain, near, self.row[:, rows], self.column[:, right],
            [x[:, rows] for x in self.left], [y[:, right] for y in self.right],
        )  # fmt: skip
        height = last - first
        lower = torch.ones(height, height, dtype=torch.bool, device=distance.device).tril_()
        distance[:, :, :height].masked_fill_(lower, -NEVER)

        def names(row: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
            d = row // height
            return self.node[d, first + row % height], self.node[d, first + number]

        error = self.error.repeat_interleave(height)
        return self._settle(distance.flatten(0, 1), nearest.flatten(), error, names).view_as(distance)


def above(
    lower: Tensor, higher: Tensor, gain: Tensor, near: Tensor, row: Tensor, column: Tensor,
    left: list[Tensor], right: list[Tensor],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return how far coins lie above their thresholds, about, and each row's smallest distance, above or below.

    ``[D, R, C]`` float32, negative for friends, and ``[D, R]``.

    Args:
        lower: hashes of the lower ends, ``[D, R]``; :func:`socialgraph.edges.coins.node_hashes`.
        higher: hashes of the higher ends, ``[D, C]``.
        gain: factor of the kernel, ``[D]``.
        near: the kernel at the distances of the pairs, ``[R, C]``.
        row: what a lower end adds, ``[D, R]``.
        column: what a higher end adds, ``[D, C]``.
        left: factors of the lower ends, each ``[D, R]``.
        right: factors of the higher ends, each ``[D, C]``.
    """
    coin = finish(lower[:, :, None] + higher[:, None, :])
    p = torch.addcmul(column[:, None], gain[:, None, None], near).add_(row[:, :, None])
    for x, y in zip(left, right, strict=True):
        p.addcmul_(x[:, :, None], y[:, None])
    distance = coin.float().sub_(p)
    return distance, torch.abs(distance, out=p).amin(2)


@cache
def fused(device: torch.device, terms: int) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return :func:`above` as one kernel: Triton on a GPU, C++ on a CPU.

    It is tried on random numbers first. Where it cannot be compiled, or does not do the same, a warning says so and
    :func:`above` itself is returned: the edges are the same.

    Args:
        device: where the kernel runs.
        terms: number of factors of a node, ``len(left)``.
    """
    kernel = torch.compile(above, dynamic=True)
    draw = torch.Generator().manual_seed(0)
    documents, rows, columns = 2, 33, 150

    def random(*shape: int) -> Tensor:
        return torch.rand(shape, generator=draw).to(device)

    def hashes(*shape: int) -> Tensor:
        return torch.randint(-(1 << 31), 1 << 31, shape, generator=draw).int().to(device)

    example = (
        hashes(documents, rows), hashes(documents, columns), random(documents), random(rows, columns),
        COIN_SIDES * random(documents, rows), COIN_SIDES * random(documents, columns),
        [1024.0 * random(documents, rows) for _ in range(terms)],
        [1024.0 * random(documents, columns) for _ in range(terms)],
    )  # fmt: skip
    try:
        found = kernel(*example)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever a compiler may say
        why = str(error).strip().split("\n")[0] or type(error).__name__
    else:
        # Sums are rounded in another order. A wrong coin is off by millions.
        if all(torch.allclose(x, y, rtol=0.0, atol=64.0) for x, y in zip(found, above(*example), strict=True)):
            return kernel
        why = "it does not do what its parts do"
    warnings.warn(f"coins are tossed without a fused kernel, which is slower ({why})", stacklevel=2)
    return above


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
