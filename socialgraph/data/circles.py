"""Passages and friend circles side by side."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.contracts import check_circles
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

    Raises:
        ContractError: a partition breaks its contract.
    """
    layout = edge_index, batch, batch_size, edge_weight
    given = {"edge_index": edge_index, "batch": batch, "edge_weight": edge_weight}

    def answer(partition: Partition) -> tuple[Tensor, Tensor]:
        return check_circles(partition, lambda: partition(*layout), batch, given, Data())

    return side_by_side(batch, *(None if x is None else answer(x) for x in (passages, circles)))


def side_by_side(
    batch: Tensor, passages: tuple[Tensor, Tensor] | None, circles: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what :func:`compose` does, of what two partitions have returned."""
    indices, leaders, masks = [batch.new_empty(2, 0)], [batch.new_empty(0)], [batch.new_empty(0, dtype=torch.bool)]
    for answer, is_passage in ((passages, True), (circles, False)):
        if answer is None:
            continue
        index, leader = answer
        before = sum(x.numel() for x in leaders)
        indices.append(torch.stack([index[0], index[1] + before]))
        leaders.append(leader)
        masks.append(torch.full_like(leader, is_passage, dtype=torch.bool))
    circle_index, leader_index, passage_mask = torch.cat(indices, 1), torch.cat(leaders), torch.cat(masks)
    order = torch.argsort(batch[leader_index], stable=True)
    number = torch.empty_like(order)
    number[order] = torch.arange(order.numel(), device=order.device)
    circle = number.index_select(0, circle_index[1])
    place = torch.argsort(circle, stable=True)
    circle_index = torch.stack([circle_index[0], circle]).index_select(1, place)
    return circle_index, leader_index[order], passage_mask[order]
