"""The windows that answer the query best, by its words alone."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import cumsum, scatter

from socialgraph.errors import OptionError, is_whole
from socialgraph.partition.partition import Partition
from socialgraph.partition.sampled import SampledGraph
from socialgraph.partition.windows import Windows
from socialgraph.query_match import query_match


class QueryWindows(Partition):
    r"""The k windows of a document that BM25 ranks highest: how KeyB chooses what BERT reads.

    .. math::
        s(q, w) = \sum_{t \in q} \mathrm{idf}_t \frac{tf_{t, w} (k_1 + 1)}{tf_{t, w} + k_1}

    over the query's word pieces, each counted once; idf is that of the graph's tf-idf weights, and as all windows but
    the last are equally long there is no b. Windows without a word of the query have 0; of equals the first is taken,
    so where nothing matches these are the document's first windows. Minghan Li and Eric Gaussier, "KeyBLD: Selecting
    Key Blocks with Local Pre-ranking for Long Document Information Retrieval", SIGIR 2021.

    Args:
        k: number of windows of a document at most.
        size: tokens of a window; the last one of a document may have fewer.
        k1: how soon a repeated word stops counting.

    Raises:
        OptionError: k < 1, size < 1 or k1 < 0.
    """

    by_place = True

    def __init__(self, k: int = 16, size: int = 128, k1: float = 0.9) -> None:
        super().__init__()
        if not is_whole(k, 1):
            raise OptionError(f"k, the number of windows, must be at least 1, got {k}")
        if k1 < 0:
            raise OptionError(f"k1 must be at least 0, got {k1}")
        self.k = k
        self.windows = Windows(size)
        self.k1 = k1

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None,
        graph: Data | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Return the windows of every document, in the order of the text; see :meth:`Partition.forward`.

        Raises:
            OptionError: no graph.
        """
        if graph is None:
            raise OptionError("QueryWindows looks at words: hand over the graph they are in, graph=...")
        (node, window), leader = self.windows(edge_index, batch, batch_size)
        document = batch[leader]
        score = self.scores(graph, batch, window, leader.numel())
        order = torch.argsort(-score, stable=True)
        order = order[torch.argsort(document[order], stable=True)]
        place = torch.empty_like(order)
        before = cumsum(torch.bincount(document, minlength=batch_size))[document]
        place[order] = torch.arange(order.numel(), device=order.device) - before
        keep = place < self.k
        inside = keep[window]
        return torch.stack([node[inside], (keep.cumsum(0) - 1)[window[inside]]]), leader[keep]

    def from_sampled(self, graph: SampledGraph) -> tuple[Tensor, Tensor]:
        """Return the same without drawing an edge; see :meth:`Partition.from_sampled`."""
        return self.forward(graph.batch.new_empty(2, 0), graph.batch, graph.batch_size, graph=graph.graph)

    def scores(self, graph: Data, batch: Tensor, window: Tensor, count: int) -> Tensor:
        """Return BM25 of each window, ``[count]`` float64.

        Args:
            graph: with ``input_ids``, ``tfidf`` and the query.
            batch: document of each node.
            window: window of each node, ``[N]``: every token is one window's own.
            count: number of windows.
        """
        match = query_match(graph, batch).nonzero().flatten()
        word = graph.input_ids[match].long()
        vocabulary = int(word.max()) + 1 if word.numel() else 1
        _, at, in_document = torch.unique(batch[match] * vocabulary + word, return_inverse=True, return_counts=True)
        idf = graph.tfidf[match].double() / in_document[at]
        key, at, tf = torch.unique(window[match] * vocabulary + word, return_inverse=True, return_counts=True)
        weight = scatter(idf, at, dim_size=key.numel(), reduce="max")  # the same for all of a word
        part = weight * tf * (self.k1 + 1) / (tf + self.k1)
        return scatter(part, key // vocabulary, dim_size=count, reduce="sum")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(k={self.k}, size={self.windows.size}, k1={self.k1})"
