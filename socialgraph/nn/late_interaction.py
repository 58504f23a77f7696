"""Late interaction: query and document go through BERT apart and meet only as vectors of their tokens."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.utils import cumsum

from socialgraph.backbone import load_tokenizer
from socialgraph.errors import CheckpointError, OptionError, check_whole
from socialgraph.nn.bert_conv import draw_linear
from socialgraph.nn.bert_ranker import BertRanker
from socialgraph.nn.sequences import passage_sequences, query_sequences

#: segments are cut into pieces of this many tokens
PIECE = 32


def max_similarity(query: Tensor, token: Tensor, start: Tensor, size: Tensor, owner: Tensor) -> Tensor:
    r"""Return the late interaction of each segment with its query, ``[S]`` float32.

    .. math:: s = \sum_i \max_{j \in S} \langle q_i, t_j \rangle

    Segments are cut into pieces of 32 rows, so that one matrix product serves all of them and little is padded.

    Args:
        query: vectors of the queries, ``[B, Q, D]``.
        token: vectors of tokens, ``[T, D]``.
        start: first row of each segment, ``[S]``.
        size: rows of each segment, ``[S]``; a segment without rows gets 0.
        owner: query of each segment, ``[S]``.
    """
    pieces = (size + PIECE - 1) // PIECE
    segment = torch.repeat_interleave(pieces)  # of each piece, [P]
    number = torch.arange(segment.numel(), device=size.device) - (pieces.cumsum(0) - pieces)[segment]
    place = number[:, None] * PIECE + torch.arange(PIECE, device=size.device)
    # Past its end a segment repeats its first row, which changes no maximum.
    row = start[segment, None] + torch.where(place < size[segment, None], place, 0)
    with torch.autocast(query.device.type, enabled=False):  # a sum of 32 maxima is too fine for half precision
        similarity = token[row].float() @ query[owner[segment]].float().transpose(1, 2)  # [P, 32, Q]
    index = segment[:, None].expand(-1, query.size(1))
    best = similarity.new_full((size.numel(), query.size(1)), -torch.inf)
    best = best.scatter_reduce(0, index, similarity.amax(1), "amax")
    return best.masked_fill(size[:, None] == 0, 0.0).sum(1)


@dataclass(frozen=True)
class PassageVectors:
    """Vectors of the C passages of B documents, one after the other.

    Attributes:
        token: of their tokens, length 1, ``[T, D]`` float32.
        ptr: bounds of the passages among the tokens, ``[C + 1]``; each has at least one.
        cls: state of each passage's [CLS], ``[C, E]``.
        document: each passage's document, sorted, ``[C]``.
        document_ptr: bounds of the documents among the passages, ``[B + 1]``.
    """

    token: Tensor
    ptr: Tensor
    cls: Tensor
    document: Tensor
    document_ptr: Tensor


class LateInteraction(BertRanker):
    """Base of the models that compare vectors of tokens: a BERT, a linear layer, vectors of length 1.

    Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
    BERT", SIGIR 2020. Taken from it: one BERT for both sides, a marker behind [CLS] ([unused0] for queries, [unused1]
    for documents; none where the vocabulary lacks them), the linear layer without bias, queries filled up with
    [MASK] whose vectors count, and no vectors of punctuation in documents. Different here: a query's tokens attend
    to its [MASK]s, which the released code hides from them.

    A subclass makes :meth:`scores` of :meth:`query_vectors` and :meth:`passage_vectors`.

    Args:
        size: width D of a vector.
        query_length: tokens of a query, with [CLS], marker, [SEP] and [MASK]s; longer ones are cut.
        mask_token_id: id of [MASK].
        query_marker: id of the marker of queries, or None.
        document_marker: id of the marker of documents, or None.
        punctuation: ids of the word pieces of a document that get no vector.
        bert: arguments of :class:`~socialgraph.nn.BertRanker`.

    Raises:
        OptionError: an option out of its range.
    """

    segments = 1

    def __init__(
        self,
        size: int = 128,
        query_length: int = 32,
        mask_token_id: int = 103,
        query_marker: int | None = None,
        document_marker: int | None = None,
        punctuation: list[int] | None = None,
        **bert: Any,
    ) -> None:
        super().__init__(**bert)
        check_whole("size", size, 1)
        if not 4 <= query_length <= self.max_positions:
            raise OptionError(f"query_length must be from 4 to {self.max_positions}, got {query_length}")
        self.query_length = query_length
        self.mask_token_id = mask_token_id
        self.query_marker = query_marker
        self.document_marker = document_marker
        self.register_buffer("punctuation", torch.tensor(punctuation or [], dtype=torch.long), persistent=False)
        self.token_vector = vector_layer(self.hidden_size, size)

    @classmethod
    def backbone_options(cls, backbone: str) -> dict[str, Any]:
        """Return the arguments of the class that the backbone's tokenizer decides.

        Raises:
            CheckpointError: it has no [MASK].
        """
        tokenizer = load_tokenizer(backbone)
        if tokenizer.mask_token_id is None:
            raise CheckpointError(f"{backbone}: the tokenizer has no [MASK]; late interaction fills queries up with it")
        vocabulary = tokenizer.get_vocab()
        markers = (vocabulary.get("[unused0]"), vocabulary.get("[unused1]"))
        return {
            **super().backbone_options(backbone),
            "mask_token_id": tokenizer.mask_token_id,
            "query_marker": markers[0] if None not in markers else None,
            "document_marker": markers[1] if None not in markers else None,
            "punctuation": sorted(vocabulary[sign] for sign in string.punctuation if sign in vocabulary),
        }

    def query_vectors(self, graph: Data) -> tuple[Tensor, Tensor]:
        """Return the vectors of each query's tokens, ``[B, query_length, D]``, and the state of its [CLS], ``[B, E]``.

        Args:
            graph: with ``query_ids`` and ``query_length``; it needs nothing else.
        """
        sequences = query_sequences(
            graph, self.cls_token_id, self.sep_token_id, self.mask_token_id, self.query_length, self.query_marker
        )
        states = self.states(sequences)
        token = self._token_vectors(states).view(-1, self.query_length, self.token_vector.out_features)
        return token, states[sequences.leader]

    def passage_vectors(self, graph: Data) -> PassageVectors:
        """Return the vectors of all passages. The query plays no part.

        [CLS], marker and [SEP] count as tokens, as in ColBERT; so no passage is without vectors.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names. All its circles are read as
                passages.
        """
        sequences = passage_sequences(graph, self.cls_token_id, self.sep_token_id, self.document_marker)
        states = self.states(sequences)
        counts = ~torch.isin(sequences.token, self.get_buffer("punctuation"))
        return PassageVectors(
            token=self._token_vectors(states[counts]),
            ptr=cumsum(counts.long())[sequences.ptr],
            cls=states[sequences.leader],
            document=sequences.document,
            document_ptr=sequences.document_ptr,
        )

    def _token_vectors(self, states: Tensor) -> Tensor:
        return F.normalize(self.token_vector(states).float(), dim=-1)


class ColBERT(LateInteraction):
    r"""Scores a document by the best match of each query token in the whole document.

    .. math:: s(q, d) = \sum_i \max_{j \in d} \langle q_i, d_j \rangle

    Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
    BERT", SIGIR 2020; see :class:`~socialgraph.nn.LateInteraction` for what is taken from it. Different here: a
    document is all passages of the graph, each read apart, where the original reads one passage and cuts the rest. One
    window of as many tokens as the BERT reads cuts as the original does.

    The arguments are those of :class:`~socialgraph.nn.LateInteraction`.
    """

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``; without a passage it is 0.

        Args:
            graph: see :meth:`passage_vectors`.
        """
        query, passages = self.query_vectors(graph)[0], self.passage_vectors(graph)
        ptr = passages.ptr[passages.document_ptr]  # a document's tokens lie one after the other
        document = torch.arange(ptr.numel() - 1, device=ptr.device)
        return max_similarity(query, passages.token, ptr[:-1], ptr.diff(), document)


def vector_layer(hidden_size: int, size: int) -> torch.nn.Linear:
    """Return the linear layer from a state to a vector, without bias, drawn as BERT draws its own."""
    return draw_linear(torch.nn.Linear(hidden_size, size, bias=False))
