"""What a BERT reads, packed one after the other: a circle with its query, or each of them alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import cumsum
from torch_geometric.utils.sparse import index2ptr

from socialgraph.data.graph import circle_document
from socialgraph.errors import check_choice
from socialgraph.nn.segments import Segments

LEADERS = ("central", "cls")
POSITIONS = ("packed", "gaps")


@dataclass(frozen=True)
class Sequences:
    """Packed sequences: T tokens of C circles of B documents.

    Attributes:
        token: word pieces, ``[T]``.
        position: place within the sequence as BERT is told, from 0, ``[T]``.
        segment: 0 up to the first [SEP], 1 after it; 0 in queries and passages alone, ``[T]``.
        leader: where in T each circle's leader stands, ``[C]``.
        document: each circle's document, sorted, ``[C]``.
        segments: the sequences among the tokens, for all layers.
        document_segments: the documents among the circles, for all layers.
        positions: how many positions BERT must have; None where the device has not been asked.
    """

    token: Tensor
    position: Tensor
    segment: Tensor
    leader: Tensor
    document: Tensor
    segments: Segments
    document_segments: Segments
    positions: int | None = None

    @property
    def ptr(self) -> Tensor:
        """Bounds of the sequences, ``[C + 1]``."""
        return self.segments.ptr

    @property
    def document_ptr(self) -> Tensor:
        """Bounds of the documents among the circles, ``[B + 1]``."""
        return self.document_segments.ptr


def circle_sequences(graph: Data, cls: int, sep: int, leader: str = "central", positions: str = "packed") -> Sequences:
    """Lay out what every circle of a graph, or of a batch of graphs, reads.

    Members stand in document order.

    Args:
        graph: with ``input_ids``, ``query_ids``, ``query_length``, ``circle_index``, ``leader_index`` and
            ``passage_mask``.
        cls: id of [CLS].
        sep: id of [SEP].
        leader: "central": the leader of a friend circle is its central token (paper); "cls": it is its [CLS]
            (released code). A passage is led by its [CLS] always.
        positions: "packed": positions count from 0 in each sequence, as in any BERT input; "gaps": one place is left
            free wherever the document has words between two members, so that BERT can tell friends from neighbours.

    Raises:
        OptionError: an unknown kind of leader or of positions.
    """
    check_choice("leader", leader, LEADERS)
    check_choice("positions", positions, POSITIONS)
    node, circle = graph.circle_index
    document = circle_document(graph)
    members = index2ptr(circle, document.numel())
    query = graph.query_length[document]
    segments = Segments(cumsum(query + members.diff() + 3))
    documents = Segments(index2ptr(document, graph.query_length.numel()))
    rows, _ = Segments.measure(segments, documents)  # the only wait for a GPU
    start, first = segments.ptr[:-1], query + 2  # of each circle: where it begins, and the place of its first member
    owner = torch.repeat_interleave(segments.ptr.diff(), output_size=rows)
    position = torch.arange(rows, device=owner.device) - start[owner]

    token = torch.full_like(position, sep)
    token[start] = cls
    asked = torch.repeat_interleave(query, output_size=rows - circle.numel() - 3 * query.numel())
    word = torch.arange(asked.numel(), device=asked.device) - (query.cumsum(0) - query)[asked]
    token[start[asked] + 1 + word] = graph.query_ids[cumsum(graph.query_length)[document[asked]] + word]
    rank = torch.arange(circle.numel(), device=circle.device) - members[circle]
    place = (start + first)[circle] + rank
    token[place] = graph.input_ids[node]
    segment = (position >= first[owner]).long()
    if positions == "gaps":
        gap = torch.zeros_like(position)
        gap[place[1:]] = ((rank[1:] > 0) & (node.diff() > 1)).long()
        gap = gap.cumsum(0)
        position = position + gap - gap[start][owner]

    lead = start
    if leader == "central":
        # a sum of one place and zeros: what is chosen by a mask would have to be counted first
        central = torch.zeros_like(start).index_add_(0, circle, place * (node == graph.leader_index[circle]))
        lead = torch.where(graph.passage_mask, start, central)
    return Sequences(
        token=token,
        position=position,
        segment=segment,
        leader=lead,
        document=document,
        segments=segments,
        document_segments=documents,
        positions=segments.widest if positions == "packed" else None,
    )


def passage_sequences(graph: Data, cls: int, sep: int, marker: int | None = None) -> Sequences:
    """Lay out every circle without the query, ``[CLS] marker members [SEP]``, all in segment 0 and led by [CLS].

    Args:
        graph: with ``input_ids``, ``query_length``, ``circle_index`` and ``leader_index``.
        cls: id of [CLS].
        sep: id of [SEP].
        marker: id of a word piece that tells a document from a query; None for none.
    """
    words, document = graph.input_ids[graph.circle_index[0]], circle_document(graph)
    size = index2ptr(graph.circle_index[1], document.numel()).diff()
    return _framed(words, size, document, graph.query_length.numel(), cls, sep, marker)


def bare_query_sequences(graph: Data, cls: int, sep: int) -> Sequences:
    """Lay out the query of every document alone, ``[CLS] query [SEP]``, all in segment 0.

    Args:
        graph: with ``query_ids`` and ``query_length``.
        cls: id of [CLS].
        sep: id of [SEP].
    """
    document = torch.arange(graph.query_length.numel(), device=graph.query_length.device)
    return _framed(graph.query_ids, graph.query_length, document, document.numel(), cls, sep)


def _framed(
    words: Tensor, size: Tensor, document: Tensor, documents: int, cls: int, sep: int, marker: int | None = None
) -> Sequences:
    """Frame texts, ``[CLS] marker text [SEP]``: their words one after the other, the size and document of each."""
    first = 1 if marker is None else 2  # the place of the first word
    segments = Segments(cumsum(size + first + 1))
    document_segments = Segments(index2ptr(document, documents))
    rows, _ = Segments.measure(segments, document_segments)
    start = segments.ptr[:-1]
    owner = torch.repeat_interleave(segments.ptr.diff(), output_size=rows)
    token = torch.full_like(owner, sep)
    token[start] = cls
    if marker is not None:
        token[start + 1] = marker
    # Words stand as they come: only what frames the texts pushes them apart.
    text = torch.repeat_interleave(size, output_size=words.numel())
    token[torch.arange(words.numel(), device=words.device) + text * (first + 1) + first] = words
    return Sequences(
        token=token,
        position=torch.arange(owner.numel(), device=owner.device) - start[owner],
        segment=torch.zeros_like(token),
        leader=start,
        document=document,
        segments=segments,
        document_segments=document_segments,
        positions=segments.widest,
    )


def query_sequences(
    graph: Data, cls: int, sep: int, mask: int, length: int = 32, marker: int | None = None
) -> Sequences:
    """Lay out the query of every document alone, ``[CLS] marker query [SEP] [MASK] ... [MASK]``, all in segment 0.

    All have ``length`` tokens; a longer query is cut before its [SEP].

    Args:
        graph: with ``query_ids`` and ``query_length``.
        cls: id of [CLS].
        sep: id of [SEP].
        mask: id of [MASK].
        length: tokens of each, at least the two or three that frame the query.
        marker: id of a word piece that tells a query from a document; None for none.
    """
    first = 1 if marker is None else 2  # the place of the first word piece
    size = graph.query_length.clamp(max=length - first - 1)[:, None]
    start = (graph.query_length.cumsum(0) - graph.query_length)[:, None]
    amount = size.numel()
    position = torch.arange(length, device=size.device).expand(amount, length)
    token = torch.full_like(position, mask)
    token[:, 0] = cls
    if marker is not None:
        token[:, 1] = marker
    in_query = (position >= first) & (position < first + size)
    token[in_query] = graph.query_ids[(start + position - first)[in_query]]
    token[position == first + size] = sep
    document = torch.arange(amount + 1, device=size.device)
    return Sequences(
        token=token.flatten(),
        position=position.flatten(),
        segment=torch.zeros_like(token).flatten(),
        leader=document[:-1] * length,
        document=document[:-1],
        segments=Segments(document * length),
        document_segments=Segments(document),
        positions=length,
    )
