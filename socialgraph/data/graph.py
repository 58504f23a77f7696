"""One (query, document) pair as a graph."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import cumsum

from socialgraph.errors import InputError

#: what is of circles, and what of the document or its query, however many nodes there are
OF_CIRCLES = ("circle_index", "leader_index", "passage_mask", "circle_score")
OF_DOCUMENT = ("query_ids", "query_length", "draw_key", "first_stage_score")


class DocumentGraph(Data):
    """A document as a social network of its word pieces, for one query.

    Nodes are the document's L word pieces. Everything is flat and ragged, so that PyG batches it without
    padding. Pointers are derived where they are needed, never stored.

    Attributes:
        input_ids: the document, without special tokens, ``[L]`` int64.
        query_ids: the query, without special tokens, ``[Q]`` int64.
        query_length: Q, ``[1]`` int64.
        draw_key: what decides which edges are drawn, ``[1]`` int64, see :func:`socialgraph.edges.draw_key`.
        query_id: id of the query.
        document_id: id of the document.
        tfidf: weight of each token, ``[L]`` float64, and further weights under their pattern's name.
        first_stage_score: what the first stage gave the document, ``[1]`` float64; NaN where it is no candidate of the
            query. There only for a partition that sees the graph, and where there are candidates.
        segment: of a joint graph, whose nodes are ``[CLS] query [SEP] document [SEP]``: 0 up to the first [SEP], 1
            after it, ``[L]`` int64.
        hub_mask: which nodes hear all and are heard by all, ``[L]`` bool, where the edges have such rules.
        edge_index: friendships, both directions, no self-loops, sorted, ``[2, E]``. (A joint graph's edges
            lead from who is heard to who listens, and some have one direction only.) There only where they
            are kept, as ``edge_weight`` is: ``GraphBuilder(keep_edges=True)``, and in joint graphs.
        edge_weight: the probability each edge had, ``[E]`` float32.
        circle_index: memberships as a hyperedge index, sorted by circle, ``[2, M]``: row 0 a node, row 1 its
            circle. A node may belong to many circles, or to none.
        leader_index: the leader of each circle, one of its members, ``[C]``.
        passage_mask: which circles are passages, led by their [CLS], ``[C]`` bool.
        circle_score: how well each circle answers the query, ``[C]`` float32, where the builder was asked for it.
    """

    @property
    def num_circles(self) -> int:
        """Number of circles, passages included."""
        return self.leader_index.numel() if "leader_index" in self else 0

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if key == "circle_index":
            return torch.tensor([[self.num_nodes], [self.num_circles]])
        return super().__inc__(key, value, *args, **kwargs)

    def subgraph(self, subset: Tensor) -> DocumentGraph:
        """Return the graph of some nodes: circles keep the members that stay, and one whose leader leaves is gone.

        Args:
            subset: ids of nodes, or a mask of them.

        Raises:
            InputError: this is a batch, whose documents would lose their bounds.
        """
        if "ptr" in self:
            raise InputError("a batch has no subgraph: its documents would lose their bounds; take batch[i]")
        # PyG takes whatever has as many entries as there are nodes for something of the nodes
        whole = {key: self[key] for key in (*OF_CIRCLES, *OF_DOCUMENT) if key in self}
        nodes = copy.copy(self)
        for key in whole:
            del nodes[key]
        graph: DocumentGraph = Data.subgraph(nodes, subset)
        if "leader_index" in whole:
            number = torch.full((int(self.num_nodes or 0),), -1, device=subset.device)
            number[subset] = torch.arange(int(graph.num_nodes or 0), device=subset.device)
            leader, (node, circle) = number[self.leader_index], self.circle_index
            node, there = number[node], leader >= 0
            stays = (node >= 0) & there[circle]
            index = torch.stack([node[stays], (there.cumsum(0) - 1)[circle[stays]]])
            place = torch.argsort(index[1] * max(int(graph.num_nodes or 0), 1) + index[0])
            whole |= {key: self[key][there] for key in ("passage_mask", "circle_score") if key in whole}
            whole |= {"circle_index": index[:, place], "leader_index": leader[there]}
        for key, value in whole.items():
            graph[key] = value
        return graph


def document_graph(
    input_ids: Tensor, query_ids: Tensor, draw_key: int, query_id: str = "", document_id: str = "", **weights: Tensor
) -> DocumentGraph:
    """Return a pair's graph without edges and circles yet.

    Args:
        input_ids: the document's word pieces, ``[L]``; L may be 0.
        query_ids: the query's word pieces, ``[Q]``.
        draw_key: see :func:`socialgraph.edges.draw_key`.
        query_id: id of the query.
        document_id: id of the document.
        weights: node weights that patterns need, each ``[L]``, such as ``tfidf``; and what else the graph has.
    """
    return DocumentGraph(
        input_ids=input_ids.long(),
        query_ids=query_ids.long(),
        query_length=torch.tensor([query_ids.numel()]),
        draw_key=torch.tensor([draw_key]),
        query_id=query_id,
        document_id=document_id,
        num_nodes=input_ids.numel(),
        **weights,
    )


def circle_document(graph: Data) -> Tensor:
    """Return the document of each circle, sorted, ``[C]``; 0 for a single graph."""
    batch = getattr(graph, "batch", None)
    return torch.zeros_like(graph.leader_index) if batch is None else batch[graph.leader_index]


def circle_size(graph: Data) -> Tensor:
    """Return how many members each circle has, ``[C]``."""
    return torch.bincount(graph.circle_index[1], minlength=graph.leader_index.numel())


def circle_score(graph: Data) -> Tensor:
    """Return how well each circle answers the query, ``[C]``.

    Raises:
        InputError: the graph was built without.
    """
    if "circle_score" not in graph:
        raise InputError("the graph has no circle_score: build it with GraphBuilder(..., relevance=PassageBM25())")
    score: Tensor = graph.circle_score
    return score


def connect(batch: Batch, edge_index: Tensor, edge_weight: Tensor) -> None:
    """Give a batch of graphs its edges, such that ``batch[i]`` finds its own."""
    count = torch.bincount(batch.batch.index_select(0, edge_index[0]), minlength=batch.num_graphs)
    bounds = cumsum(count)
    _attach(batch, "edge_index", edge_index, bounds, batch.ptr[:-1])
    _attach(batch, "edge_weight", edge_weight, bounds, torch.zeros_like(count))


def gather(batch: Batch, circle_index: Tensor, leader_index: Tensor, passage_mask: Tensor) -> None:
    """Give a batch of graphs its circles, such that ``batch[i]`` finds its own."""
    document = batch.batch[leader_index]
    circles = torch.bincount(document, minlength=batch.num_graphs)
    members = torch.bincount(document.index_select(0, circle_index[1]), minlength=batch.num_graphs)
    first = torch.stack([batch.ptr[:-1], circles.cumsum(0) - circles], 1).unsqueeze(-1)
    bounds = cumsum(circles)
    _attach(batch, "circle_index", circle_index, cumsum(members), first)
    _attach(batch, "leader_index", leader_index, bounds, batch.ptr[:-1])
    _attach(batch, "passage_mask", passage_mask, bounds, torch.zeros_like(circles))


def rate(batch: Batch, circle_score: Tensor) -> None:
    """Give the circles of a batch of graphs a score, such that ``batch[i]`` finds its own."""
    circles = torch.bincount(batch.batch[batch.leader_index], minlength=batch.num_graphs)
    _attach(batch, "circle_score", circle_score, cumsum(circles), torch.zeros_like(circles))


def weigh(batch: Batch, name: str, weight: Tensor) -> None:
    """Give the nodes of a batch of graphs a weight, such that ``batch[i]`` finds its own."""
    _attach(batch, name, weight, batch.ptr, torch.zeros_like(batch.ptr[:-1]))


def _attach(batch: Batch, key: str, value: Tensor, bounds: Tensor, increment: Tensor) -> None:
    # PyG records where each item's part lies only when it collates; what is computed for a whole batch at
    # once has to be recorded the same way.
    batch[key] = value
    batch._slice_dict[key] = bounds.cpu()
    batch._inc_dict[key] = increment.cpu()
