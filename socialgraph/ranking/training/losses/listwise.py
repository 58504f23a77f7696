"""Listwise cross-entropy: the relevant document against all others of its query."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import scatter, softmax


def listwise_cross_entropy(scores: Tensor, group: Tensor, relevant: Tensor) -> Tensor:
    r"""Return the mean loss over the queries (paper, equation 13).

    .. math:: L^q = -\log \frac{\exp(s(d^+))}{\sum_{d \in G_q} \exp(s(d))}

    Args:
        scores: one for each document, ``[B]``.
        group: which query each document belongs to, 0, 1, ..., ``[B]``; groups may differ in size.
        relevant: which documents are relevant, ``[B]`` bool; where a group has several, its loss is the mean over them.
    """
    # 64-bit floats cost nothing here and keep the loss of a sure model from becoming log(0)
    chance = softmax(scores.double(), group).clamp(min=torch.finfo(torch.float64).tiny)
    loss = scatter(-chance[relevant].log(), group[relevant], reduce="mean")
    return loss.mean().to(scores.dtype)
