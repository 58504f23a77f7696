"""A social graph whose edges are drawn where somebody asks for them."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.draws import HASH_RANGE, node_hashes, pair_hash
from socialgraph.edges.layout import positions
from socialgraph.kernels import ClosedForm, all_edges


class SocialGraph:
    """The social graph of a document or of a batch of them, which nobody stores.

    Whether two nodes are friends is a function of the document's key and their places
    (:mod:`socialgraph.edges.draws`), so any pair can be drawn without the others, and drawn again.

    Args:
        probability: P / mu of each pair, not yet clipped at 1.
        key: one for each document, ``[B]``.
        graph: the document or the batch, for partitions that look at words.

    Attributes:
        batch: document of each node, ``[N]``.
        ptr: bounds of the documents, ``[B + 1]``.
        batch_size: number of documents.
    """

    def __init__(self, probability: Affinity, key: Tensor, graph: Data | None = None) -> None:
        self.probability = probability
        self.key = key
        self.graph = graph
        self.batch, self.ptr = probability.batch, probability.ptr
        self.batch_size = self.ptr.numel() - 1

    @cached_property
    def expected(self) -> Tensor:
        """Each node's expected degree, or a bit more where probabilities are clipped at 1: ``[N]`` float64."""
        return self.probability.row_sums()

    @cached_property
    def closed_form(self) -> ClosedForm | None:
        """What kernels draw the graph from; None where P has no closed form."""
        return self.probability.closed_form(self.key) if isinstance(self.probability, LowRank) else None

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the probability of an edge, float32, for node ids (broadcast)."""
        return self.probability.pair(torch.minimum(i, j), torch.maximum(i, j)).clamp(max=1.0).float()

    def edges(self) -> tuple[Tensor, Tensor]:
        """Return all edges: ``edge_index [2, E]``, both directions, sorted by row and column; and weights ``[E]``."""
        if self.closed_form is not None:
            return all_edges(self.closed_form)
        lower, higher = node_hashes(self.key.index_select(0, self.batch), positions(self.batch, self.ptr))
        pairs = [torch.empty(2, 0, dtype=torch.long, device=self.ptr.device)]
        for i, j, upper, p in self.probability.blocks():
            document, row, column = ((pair_hash(lower[i], higher[j]) < p * HASH_RANGE) & upper).nonzero(as_tuple=True)
            pairs.append(torch.stack([i[document, row, 0], j[document, 0, column]]))
        pair = torch.cat(pairs, 1)
        edge_index = torch.cat([pair, pair.flip(0)], 1)
        edge_index = edge_index[:, torch.argsort(edge_index[0] * self.batch.numel() + edge_index[1])]
        return edge_index, self.weight(*edge_index)
