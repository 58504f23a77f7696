"""Blocks and sentences: the text is cut where its neighbours know each other least."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import cumsum

from socialgraph.errors import check_whole
from socialgraph.partition.partition import Partition
from socialgraph.ranks import ranks

#: ties weaker than this end a sentence: "." "?" and "!" weigh 1, a comma 2, see :class:`socialgraph.edges.ReadingOrder`
SENTENCE_END = 1.5


class Blocks(Partition):
    r"""Consecutive blocks of at most ``size`` tokens, cut as cheaply as can be.

    With w(i) the weight of the tie between node i and the next, 0 where there is none and at the document's end, the
    blocks minimise

    .. math:: \sum_{\text{blocks}} (\text{segment} + w(\text{last node of the block}))

    so that they are few and end at weak ties. A block may end at a tie weaker than ``forced``. Where such ends lie more
    than ``size`` tokens apart, it may also end at every multiple of ``size`` behind the former, and nowhere else. Among
    equally cheap ways the last block is the shortest, then the one before it, and so on.

    Ming Ding, Chang Zhou, Hongxia Yang and Jie Tang, "CogLTX: Applying BERT to Long Texts", NeurIPS 2020 (the cutting;
    KeyB of Minghan Li and Eric Gaussier takes it over). Taken from it: costs, places of forced cuts, ties and the 63
    tokens. Different here: the costs are the weights of a graph, :class:`~socialgraph.edges.ReadingOrder` draws the one
    that has CogLTX's, and any other graph can be cut as well; of it only ties between neighbours in the text are read.

    The first node of a block stands as its leader.

    Args:
        size: tokens of a block, at most.
        segment: what a block costs by itself.
        forced: ties of this weight or more are cut only where there is no other way.

    Raises:
        OptionError: size < 1.
    """

    by_place = True

    def __init__(self, size: int = 63, segment: float = 4.0, forced: float = 8.0) -> None:
        super().__init__()
        check_whole("size", size, 1)
        self.size = size
        self.segment = segment
        self.forced = forced

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the blocks of every document; an empty document has none. Without weights every tie weighs 1."""
        node = torch.arange(batch.numel(), device=batch.device)
        ptr = cumsum(torch.bincount(batch, minlength=batch_size))
        last = node == ptr[batch + 1] - 1
        weight = self._ties(edge_index, edge_weight, last)
        end = self._ends(node, ptr[batch], last, weight)
        first = torch.ones_like(last)
        first[1:] = self._cheapest(node[end] - ptr[batch[end]], weight[end], batch[end], batch_size, end)[:-1]
        return torch.stack([node, first.long().cumsum(0) - 1]), node[first]

    def _ties(self, edge_index: Tensor, edge_weight: Tensor | None, last: Tensor) -> Tensor:
        """Return the weight of the tie behind each node, ``[N]``."""
        weight = torch.zeros_like(last, dtype=torch.float64)
        ahead = edge_index[1] == edge_index[0] + 1
        weight[edge_index[0, ahead]] = 1.0 if edge_weight is None else edge_weight[ahead].double()
        return weight.masked_fill(last, 0.0)

    def _ends(self, node: Tensor, start: Tensor, last: Tensor, weight: Tensor) -> Tensor:
        """Return where a block may end, ``[N]`` bool."""
        end = (weight < self.forced) | last
        # the end before each node, or the place before the document's first node
        former = torch.where(node == start, node - 1, -1)
        former[1:] = torch.maximum(former[1:], torch.where(end[:-1], node[:-1], -1))
        former = former.cummax(0).values if former.numel() else former
        return end | ((node - former) % self.size == 0)

    def _cheapest(self, place: Tensor, weight: Tensor, document: Tensor, batch_size: int, end: Tensor) -> Tensor:
        """Return where the blocks end, ``[N]`` bool: one step for the k-th possible end of all documents.

        Args:
            place: of each possible end in its document, ``[K]``.
            weight: of its tie, ``[K]``.
            document: of each, sorted, ``[K]``.
            batch_size: number of documents.
            end: the possible ends among the nodes, ``[N]``.
        """
        amount = torch.bincount(document, minlength=batch_size)
        rank = torch.arange(document.numel(), device=end.device) - cumsum(amount)[document] + 1
        steps = int(amount.max()) if amount.numel() else 0
        step = torch.arange(steps + 1, device=end.device)
        places = place.new_full((batch_size, steps + 1), -1)  # column 0: before the document's first token
        costs = weight.new_zeros(batch_size, steps + 1)
        places[document, rank], costs[document, rank] = place, weight + self.segment
        # Float64 keeps the sums of such costs exact, so that ties are ties on every device.
        total, former = torch.zeros_like(costs), torch.zeros_like(places)
        for k in range(1, steps + 1):
            low = max(0, k - self.size)  # ends further back are further than a block is long
            within = places[:, k, None] - places[:, low:k] <= self.size
            before = total[:, low:k].masked_fill(~within, torch.inf)
            least = before.amin(1)
            total[:, k] = least + costs[:, k]
            former[:, k] = torch.where(before == least[:, None], step[low:k], 0).amax(1)
        # From each document's last end back to its start: everything within 1, 2, 4, ... steps.
        cut = step == amount[:, None]
        for _ in range(steps.bit_length()):
            row, column = cut.nonzero(as_tuple=True)
            cut[row, former[row, column]] = True
            former = former.gather(1, former)
        chosen = torch.zeros_like(end)
        chosen[end] = cut[document, rank]
        return chosen


class Sentences(Blocks):
    """The sentences of the text, led by their first token: :class:`Blocks` that are cut at every full stop.

    Needs a graph that says where sentences end, such as :class:`~socialgraph.edges.ReadingOrder` draws. These are
    blocks that are not few: a block costs less than nothing (-1.5), so that cutting behind a full stop (1) pays and
    behind a comma (2) does not. A sentence of more than ``max_size`` tokens is cut at its cheapest commas, and between
    words where it has none.

    The full stops of "e.g." and "3.14" end a sentence, too. A sentence of one token is no circle. Word pieces have no
    line breaks, so there are no paragraphs.

    Unlike friend circles, circles are consecutive words and do not overlap. They are numbered in reading order.

    Args:
        max_size: tokens of a sentence at most.
        k: number of circles of a document at most: the longest (of equals, the first); None for all.

    Raises:
        OptionError: max_size < 2 or k < 1.
    """

    def __init__(self, max_size: int = 128, k: int | None = None) -> None:
        check_whole("max_size", max_size, 2)
        check_whole("k, the number of circles,", k, 1, or_none=True)
        super().__init__(max_size, segment=-SENTENCE_END)
        self.k = k

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the sentences of every document; see :meth:`Blocks.forward`."""
        (node, circle), leader = super().forward(edge_index, batch, batch_size, edge_weight)
        size = torch.bincount(circle, minlength=leader.numel())
        stays = size > 1
        if self.k is not None:
            stays &= ranks(size, batch[leader]) < self.k
        member = stays[circle]
        return torch.stack([node[member], (stays.cumsum(0) - 1)[circle[member]]]), leader[stays]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_size={self.size}, k={self.k})"
