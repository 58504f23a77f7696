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
from socialgraph.edges import Centrality, EdgeSampler, SocialEdges, SparseEdges, coin_key
from socialgraph.errors import InputError, OptionError
from socialgraph.partition import Partition

#: tokens of the longest document of a batch whose edges are still drawn, and kept, when nobody says otherwise
LAZY_ABOVE = 2048


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
        lazy: gather the circles without drawing the whole graph: the same circles, several times faster, but the batch
            then has no ``edge_index``, which no model needs and every look at the graph does. None: for batches with
            a document of more than 2,048 tokens, where edges and partitions can.
        seed: of the coins. The graph of a pair is a function of seed, ids and texts alone.
        device: where graphs are built, and where they stay.

    Raises:
        OptionError: neither circles nor passages, circles without edges, a joint graph without edges or with
            circles, or lazy where edges or a partition of their own kind need every edge.
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
        lazy: bool | None = None,
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
        can = isinstance(edges, SocialEdges) and not joint
        can = can and all(partition is None or partition.takes_lazy for partition in (circles, passages))
        if lazy and not can:
            raise OptionError("lazy needs SocialEdges, friend circles or windows, and no joint graph; use lazy=False")
        self.documents = documents
        self.tokens = tokens
        self.statistics = statistics
        self.edges = edges.to(device) if edges is not None else None
        self.circles = circles
        self.passages = passages
        self.relevance = relevance
        self.joint = joint
        self.lazy = lazy if lazy is not None or can else False
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
        if isinstance(self.edges, SocialEdges) and self.is_lazy(batch):
            edges, weights = self.edges.lazy(batch), None
        else:
            nothing = torch.empty(2, 0, dtype=torch.long, device=self.device), torch.empty(0, device=self.device)
            connect(batch, *(self.edges(batch) if self.edges is not None else nothing))
            edges, weights = batch.edge_index, batch.edge_weight
        if not self.joint:
            layout = (edges, batch.batch, batch.num_graphs, weights)
            gather(batch, *compose(self.passages, self.circles, *layout))
            if self.relevance is not None:
                rate(batch, self.relevance(batch, self.statistics))
        return batch

    def is_lazy(self, batch: Batch) -> bool:
        """Whether the circles of ``batch`` are gathered without drawing its graph."""
        return int(batch.ptr.diff().max()) > LAZY_ABOVE if self.lazy is None else self.lazy
