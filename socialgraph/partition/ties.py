"""Ties: who goes first where weights do not say so, so that no place in the document is favoured.

The lower node would be the simple answer, and it would pull circles to the start of long documents: of a leader's 300
friends by edges of equal weight, those of the first pages would stay. So each pair has a hash, a pure function of its
places in the document: whole numbers, the same alone, in any batch, on any device, drawn or stored.
"""

from __future__ import annotations

import torch
from torch import Tensor


def mix(x: Tensor) -> Tensor:
    """Return a random-looking number for each int64; different numbers for different ones.

    The finaliser of SplitMix64 (Guy L. Steele, Doug Lea and Christine H. Flood, "Fast Splittable Pseudorandom Number
    Generators", OOPSLA 2014), with shifts that keep the sign, which are invertible as well.
    """
    x = x * -0x61C8864680B583EB
    x = (x ^ (x >> 30)) * -0x40A7B892E31B1A47
    x = (x ^ (x >> 27)) * -0x6B2FB644ECCEEE15
    return x ^ (x >> 31)


def pair_hash(i: Tensor, j: Tensor) -> Tensor:
    """Return the hash of pairs of places in a document (broadcast), int64: that of (i, j) is that of (j, i)."""
    return mix(mix(i) + mix(j))


def strongest_first(weight: Tensor | None, tie: Tensor) -> Tensor:
    """Return the order along the last dimension by weight, highest first; of equals the lowest hash goes first.

    Args:
        weight: of each edge, as it is; None: all are equal.
        tie: hash of its pair, int64.
    """
    order = torch.argsort(tie, dim=-1, stable=True)
    if weight is None:
        return order
    return order.gather(-1, torch.argsort(weight.gather(-1, order), dim=-1, descending=True, stable=True))


def strongest(owner: Tensor, weight: Tensor | None, tie: Tensor, amount: int) -> tuple[Tensor, Tensor]:
    """Choose at most ``amount`` edges of each owner: those of highest weight, of equals those of lowest hash.

    Args:
        owner: whose edge each is, sorted, ``[E]``.
        weight: of each edge, ``[E]``; None: all are equal.
        tie: hash of its pair, ``[E]``; see :func:`pair_hash`.
        amount: edges of an owner at most.

    Returns:
        which edges, sorted by owner, the strongest first; and the number of each among its owner's, from 0.
    """
    order = strongest_first(weight, tie)
    order = order[torch.argsort(owner[order], stable=True)]
    number = torch.arange(owner.numel(), device=owner.device) - torch.searchsorted(owner, owner)
    chosen = number < amount
    return order[chosen], number[chosen]
