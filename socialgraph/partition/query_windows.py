"""The windows that answer the query best, by its words alone."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter, segment
from torch_geometric.utils.sparse import index2ptr

from socialgraph.errors import OptionError, check_whole
from socialgraph.partition.partition import Partition
from socialgraph.partition.windows import Windows
from socialgraph.query_match import query_match
from socialgraph.ranks import ranks


class QueryWindows(Partition):
    r"""The k windows of a document that BM25 ranks highest: how KeyB chooses what BERT reads.

    .. math::
        s(q, w) = \sum_{t \in q} \mathrm{idf}_t \frac{tf_{t, w} (k_1 + 1)}{tf_{t, w} + k_1}

    over the query's word pieces, each counted once; idf is that of the graph's tf-idf weights, and as all windows but
    the last are equally long there is no b. Windows without a word of the query have 0; of equals the first is taken,
    so where nothing matches these are the document's first windows. Minghan Li and Eric Gaussier, "KeyBLD: Selecting
    Key Blocks with Local Pre-ranking for Long Document Information Retrieval", SIGIR 2021.

    With ``beside`` a window is helped by its neighbours, which KeyB does not do: its term frequency is

    .. math::
        tf_{t, w} + \mathrm{beside} \, (tf_{t, w - 1} + tf_{t, w + 1}),

    so that of windows with the same words the one in the midst of others is read first.

    Args:
        k: number of windows of a document at most.
        size: tokens of a window; the last one of a document may have fewer.
        k1: how soon a repeated word stops counting.
        beside: what a word in the window before or behind counts; 0: nothing, as in KeyB.

    Raises:
        OptionError: k < 1, size < 1, k1 < 0, or beside not between 0 and 1.
    """

    by_place = True
    needs_edges = False

    def __init__(self, k: int = 16, size: int = 128, k1: float = 0.9, beside: float = 0.0) -> None:
        super().__init__()
        check_whole("k, the number of windows,", k, 1)
        if k1 < 0:
            raise OptionError(f"k1 must be at least 0, got {k1}")
        if not 0 <= beside <= 1:
            raise OptionError(f"beside must lie between 0 and 1, got {beside}")
        self.k = k
        self.size = size
        self.windows = Windows(size)
        self.k1 = k1
        self.beside = beside

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
        keep = ranks(self.scores(graph, batch, window, document), document) < self.k
        inside = keep[window]
        return torch.stack([node[inside], (keep.cumsum(0) - 1)[window[inside]]]), leader[keep]

    def scores(self, graph: Data, batch: Tensor, window: Tensor, document: Tensor) -> Tensor:
        """Return BM25 of each window, ``[C]`` float64.

        Args:
            graph: with ``input_ids``, ``tfidf`` and the query.
            batch: document of each node.
            window: window of each node, ``[N]``: every token is one window's own.
            document: of each window, ``[C]``.
        """
        match = query_match(graph, batch).nonzero().flatten()
        word, own = graph.input_ids[match].long(), window[match]
        vocabulary = int(word.max()) + 1 if word.numel() else 1
        _, at, in_document = torch.unique(batch[match] * vocabulary + word, return_inverse=True, return_counts=True)
        idf = graph.tfidf[match].double() / in_document[at]
        # A match counts for its own window and, as a neighbour's, for those before and behind it in the document.
        heard = torch.cat([own, own - 1, own + 1])
        inside = (heard >= 0) & (heard < document.numel())
        inside[inside.clone()] = document[heard[inside]] == batch[match].repeat(3)[inside]
        key, at = torch.unique((heard * vocabulary + word.repeat(3))[inside], return_inverse=True)
        # Both frequencies are whole numbers until here, so that every device adds them up alike.
        is_own = torch.arange(heard.numel(), device=heard.device)[inside] < own.numel()
        tf, near = (scatter(part.double(), at, dim_size=key.numel(), reduce="sum") for part in (is_own, ~is_own))
        tf = tf + self.beside * near
        weight = scatter(idf.repeat(3)[inside], at, dim_size=key.numel(), reduce="max")  # the same for all of a word
        part = torch.where(tf > 0, weight * tf * (self.k1 + 1) / (tf + self.k1), 0.0)
        return segment(part, index2ptr(key // vocabulary, document.numel()))
