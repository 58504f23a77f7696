"""Who is compared with whom: every relevant document of a query with every other one."""

from __future__ import annotations

import torch
from torch import Tensor


def pairs(group: Tensor, relevant: Tensor) -> tuple[Tensor, Tensor]:
    """Return all pairs (relevant, other) of documents of one group: two rows of numbers of documents, each ``[P]``.

    Args:
        group: which query each document belongs to, 0, 1, ..., ``[B]``.
        relevant: which documents are relevant, ``[B]`` bool.
    """
    better, worse = ((group[:, None] == group) & relevant[:, None] & ~relevant).nonzero().unbind(1)
    return better, worse


def mean_of_groups(loss: Tensor, group: Tensor) -> Tensor:
    """Return the mean over the groups of the mean over each group's pairs; groups without a pair do not count.

    Args:
        loss: of each pair, ``[P]``; with P = 0 the result is 0, and its gradient too.
        group: which query each pair belongs to, ``[P]``.
    """
    amount = torch.bincount(group)
    return (loss / amount[group]).sum() / amount.count_nonzero().clamp(min=1)
