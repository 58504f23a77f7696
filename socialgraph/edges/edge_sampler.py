"""What an edge sampler is: nodes in, edges out."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data


class EdgeSampler(torch.nn.Module):
    """Base of all edge samplers: says who knows whom, for one document graph or a batch of them at once.

    Attributes:
        patterns: probability patterns by name; the weights of those that are a
            :class:`~socialgraph.edges.Centrality` are kept with the graph.
    """

    def __init__(self) -> None:
        super().__init__()
        self.patterns = torch.nn.ModuleDict()

    def forward(self, graph: Data) -> tuple[Tensor, Tensor]:
        """Return the edges of every document.

        Args:
            graph: with ``input_ids [N]`` and what the sampler names.

        Returns:
            ``edge_index [2, E]`` int64, no self-loops, sorted by row and column; and ``edge_weight [E]`` float32.
        """
        raise NotImplementedError
