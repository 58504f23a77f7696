"""Where a document says what its query asks for."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data


def query_match(graph: Data, batch: Tensor) -> Tensor:
    """Return which nodes carry a token of their own query, ``[N]`` bool."""
    owner = torch.repeat_interleave(graph.query_length)
    wanted = torch.stack([owner, graph.query_ids])
    # one number for each (document, token), so that one search answers for all documents
    base = int(torch.cat([graph.query_ids, graph.input_ids]).max()) + 1 if wanted.numel() else 1
    return torch.isin(batch * base + graph.input_ids, wanted[0] * base + wanted[1])
