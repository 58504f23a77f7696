"""Uniform: everybody is equally likely to know everybody."""

from __future__ import annotations

import torch
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.layout import documents
from socialgraph.edges.pattern import Pattern


class Uniform(Pattern):
    """P(i, j) = 1 for every pair: the paper's ablation with random edges (table 2)."""

    def forward(self, graph: Data) -> Affinity:
        """Return 1 for all pairs of every document of ``graph``."""
        batch, ptr = documents(graph)
        return LowRank(batch, ptr, constant=torch.ones(ptr.numel() - 1, device=ptr.device))
