"""From texts to a batch of graphs with their circles: where edges and partition are put to work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch_geometric.data import Batch

from socialgraph.data.circles import compose
from socialgraph.data.collection import Document
from socialgraph.data.graph import DocumentGraph, connect, document_graph, gather, weigh
from socialgraph.data.statistics import TermStatistics
from socialgraph.data.tokens import Tokens
from socialgraph.edges import Centrality, SocialEdges, coin_key
from socialgraph.errors import InputError, OptionError
from socialgraph.partition import Partition


class GraphBuilder:
    """Builds the graphs of (query, document) pairs, many at once.

    Args:
        documents: the collection's documents by id.
        tokens: texts to word pieces.
        statistics: for the tf-idf weights.
        edges: draws the social graph; None where no partition reads it.
        circles: gathers friend circles; None for passages only.
        passages: cuts the passages; None for friend circles only.
        seed: of the coins. The graph of a pair is a function of seed, ids and texts alone.
        device: where graphs are built, and where they stay.

    Raises:
        OptionError: neither circles nor passages, or circles without edges.
    """

    def __init__(
        self,
        documents: Mapping[str, Document],
        tokens: Tokens,
        statistics: TermStatistics,
        edges: SocialEdges | None = None,
        circles: Partition | None = None,
        passages: Partition | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        if circles is None and passages is None:
            raise OptionError("a graph needs circles, passages or both, got neither")
        if circles is not None and edges is None:
            raise OptionError("friend circles need edges, got none")
        self.documents = documents
        self.tokens = tokens
        self.statistics = statistics
        self.edges = edges.to(device) if edges is not None else None
        self.circles = circles
        self.passages = passages
        self.seed = seed
        self.device = torch.device(device)

    def pair(self, query_id: str, query: str, document_id: str) -> DocumentGraph:
        """Return one pair's graph without edges and circles, on the CPU.

        Raises:
            InputError: the query has no word piece, or the document is not in the collection.
        """
        query_ids = self.tokens.query(query)
        if query_ids.numel() == 0:
            raise InputError(f"query {query_id!r} has no word piece: {query!r}")
        if document_id not in self.documents:
            raise InputError(f"document {document_id!r}, a candidate of query {query_id!r}, is not in the collection")
        input_ids = self.tokens.document(self.documents[document_id])
        return document_graph(
            input_ids,
            query_ids,
            coin_key(self.seed, query_id, document_id),
            query_id,
            document_id,
            tfidf=self.statistics.tfidf(input_ids),
        )

    def __call__(self, pairs: Sequence[tuple[str, str, str]]) -> Batch:
        """Return the batch of graphs of ``(query id, query text, document id)``, ready for a model.

        Edges and circles of all documents are computed together.

        Raises:
            InputError: see :meth:`pair`.
        """
        batch = Batch.from_data_list([self.pair(*pair) for pair in pairs]).to(self.device)
        if self.edges is not None:
            for pattern in self.edges.patterns.values():
                if isinstance(pattern, Centrality):
                    weigh(batch, pattern.name, pattern.weights(batch))
            connect(batch, *self.edges(batch))
        else:
            nothing = torch.empty(2, 0, dtype=torch.long, device=self.device)
            connect(batch, nothing, torch.empty(0, device=self.device))
        gather(
            batch,
            *compose(self.passages, self.circles, batch.edge_index, batch.batch, batch.num_graphs, batch.edge_weight),
        )
        return batch
