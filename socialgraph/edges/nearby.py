"""Nearby: everybody within reach, and nobody else."""

from __future__ import annotations

import torch
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.layout import documents
from socialgraph.edges.pattern import Pattern
from socialgraph.errors import OptionError, is_whole


class Nearby(Pattern):
    r"""A sliding window as a pattern.

    .. math:: P(i, j) = [|i - j| \le width]

    Alone, it gives no friend outside the window: where the sparsity asks for more ties than there are in it, everybody
    within reach is a friend and the graph is sparser than asked for. Iz Beltagy, Matthew E. Peters and Arman Cohan,
    "Longformer: The Long-Document Transformer", 2020, has such edges as a rule, see
    :class:`~socialgraph.edges.SlidingWindow`; a pattern can be mixed with others and scaled.

    Args:
        width: tokens that are within reach on each side.

    Raises:
        OptionError: width < 1.
    """

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        if not is_whole(width, 1):
            raise OptionError(f"width must be at least 1, got {width}")
        self.width = width

    def forward(self, graph: Data) -> Affinity:
        """Return who is near whom in every document of ``graph``."""
        batch, ptr = documents(graph)
        longest = int(ptr.diff().max()) if ptr.numel() > 1 else 0
        return LowRank(batch, ptr, kernel=torch.arange(longest, device=ptr.device) <= self.width)
