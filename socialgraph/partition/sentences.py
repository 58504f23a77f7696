"""Sentences: what is said in one breath meets."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.errors import OptionError, is_whole
from socialgraph.partition.blocks import Blocks
from socialgraph.ranks import ranks

#: ties weaker than this end a sentence: "." "?" and "!" weigh 1, a comma 2, see :class:`socialgraph.edges.ReadingOrder`
SENTENCE_END = 1.5


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
        if not is_whole(max_size, 2):
            raise OptionError(f"max_size must be at least 2, got {max_size}")
        if k is not None and not is_whole(k, 1):
            raise OptionError(f"k, the number of circles, must be at least 1 or None for all, got {k}")
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
