"""From texts to a batch of graphs with their circles: where edges and partition are put to work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch.nn import functional as F
from torch_geometric.data import Batch

from socialgraph.data.circles import compose
from socialgraph.data.collection import Document
from socialgraph.data.graph import DocumentGraph, connect, document_graph, gather, rate, weigh
from socialgraph.data.passage_bm25 import PassageBM25
from socialgraph.data.statistics import TermStatistics
from socialgraph.data.tokens import Tokens
from socialgraph.edges import Centrality, EdgeSampler, SparseEdges, coin_key
from socialgraph.errors import InputError, OptionError
from socialgraph.partition import Partition


class GraphBuilder:
    """Builds the graphs of (query, document) pairs, many at once.

    Args:
        documents: the collection's documents by id.
        tokens: texts to word pieces.
        statistics: for the tf-idf weights.
        edges: draws the graph; None where nobody reads it.
        circles: gathers friend circles; None for passages only.
        passages: cuts the passages; None for friend circles only.
        relevance: rates every circle for the query, for models that choose among them; the graph's ``circle_score``.
        joint: the query is part of the graph, whose nodes are ``[CLS] query [SEP] document [SEP]``: for models that
            read the document as a whole, along its edges.
        seed: of the coins. The graph of a pair is a function of seed, ids and texts alone.
        device: where graphs are built, and where they stay.

    Raises:
        OptionError: neither circles nor passages, circles without edges, or a joint graph without edges or with
            circles.
    """

    def __init__(
        self,
        documents: Mapping[str, Document],
        tokens: Tokens,
        statistics: TermStatistics,
        edges: EdgeSampler | None = None,
        circles: Partition | None = None,
        passages: Partition | None = None,
        relevance: PassageBM25 | None = None,
        joint: bool = False,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        if joint and (edges is None or any(x is not None for x in (circles, passages, relevance))):
            raise OptionError(
                "a joint graph is read along its edges: it needs edges, no circles, passages or relevance"
            )
        if not joint and circles is None and passages is None:
            raise OptionError("a graph needs circles, passages or both, got neither")
        if circles is not None and edges is None:
            raise OptionError("friend circles need edges, got none")
        self.documents = documents
        self.tokens = tokens
        self.statistics = statistics
        self.edges = edges.to(device) if edges is not None else None
        self.circles = circles
        self.passages = passages
        self.relevance = relevance
        self.joint = joint
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
        key = coin_key(self.seed, query_id, document_id)
        weights = {"tfidf": self.statistics.tfidf(input_ids)}
        if self.joint:
            cls, sep = (torch.tensor([i]) for i in self.tokens.special)
            before, after = torch.cat([cls, query_ids, sep]), sep
            weights = {name: F.pad(weight, (len(before), len(after))) for name, weight in weights.items()}
            weights["segment"] = torch.ones(len(before) + len(input_ids) + len(after), dtype=torch.long)
            weights["segment"][: len(before)] = 0
            input_ids = torch.cat([before, input_ids.long(), after])
        return document_graph(input_ids, query_ids, key, query_id, document_id, **weights)

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
            if isinstance(self.edges, SparseEdges):
                weigh(batch, "hub_mask", self.edges.hubs(batch))
            connect(batch, *self.edges(batch))
        else:
            nothing = torch.empty(2, 0, dtype=torch.long, device=self.device)
            connect(batch, nothing, torch.empty(0, device=self.device))
        if not self.joint:
            layout = (batch.edge_index, batch.batch, batch.num_graphs, batch.edge_weight)
            gather(batch, *compose(self.passages, self.circles, *layout))
            if self.relevance is not None:
                rate(batch, self.relevance(batch, self.statistics))
        return batch
