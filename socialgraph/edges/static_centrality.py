"""Static centrality: a document's celebrities know many."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges.pattern import Centrality


class StaticCentrality(Centrality):
    """P_sc(i, j) = f(w_i w_j) with w the tf-idf weight of a token (paper, equation 2).

    The weights are the node attribute ``tfidf`` of the graph; they come from the collection's
    :class:`~socialgraph.data.TermStatistics`.
    """

    def weights(self, graph: Data) -> Tensor:
        """Return ``graph.tfidf``."""
        tfidf: Tensor = graph.tfidf
        return tfidf
