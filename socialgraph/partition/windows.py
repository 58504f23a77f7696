"""Windows: neighbours in the text meet. Whole: everybody does."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import cumsum

from socialgraph.errors import check_whole
from socialgraph.partition.partition import Partition


class Windows(Partition):
    """Consecutive windows of fixed size: the passages of MaxP, PARADE, IDCM and Socialformer. Edges are ignored.

    Every token is one window's own; with ``k`` those of the beginning are. A window may read neighbours along, which
    lends it context: IDCM's chunks (Hofstätter et al., SIGIR 2021) have 50 tokens and read 7 along on each side,
    ``Windows(50, 7, 7)``; PARADE's passages (Li et al., 2020) have 225 tokens with a stride of 200,
    ``Windows(200, after=25)``. So a window begins every ``size`` tokens as long as there are any, even where the one
    before it reads all that is left.

    The first token of its own stands as the leader; in a model a passage is led by its [CLS].

    Args:
        size: tokens of a window's own; the last one of a document may have fewer.
        before: tokens before them that are read along, as far as the document has them.
        after: tokens after them that are read along.
        k: number of windows of a document at most, from its beginning; None for all.

    Raises:
        OptionError: size < 1, before or after < 0, or k < 1.
    """

    by_place = True
    needs_edges = False

    def __init__(self, size: int = 128, before: int = 0, after: int = 0, k: int | None = None) -> None:
        super().__init__()
        check_whole("size", size, 1)
        check_whole("before", before, 0)
        check_whole("after", after, 0)
        check_whole("k, the number of windows,", k, 1, or_none=True)
        self.size = size
        self.before = before
        self.after = after
        self.k = k

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the windows of every document; an empty document has none."""
        node = torch.arange(batch.numel(), device=batch.device)
        ptr = cumsum(torch.bincount(batch, minlength=batch_size))
        place = node - ptr.index_select(0, batch)
        begins = place % self.size == 0
        leader = node[begins if self.k is None else begins & (place < self.k * self.size)]
        start = torch.maximum(leader - self.before, ptr[batch[leader]])
        end = torch.minimum(leader + self.size + self.after, ptr[batch[leader] + 1])
        size = end - start
        circle = torch.repeat_interleave(size)
        shift = (start - cumsum(size)[:-1]).index_select(0, circle)
        return torch.stack([torch.arange(circle.numel(), device=batch.device) + shift, circle]), leader


class Whole(Partition):
    """One circle with all nodes of a document, led by the first; an empty document has none. Edges are ignored."""

    by_place = True
    needs_edges = False

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the circle of every document that has nodes."""
        node = torch.arange(batch.numel(), device=batch.device)
        first = node == cumsum(torch.bincount(batch, minlength=batch_size))[batch]
        return torch.stack([node, first.long().cumsum(0) - 1]), node[first]
