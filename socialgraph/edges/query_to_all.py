"""Query to all: the query's words know everybody."""

from __future__ import annotations

from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.layout import documents
from socialgraph.edges.pattern import Pattern
from socialgraph.query_match import query_match


class QueryToAll(Pattern):
    r"""A pair is likely where one of the two is a word of the query.

    .. math:: P(i, j) = 1 - (1 - m_i) (1 - m_j) = m_i + m_j - m_i m_j

    with m = 1 for tokens that are also tokens of the query and 0 for others. It abstains where the document has none.

    Jyun-Yu Jiang, Chenyan Xiong, Chia-Jung Lee and Wei Wang, "Long Document Ranking with Query-Directed Sparse
    Transformer", Findings of EMNLP 2020, lets the query attend everywhere. Different here: the query is not part of the
    graph, its words where the document says them are; and P can be mixed with other patterns and scaled.
    """

    def forward(self, graph: Data) -> Affinity:
        """Return the pairs with a query's word in every document of ``graph``."""
        batch, ptr = documents(graph)
        match = query_match(graph, batch).double()
        return LowRank(batch, ptr, row=match, factor=match[:, None], sign=(-1.0,))
