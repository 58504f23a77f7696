"""Where each document lies in a graph or a batch of graphs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import cumsum


def documents(graph: Data) -> tuple[Tensor, Tensor]:
    """Return ``(batch [N], ptr [B + 1])``: each node's document, and the documents' bounds.

    A single graph counts as a batch of one. The nodes of a document are consecutive.
    """
    nodes = int(graph.num_nodes or 0)
    device = graph.input_ids.device
    batch = getattr(graph, "batch", None)
    if batch is None:
        return torch.zeros(nodes, dtype=torch.long, device=device), torch.tensor([0, nodes], device=device)
    ptr = getattr(graph, "ptr", None)  # PyG's batches have it
    return batch, cumsum(torch.bincount(batch, minlength=int(graph.num_graphs))) if ptr is None else ptr


def longest(ptr: Tensor) -> int:
    """Return the number of nodes of the longest document, 0 where there is none."""
    return int(ptr.diff().max()) if ptr.numel() > 1 else 0


def positions(batch: Tensor, ptr: Tensor) -> Tensor:
    """Return each node's place within its document, from 0."""
    return torch.arange(batch.numel(), device=batch.device) - ptr.index_select(0, batch)


def padded(ptr: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return node ids ``[B, width]`` and a mask of the places that are nodes.

    Elsewhere the id is the document's first node, so that every pair of a row is a pair of one document.
    """
    place = torch.arange(width, device=ptr.device)
    inside = place < ptr.diff()[:, None]
    first = ptr[:-1, None].clamp(max=max(int(ptr[-1]) - 1, 0))
    return torch.where(inside, ptr[:-1, None] + place, first), inside
