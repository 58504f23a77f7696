"""Which passages of a long document PARADE's own experiments read: the first, the last, and some between."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.data.graph import circle_document
from socialgraph.data.statistics import TermStatistics
from socialgraph.edges.draws import HASH_RANGE, finish_hash, node_hashes


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
        coin = finish_hash(node_hashes(graph.draw_key[document], place)[0])
        last = torch.ones_like(document, dtype=torch.bool)
        last[:-1] = document.diff() > 0
        return torch.where((place == 0) | last, 2.0, coin / HASH_RANGE)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
