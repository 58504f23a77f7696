"""From texts to a batch of graphs with their circles: where edges and partition are put to work."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Batch

from socialgraph.contracts import check_circles, check_edges
from socialgraph.data.cache import Cache
from socialgraph.data.circles import side_by_side
from socialgraph.data.collection import Document
from socialgraph.data.graph import DocumentGraph, connect, document_graph, gather, rate, weigh
from socialgraph.data.statistics import TermStatistics
from socialgraph.data.tokens import Tokens
from socialgraph.data.weights import cached_weights
from socialgraph.edges import Centrality, EdgeSampler, SocialEdges, SocialGraph, SparseEdges, draw_key
from socialgraph.errors import InputError, OptionError, blaming, check_whole, is_user_defined
from socialgraph.partition import Partition


class GraphBuilder:
    """Builds the graphs of (query, document) pairs, many at once.

    Args:
        documents: the collection's documents by id.
        tokens: texts to word pieces.
        statistics: for the tf-idf weights, and for patterns that ask for more; a batch has them while it is drawn. They
            are read where there are edges, a relevance, or a partition that sees the graph.
        edges: draws the graph; None where nobody reads it.
        circles: gathers friend circles; None for passages only.
        passages: cuts the passages; None for friend circles only.
        relevance: rates every circle, for models that choose among them; the graph's ``circle_score``. Such as
            :class:`~socialgraph.data.PassageBM25` and :class:`~socialgraph.data.PassageSample`.
        joint: the query is part of the graph, whose nodes are ``[CLS] query [SEP] document [SEP]``: for models that
            read the document as a whole, along its edges.
        keep_edges: whether batches have ``edge_index`` and ``edge_weight``. Every look at a graph needs them; models of
            circles do not, and to gather the same circles without drawing all edges is several times faster. A joint
            graph always has them.
        seed: of the draws. The graph of a pair is a function of the seed and the texts alone.
        draws: graphs of a pair over which re-ranking takes the mean of the scores; each costs as much as one. The paper
            has one.
        device: where graphs are built, and where they stay.
        cache: keeps the weights of costly patterns (dynamic centrality); None keeps 1 GiB of them in memory.
        first_stage: query id, document id -> score, for partitions that see the graph, such as
            :meth:`Collection.first_stage_score`; the graph's ``first_stage_score``.
        check: hold what patterns, samplers and partitions of the user's own answer against their contracts, on each
            batch (:mod:`socialgraph.contracts`).

    Raises:
        OptionError: neither circles nor passages, circles without edges, edges to be kept where there are
            none, a joint graph without edges or with circles, two patterns whose weights have one name, or draws below
            1.
    """

    def __init__(
        self,
        documents: Mapping[str, Document],
        tokens: Tokens,
        statistics: TermStatistics,
        edges: EdgeSampler | None = None,
        circles: Partition | None = None,
        passages: Partition | None = None,
        relevance: Callable[[Batch, TermStatistics], Tensor] | None = None,
        joint: bool = False,
        keep_edges: bool = False,
        seed: int = 0,
        draws: int = 1,
        device: torch.device | str = "cpu",
        cache: Cache | None = None,
        first_stage: Callable[[str, str], float] | None = None,
        check: bool = True,
    ) -> None:
        has_circles = circles is not None or passages is not None
        if joint:
            fits = edges is not None and not has_circles and relevance is None
        else:
            fits = has_circles and (edges is not None or (circles is None and not keep_edges))
        if not fits:
            raise OptionError(
                "a graph needs circles, passages or both, and edges where there are circles or keep_edges; a joint one "
                "needs edges and no circles, passages or relevance"
            )
        check_whole("draws", draws, 1)
        _refuse_shared_weights(torch.nn.ModuleDict() if edges is None else edges.patterns)
        self.documents = documents
        self.tokens = tokens
        self.statistics = statistics
        self.edges = edges.to(device) if edges is not None else None
        self.circles = circles
        self.passages = passages
        self.relevance = relevance
        self.joint = joint
        self.keep_edges = keep_edges
        self.seed = seed
        self.draws = draws if edges is not None or relevance is not None else 1  # passages alone are always the same
        self.device = torch.device(device)
        self.cache = Cache() if cache is None else cache
        self.first_stage = first_stage
        self.check = check
        #: whether anything reads the collection's statistics; the model of passages alone does not
        self.reads_statistics = edges is not None or relevance is not None or self._sees_graph()
        if self.reads_statistics:
            _ = statistics.size  # counted here, once, and not by each worker

    def redrawn(self, number: int) -> GraphBuilder:
        """Return what builds the same graphs by another draw, the ``number``-th; the 0th is this one's own."""
        other = copy.copy(self)
        other.seed, other.draws = self.seed + (number << 32), 1  # no seed that a person would choose
        return other

    def _graph(self, query_id: str, query: str, document_id: str, input_ids: Tensor) -> DocumentGraph:
        query_ids = self.tokens.query(query)
        if query_ids.numel() == 0:
            raise InputError(f"query {query_id!r} has no word piece: {query!r}")
        key = draw_key(self.seed, query_ids, input_ids)
        weights = {"tfidf": self.statistics.tfidf(input_ids)} if self.reads_statistics else {}
        if (score := self.first_stage_score(query_id, document_id)) is not None:
            weights["first_stage_score"] = torch.tensor([score], dtype=torch.float64)
        if self.joint:
            cls, sep = (torch.tensor([i]) for i in self.tokens.special)
            before, after = torch.cat([cls, query_ids, sep]), sep
            weights = {name: F.pad(weight, (len(before), len(after))) for name, weight in weights.items()}
            weights["segment"] = torch.ones(len(before) + len(input_ids) + len(after), dtype=torch.long)
            weights["segment"][: len(before)] = 0
            input_ids = torch.cat([before, input_ids.long(), after])
        return document_graph(input_ids, query_ids, key, query_id, document_id, **weights)

    def first_stage_score(self, query_id: str, document_id: str) -> float | None:
        """Return what the first stage gave a document, NaN where it is no candidate; None where nobody sees it."""
        if self.first_stage is None or not self._sees_graph():
            return None
        return self.first_stage(query_id, document_id)

    def _sees_graph(self) -> bool:
        """Whether a partition reads more of the graph than its edges."""
        return any(one is not None and one.sees_graph for one in (self.circles, self.passages))

    def __call__(self, pairs: Sequence[tuple[str, str, str]]) -> Batch:
        """Return the batch of graphs of ``(query id, query text, document id)``, ready for a model.

        Edges and circles of all documents are computed together.

        Raises:
            InputError: see :meth:`read`.
            ContractError: a class of the user's own breaks its contract; it names class, contract and document.
        """
        return self.draw(self.read(pairs))

    def ahead(self, pairs: Sequence[tuple[str, str, str]]) -> Batch:
        """Return what a worker can build while the model computes; :meth:`finish` does the rest.

        That is the whole batch where graphs are built on the CPU, else its texts: the device belongs to the process
        of the model.
        """
        return self(pairs) if self.device.type == "cpu" else self.read(pairs)

    def finish(self, batch: Batch) -> Batch:
        """Return the batch that :meth:`ahead` began, ready for a model."""
        return batch if self.device.type == "cpu" else self.draw(batch)

    def read(self, pairs: Sequence[tuple[str, str, str]]) -> Batch:
        """Return the batch of graphs without edges and circles, on the CPU.

        Raises:
            InputError: a query has no word piece, or a document is not in the collection.
        """
        try:
            texts = self.tokens.documents([document_id for _, _, document_id in pairs], self.documents)
        except KeyError:
            query_id, _, document_id = next(pair for pair in pairs if pair[2] not in self.documents)
            raise InputError(
                f"document {document_id!r}, which is asked for with query {query_id!r}, is not in the collection"
            ) from None
        return Batch.from_data_list([self._graph(*pair, text) for pair, text in zip(pairs, texts, strict=True)])

    def draw(self, batch: Batch) -> Batch:
        """Return a batch of :meth:`read` with edges and circles, on the device; in full precision wherever called.

        Out of inference mode, too: there tensors do not count how often they are written to.
        """
        batch = self.weighed(batch)
        with self._exactly():
            graph = self._sampled(batch)
            if self.keep_edges or self.joint:
                graph = graph if isinstance(graph, tuple) else graph.edges()
                connect(batch, *graph)
            if not self.joint:
                passages, circles = (
                    None if one is None else self._gather(one, graph, batch) for one in (self.passages, self.circles)
                )
                gather(batch, *side_by_side(batch.batch, passages, circles))
                if self.relevance is not None:
                    rate(batch, self.relevance(batch, self.statistics))
        if not self.keep_edges:
            del batch.statistics
        return batch

    def weighed(self, batch: Batch) -> Batch:
        """Return a batch of :meth:`read` with the weights of its patterns, on the device: the first part of drawing.

        Weights of costly patterns are kept, so :meth:`draw` then takes the time of edges and circles alone.
        """
        with self._exactly():
            batch = batch.to(self.device, non_blocking=True)
            batch.statistics = self.statistics  # for patterns and partitions that ask; no model does
            for pattern in self.edges.patterns.values() if self.edges is not None else ():
                if isinstance(pattern, Centrality):
                    with blaming(pattern, "the batch"):
                        kept = cached_weights(pattern, batch, self.cache) if pattern.costly else pattern.weights(batch)
                    weigh(batch, pattern.name, kept)
            if isinstance(self.edges, SparseEdges):
                weigh(batch, "hub_mask", self.edges.hubs(batch))
        return batch

    @contextmanager
    def _exactly(self) -> Iterator[None]:
        with torch.inference_mode(False), torch.no_grad(), torch.autocast(self.device.type, enabled=False):
            yield

    def _sampled(self, batch: Batch) -> SocialGraph | tuple[Tensor, Tensor]:
        """Return the graph of a batch, whose edges are drawn as far as somebody asks for them; or all its edges."""
        if isinstance(self.edges, SocialEdges):
            return self.edges.sampled(batch, self.check)
        if self.edges is None:
            return batch.batch.new_empty(2, 0), batch.batch.new_empty(0, dtype=torch.float32)
        if self.check and is_user_defined(self.edges):
            return check_edges(self.edges, batch, batch.batch, undirected=not self.joint)
        edges: tuple[Tensor, Tensor] = self.edges(batch)
        return edges

    def _gather(
        self, partition: Partition, graph: SocialGraph | tuple[Tensor, Tensor], batch: Batch
    ) -> tuple[Tensor, Tensor]:
        """Return what a partition answers; a user's own must not change what it is given."""
        given = batch.to_dict() if partition.sees_graph else {"batch": batch.batch}
        if isinstance(graph, tuple):
            edge_index, edge_weight = graph
            given |= {"edge_index": edge_index, "edge_weight": edge_weight}
            ask = partial(partition.gathered, edge_index, batch.batch, batch.num_graphs, edge_weight, batch)
        else:
            ask = partial(partition.from_sampled, graph)
        if not self.check or not is_user_defined(partition):
            return ask()
        return check_circles(partition, ask, batch.batch, given, batch)


def _refuse_shared_weights(patterns: torch.nn.ModuleDict) -> None:
    """Refuse two patterns that keep weights of nodes under one name: both would take those of the second one."""
    keeper: dict[str, str] = {}
    for name, pattern in patterns.items():
        if isinstance(pattern, Centrality) and keeper.setdefault(pattern.name, name) != name:
            message = f"patterns {keeper[pattern.name]} and {name} keep their weights in a graph as {pattern.name!r}"
            raise OptionError(f"{message}, both; derive a class of another name for one of them")
