"""Which circles of a document are read: the best, those that fit, joined or shortened.

All functions work on one graph or on a batch of them, all documents at once, and leave the graph as it is. Circles are
numbered document by document, so that ``document [C]`` (the document of each circle) is sorted.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import index_to_mask

from socialgraph.data.graph import circle_document
from socialgraph.errors import InputError
from socialgraph.ranks import best_first, places, ranks

#: what a graph knows of each circle, beside its members
PER_CIRCLE = ("leader_index", "passage_mask", "circle_score")


def text_room(graph: Data, length: int) -> Tensor:
    """Return how many tokens of text fit into ``[CLS] query [SEP] text [SEP]`` of ``length`` tokens, ``[B]``.

    Raises:
        InputError: a query leaves no room.
    """
    room: Tensor = length - 3 - graph.query_length
    if room.numel() and int(room.min()) < 1:
        raise InputError(
            f"a query of {int(graph.query_length.max())} word pieces leaves no room for text in {length} tokens; "
            "raise the length or cut the queries"
        )
    return room


def best(score: Tensor, document: Tensor, amount: int) -> Tensor:
    """Return which circles are the ``amount`` best of their document, ``[C]`` bool; ties go to the first.

    Args:
        score: of each circle, ``[C]``.
        document: of each circle, sorted, ``[C]``.
        amount: how many circles of each document; one with fewer keeps all.
    """
    return ranks(score, document) < amount


def fitting(score: Tensor, size: Tensor, document: Tensor, room: Tensor) -> Tensor:
    """Return how many members of each circle are read if a document's circles share a room, ``[C]``.

    Circles are taken from best to worst. The first that does not fit is cut, and ends it: a worse one never takes the
    place of a better one. So the members read fill the room, unless the document has fewer.

    Args:
        score: of each circle, ``[C]``; ties go to the first.
        size: members of each circle, ``[C]``.
        document: of each circle, sorted, ``[C]``.
        room: members that fit, of each document, ``[B]``.
    """
    order = best_first(score, document)
    used = size[order].cumsum(0)
    first = torch.arange(document.numel(), device=document.device) - places(document)  # of each circle's document
    before = used - size[order]
    left = room[document] - (before - before[first])  # the order leaves every document where it was
    read = torch.empty_like(document)
    read[order] = torch.minimum(left.clamp(min=0), size[order])
    return read


def select(graph: Data, keep: Tensor) -> Data:
    """Return the graph with some of its circles only, numbered anew.

    Args:
        graph: with circles.
        keep: which circles stay, ``[C]`` bool.
    """
    node, circle = graph.circle_index
    inside = keep[circle]
    number = keep.cumsum(0) - 1
    changed = {key: graph[key][keep] for key in PER_CIRCLE if key in graph}
    return _with(graph, circle_index=torch.stack([node[inside], number[circle[inside]]]), **changed)


def first(graph: Data) -> Data:
    """Return the graph with the first circle of each document alone."""
    return select(graph, places(circle_document(graph)) == 0)


def join(graph: Data) -> Data:
    """Return the graph with one circle for each document that has any: all members once, in document order.

    It is read as a passage, its first member stands as the leader, and it has no ``circle_score``.
    """
    member = index_to_mask(graph.circle_index[0], graph.input_ids.numel()).nonzero().squeeze(-1)
    batch = getattr(graph, "batch", None)
    document = torch.zeros_like(member) if batch is None else batch[member]
    first = places(document) == 0
    leader = member[first]
    joined = _with(
        graph,
        circle_index=torch.stack([member, first.long().cumsum(0) - 1]),
        leader_index=leader,
        passage_mask=torch.ones_like(leader, dtype=torch.bool),
    )
    joined.circle_score = None
    return joined


def truncate(graph: Data, length: Tensor) -> Data:
    """Return the graph with shorter circles: each keeps its first members.

    A leader that is cut off is followed by the circle's first member.

    Args:
        graph: with circles.
        length: members that stay, of each circle, at least 1, ``[C]``.
    """
    node, circle = graph.circle_index
    place = places(circle)
    keep = place < length[circle]
    led = torch.zeros_like(graph.leader_index, dtype=torch.bool)
    led[circle[keep & (node == graph.leader_index[circle])]] = True
    leader = torch.where(led, graph.leader_index, node[place == 0])
    return _with(graph, circle_index=graph.circle_index[:, keep], leader_index=leader)


def _with(graph: Data, **changed: Tensor) -> Data:
    """Return a graph that shares all other attributes. Not a Batch: its items could no longer be taken out."""
    return Data(**{**graph.to_dict(), **changed})
