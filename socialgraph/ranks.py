"""Where each of many stands in its group: by its place, or by a score.

All groups are ranked at once. ``group [N]``, the group of each, is sorted: circles of documents, say.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import cumsum


def places(group: Tensor) -> Tensor:
    """Return each one's place in its group, from 0, ``[N]``.

    Args:
        group: of each, sorted, ``[N]``.
    """
    start = cumsum(torch.bincount(group))
    return torch.arange(group.numel(), device=group.device) - start[group]


def best_first(score: Tensor, group: Tensor) -> Tensor:
    """Return all, group by group and from best to worst in each, ``[N]``; of equals the first comes first.

    Args:
        score: of each, ``[N]``.
        group: of each, sorted, ``[N]``.
    """
    order = torch.argsort(score, descending=True, stable=True)
    return order[torch.argsort(group[order], stable=True)]


def ranks(score: Tensor, group: Tensor) -> Tensor:
    """Return each one's place in its group by score, 0 for the highest, ``[N]``; ties go to the first.

    Args:
        score: of each, ``[N]``.
        group: of each, sorted, ``[N]``.
    """
    rank = torch.empty_like(group)
    rank[best_first(score, group)] = places(group)  # the order leaves every group where it was
    return rank
