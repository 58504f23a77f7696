"""Whole: everybody meets."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import cumsum

from socialgraph.partition.partition import Partition, SampledGraph


class Whole(Partition):
    """One circle with all nodes of a document, led by the first; an empty document has none. Edges are ignored."""

    by_place = True

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the circle of every document that has nodes."""
        node = torch.arange(batch.numel(), device=batch.device)
        first = node == cumsum(torch.bincount(batch, minlength=batch_size))[batch]
        return torch.stack([node, first.long().cumsum(0) - 1]), node[first]

    def from_sampled(self, graph: SampledGraph) -> tuple[Tensor, Tensor]:
        """Return the same without drawing an edge; see :meth:`Partition.from_sampled`."""
        return self.forward(graph.batch.new_empty(2, 0), graph.batch, graph.batch_size)
