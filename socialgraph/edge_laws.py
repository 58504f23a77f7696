"""What the edges of documents obey, whoever has drawn them: a sampler, or the caller of a partition."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor


def in_order(edge_index: Tensor, batch: Tensor) -> bool:
    """Whether edges break no law of :func:`broken`, both ways. In O(E), a quarter of the time of its circles.

    That every edge has a way back is found without a sort, which takes as long as the circles: edges and their ways
    back have the same sum of hashes, and others with a chance of 2^-64.
    """
    if edge_index.numel() == 0:
        return True
    row, col = edge_index
    size = batch.numel()
    low, high = edge_index.aminmax()
    if int(low) < 0 or int(high) >= size:
        return False
    key, back = row * size + col, col * size + row
    holds = (key[1:] > key[:-1]).all() & (row != col).all()
    holds &= _hashed(key).sum() == _hashed(back).sum()
    if bool(batch[0] != batch[-1]):
        holds &= (batch[row] == batch[col]).all()
    return bool(holds)


def _hashed(x: Tensor) -> Tensor:
    """Make each int64 a random-looking number, in place: the first half of SplitMix64's."""
    x *= -0x61C8864680B583EB
    x ^= x >> 32
    x *= -0x40A7B892E31B1A47
    return x


def broken(
    edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, both_ways: bool = True
) -> Iterator[tuple[str, Tensor]]:
    """Yield each law and the edges that break it, ``[E]``; each may rely on those before it. In O(E log E).

    Args:
        edge_index: ``[2, E]`` int64.
        edge_weight: ``[E]``, or None.
        batch: document of each node, sorted, ``[N]``.
        both_ways: whether every edge must be there in both directions, as partitions rely on.
    """
    row, col = edge_index
    size = batch.numel()
    yield "edges join nodes of the graph", ((edge_index < 0) | (edge_index >= size)).any(0)
    yield "nobody is a friend of oneself", row == col
    yield "an edge lies in one document", batch[row] != batch[col]
    key = row * size + col  # rises with every edge
    yield "edges are sorted, none is there twice", torch.cat([key[:1] < 0, key.diff() <= 0])
    if edge_weight is not None:
        yield "weights are numbers from 0", ~((edge_weight >= 0) & (edge_weight < torch.inf))
    if both_ways:
        back, order = (col * size + row).sort()
        one_way = back != key
        if edge_weight is None:
            yield "an edge goes both ways", one_way
        else:
            yield "an edge goes both ways, with one weight", one_way | (edge_weight[order] != edge_weight)


def in_words(number: int, edge_index: Tensor, edge_weight: Tensor | None) -> str:
    """Return which nodes an edge joins, and with which weight."""
    row, col = edge_index[:, number].tolist()
    weight = "" if edge_weight is None else f", weight {float(edge_weight[number]):.6g}"
    return f"edge {number} joins node {row} and node {col}{weight}"
