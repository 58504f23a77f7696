"""Windows: neighbours in the text meet."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import cumsum

from socialgraph.errors import OptionError
from socialgraph.partition.partition import Partition


class Windows(Partition):
    """Consecutive windows of fixed size: the passages of MaxP, PARADE and Socialformer. Edges are ignored.

    The first node stands as the leader; in a model a passage is led by its [CLS].

    Args:
        size: tokens of a window; the last one of a document may be shorter.

    Raises:
        OptionError: size < 1.
    """

    def __init__(self, size: int = 128) -> None:
        super().__init__()
        if size < 1:
            raise OptionError(f"the window size must be at least 1, got {size}")
        self.size = size

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the windows of every document; an empty document has none."""
        node = torch.arange(batch.numel(), device=batch.device)
        ptr = cumsum(torch.bincount(batch, minlength=batch_size))
        first = (node - ptr[batch]) % self.size == 0
        return torch.stack([node, first.long().cumsum(0) - 1]), node[first]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"
