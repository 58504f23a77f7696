"""Passages and friend circles side by side."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.partition import Partition


def compose(
    passages: Partition | None,
    circles: Partition | None,
    edge_index: Tensor,
    batch: Tensor,
    batch_size: int,
    edge_weight: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the circles of each document: first its passages, then its friend circles.

    Args:
        passages: partition whose circles are led by their [CLS], or None.
        circles: partition whose circles are led by a node, or None.
        edge_index: see :meth:`socialgraph.partition.Partition.forward`, as the rest.
        batch: document of each node.
        batch_size: number of documents.
        edge_weight: strength of each edge.

    Returns:
        ``circle_index [2, M]``, ``leader_index [C]`` and ``passage_mask [C]``.
    """
    graph = edge_index, batch, batch_size, edge_weight
    return side_by_side(batch, *(None if one is None else one(*graph) for one in (passages, circles)))


def side_by_side(
    batch: Tensor, passages: tuple[Tensor, Tensor] | None, circles: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what :func:`compose` does, of what two partitions have returned."""
    none = batch.new_empty(2, 0), batch.new_empty(0)
    (windows, starts), (circle_index, leaders) = passages or none, circles or none
    before = torch.stack([torch.zeros_like(circle_index[1]), torch.full_like(circle_index[1], starts.numel())])
    circle_index, leader_index = torch.cat([windows, circle_index + before], 1), torch.cat([starts, leaders])
    order = torch.argsort(batch[leader_index], stable=True)  # of the circles: document by document
    number = torch.empty_like(order)
    number[order] = torch.arange(order.numel(), device=order.device)
    circle_index = torch.stack([circle_index[0], number.index_select(0, circle_index[1])])
    circle_index = circle_index.index_select(1, torch.argsort(circle_index[1], stable=True))
    return circle_index, leader_index[order], order < starts.numel()
