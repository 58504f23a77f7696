"""What a circle reads: [CLS] query [SEP] members [SEP], all circles of a batch packed one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import cumsum

from socialgraph.errors import OptionError

LEADERS = ("central", "cls")


@dataclass(frozen=True)
class Sequences:
    """Packed sequences: T tokens of C circles of B documents.

    Attributes:
        token: word pieces, ``[T]``.
        position: place within the sequence, from 0, ``[T]``.
        segment: 0 up to the first [SEP], 1 after it, ``[T]``.
        ptr: bounds of the sequences, ``[C + 1]``.
        leader: where in T each circle's leader stands, ``[C]``.
        document: each circle's document, sorted, ``[C]``.
        document_ptr: bounds of the documents among the circles, ``[B + 1]``.
    """

    token: Tensor
    position: Tensor
    segment: Tensor
    ptr: Tensor
    leader: Tensor
    document: Tensor
    document_ptr: Tensor


def circle_sequences(graph: Data, cls: int, sep: int, leader: str = "central") -> Sequences:
    """Lay out what every circle of a graph, or of a batch of graphs, reads.

    Members stand in document order and positions count from 0 in each sequence, as in any BERT input.

    Args:
        graph: with ``input_ids``, ``query_ids``, ``query_length``, ``circle_index``, ``leader_index`` and
            ``passage_mask``.
        cls: id of [CLS].
        sep: id of [SEP].
        leader: "central": the leader of a friend circle is its central token (paper); "cls": it is its [CLS]
            (released code). A passage is led by its [CLS] always.

    Raises:
        OptionError: an unknown kind of leader.
    """
    if leader not in LEADERS:
        raise OptionError(f"leader must be one of {', '.join(LEADERS)}, got {leader!r}")
    node, circle = graph.circle_index
    batch = getattr(graph, "batch", None)
    document = torch.zeros_like(graph.leader_index) if batch is None else batch[graph.leader_index]
    amount = graph.leader_index.numel()
    size = torch.bincount(circle, minlength=amount)
    query = graph.query_length[document]
    ptr = cumsum(query + size + 3)
    start, first = ptr[:-1], query + 2  # of each circle: where it begins, and the place of its first member
    owner = torch.repeat_interleave(ptr.diff())
    position = torch.arange(owner.numel(), device=owner.device) - start[owner]

    token = torch.full_like(position, sep)
    token[start] = cls
    in_query = (position > 0) & (position < first[owner] - 1)
    query_start = cumsum(graph.query_length)[document]
    token[in_query] = graph.query_ids[(query_start[owner] + position - 1)[in_query]]
    rank = torch.arange(circle.numel(), device=circle.device) - (size.cumsum(0) - size)[circle]
    place = (start + first)[circle] + rank
    token[place] = graph.input_ids[node]

    lead = start
    if leader == "central":
        central = place[node == graph.leader_index[circle]]
        lead = torch.where(graph.passage_mask, start, central)
    return Sequences(
        token=token,
        position=position,
        segment=(position >= first[owner]).long(),
        ptr=ptr,
        leader=lead,
        document=document,
        document_ptr=cumsum(torch.bincount(document, minlength=graph.query_length.numel())),
    )
