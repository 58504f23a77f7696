"""Which pairs are friends: coins against probabilities, one by one."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from socialgraph.edges.affinity import Affinity
from socialgraph.edges.coins import COIN_SIDES, node_hashes, toss
from socialgraph.edges.layout import positions


class Pairs:
    """The pairs of a document's nodes, or of a batch of documents, each with its coin and probability.

    Args:
        probability: P / mu of each pair, not yet clipped at 1.
        coin_key: one for each document, ``[B]``.
    """

    def __init__(self, probability: Affinity, coin_key: Tensor) -> None:
        self.probability = probability
        self.batch, self.ptr = probability.batch, probability.ptr
        self.batch_size = self.ptr.numel() - 1
        self.lower, self.higher = node_hashes(coin_key.index_select(0, self.batch), positions(self.batch, self.ptr))

    @cached_property
    def expected(self) -> Tensor:
        """Each node's expected degree, or a bit more where probabilities are clipped at 1: ``[N]`` float64."""
        return self.probability.row_sums()

    def has_edge(self, i: Tensor, j: Tensor) -> Tensor:
        """Return which pairs of nodes are friends (ids, broadcast); what stands at i == j means nothing."""
        return self.is_edge(torch.minimum(i, j), torch.maximum(i, j))

    def is_edge(self, low: Tensor, high: Tensor) -> Tensor:
        """Return which pairs of nodes are friends, the lower id of each first (broadcast)."""
        return toss(self.lower[low], self.higher[high]) < self.probability.pair(low, high) * COIN_SIDES

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the probability of an edge, float32."""
        return self.probability.pair(torch.minimum(i, j), torch.maximum(i, j)).clamp(max=1.0).float()
