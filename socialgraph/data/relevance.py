"""Ratings of circles, for models that choose among them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter, segment
from torch_geometric.utils.sparse import index2ptr

from socialgraph.data.graph import circle_document, circle_size
from socialgraph.data.statistics import TermStatistics
from socialgraph.edges.draws import HASH_RANGE, finish_hash, node_hashes
from socialgraph.errors import OptionError


class PassageBM25:
    r"""BM25 of every circle for its document's query, over word pieces.

    .. math::
        s(q, c) &= \sum_{t \in q} \mathrm{idf}_t \frac{tf_{t, c} (k_1 + 1)}
                   {tf_{t, c} + k_1 (1 - b + b\, |c| / \overline{|c|})} \\
        \mathrm{idf}_t &= \ln \Big(1 + \frac{N - df_t + 0.5}{df_t + 0.5}\Big)

    Each word piece t of the query counts once. N and df count documents of the collection, not circles: a word that
    matters to a document is in many of its passages (so KeyB, Minghan Li and Eric Gaussier, SIGIR 2021). The mean
    length is that of the document's own circles. (BM25: Stephen Robertson and Hugo Zaragoza, "The Probabilistic
    Relevance Framework", 2009; the idf that is never negative is Lucene's.)

    Args:
        k1: how soon a repeated word stops counting.
        b: how much a long circle is held back, 0 to 1.

    Raises:
        OptionError: k1 < 0, or b outside of 0 to 1.
    """

    def __init__(self, k1: float = 0.9, b: float = 0.4) -> None:
        if k1 < 0 or not 0 <= b <= 1:
            raise OptionError(f"k1 must be at least 0 and b from 0 to 1, got k1={k1} and b={b}")
        self.k1 = k1
        self.b = b

    def __call__(self, graph: Data, statistics: TermStatistics) -> Tensor:
        """Return the score of each circle, ``[C]`` float32; 0 where no word of the query is in it.

        Args:
            graph: a graph or a batch, with circles.
            statistics: of the collection.
        """
        vocabulary = statistics.document_frequency.numel()
        node, circle = graph.circle_index
        document, size = circle_document(graph), circle_size(graph).double()
        # Words are numbered apart for each document, and those of its query are looked up among the members'.
        asked = torch.unique(torch.repeat_interleave(graph.query_length) * vocabulary + graph.query_ids)
        word = document[circle] * vocabulary + graph.input_ids[node]
        place = torch.searchsorted(asked, word)
        hit = place < asked.numel()
        hit[hit.clone()] = asked[place[hit]] == word[hit]
        pair, count = torch.unique(circle[hit] * asked.numel() + place[hit], return_counts=True)
        passage, term = pair // max(asked.numel(), 1), pair % max(asked.numel(), 1)

        mean = scatter(size, document, dim_size=graph.query_length.numel(), reduce="mean")[document]
        norm = self.k1 * (1 - self.b + self.b * size / mean)
        tf = count.double()
        score = self._idf(asked % vocabulary, statistics)[term] * tf * (self.k1 + 1) / (tf + norm[passage])
        return segment(score, index2ptr(passage, document.numel())).float()

    @staticmethod
    def _idf(ids: Tensor, statistics: TermStatistics) -> Tensor:
        # on the CPU: logarithms may round differently on other devices
        frequency = statistics.document_frequency.cpu()[ids.cpu()].double()
        return torch.log1p((statistics.size - frequency + 0.5) / (frequency + 0.5)).to(ids.device)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(k1={self.k1}, b={self.b})"


class PassageSample:
    """Rates every circle by a random-looking number from 0 to 1, and a document's first and last circle by 2.

    The best k are then the first, the last, and k - 2 drawn between them. Li, Yates, MacAvaney, He and Sun, "PARADE:
    Passage Representation Aggregation for Document Reranking", 2020, read 16 of a document's passages so. Different
    here: the draw is a function of the seed and of the texts of query and document, the same whenever it is made; the
    original draws once for each document. The query's words play no part.
    """

    def __call__(self, graph: Data, statistics: TermStatistics) -> Tensor:
        """Return the rating of each circle, ``[C]`` float32.

        Args:
            graph: a graph or a batch, with circles.
            statistics: not used.
        """
        document = circle_document(graph)
        start = torch.searchsorted(document, document)  # of each circle: its document's first
        place = torch.arange(document.numel(), device=document.device) - start
        draw = finish_hash(node_hashes(graph.draw_key[document], place)[0])
        last = torch.ones_like(document, dtype=torch.bool)
        last[:-1] = document.diff() > 0
        return torch.where((place == 0) | last, 2.0, draw / HASH_RANGE)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
