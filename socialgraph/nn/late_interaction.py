"""Late interaction: query and document go through BERT apart and meet only as vectors of their tokens."""

from __future__ import annotations

import string
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.utils import cumsum

from socialgraph.backbone import load_tokenizer
from socialgraph.errors import CheckpointError, OptionError
from socialgraph.nn.bi_encoder import BiEncoder, PassageVectors, QueryVectors
from socialgraph.nn.sequences import passage_sequences, query_sequences

#: segments are cut into pieces of this many tokens
PIECE = 32


def max_similarity(query: Tensor, token: Tensor, start: Tensor, size: Tensor, owner: Tensor) -> Tensor:
    r"""Return the late interaction of each segment with its query, ``[S]`` float32.

    .. math:: s = \sum_i \max_{j \in S} \langle q_i, t_j \rangle

    Segments are cut into pieces of 32 rows, so that one matrix product serves all of them and little is padded.

    Args:
        query: vectors of the queries, ``[B, Q, D]``.
        token: a table of token vectors, ``[T, D]``; only rows that are asked for are read.
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
    vectors = token[row.to(token.device)].to(query.device)
    with torch.autocast(query.device.type, enabled=False):  # a sum of 32 maxima is too fine for half precision
        similarity = vectors.float() @ query[owner[segment]].float().transpose(1, 2)  # [P, 32, Q]
    index = segment[:, None].expand(-1, query.size(1))
    best = similarity.new_full((size.numel(), query.size(1)), -torch.inf)
    best = best.scatter_reduce(0, index, similarity.amax(1), "amax")
    return best.masked_fill(size[:, None] == 0, 0.0).sum(1)


class LateInteraction(BiEncoder):
    """Base of the models that compare vectors of tokens: a BERT, a linear layer, vectors of length 1.

    Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
    BERT", SIGIR 2020. Taken from it: one BERT for both sides, a marker behind [CLS] ([unused0] for queries, [unused1]
    for documents; none where the vocabulary lacks them), the linear layer without bias, queries filled up with
    [MASK] whose vectors count, and no vectors of punctuation in documents. Different here: a query's tokens hear its
    [MASK]s, which the released code hides from them.

    A subclass implements :meth:`match`.

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
        if size < 1:
            raise OptionError(f"the size of a vector must be at least 1, got {size}")
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

    def encode_queries(self, graph: Data) -> QueryVectors:
        """Return the vectors of each document's query.

        Args:
            graph: with ``query_ids`` and ``query_length``; it needs nothing else.
        """
        sequences = query_sequences(
            graph, self.cls_token_id, self.sep_token_id, self.mask_token_id, self.query_length, self.query_marker
        )
        states = self.states(sequences)
        token = self._token_vectors(states).view(-1, self.query_length, self.token_vector.out_features)
        return QueryVectors(token, self.cls_vectors(states[sequences.leader]))

    def encode(self, graph: Data) -> PassageVectors:
        """Return the vectors of all passages. The query plays no part.

        [CLS], marker and [SEP] count as tokens, as in ColBERT; so no passage is without vectors.

        Args:
            graph: see :meth:`scores`.
        """
        sequences = passage_sequences(graph, self.cls_token_id, self.sep_token_id, self.document_marker)
        states = self.states(sequences)
        counts = ~torch.isin(sequences.token, self.get_buffer("punctuation"))
        ptr = cumsum(counts.long())[sequences.ptr]
        return PassageVectors(
            token=self._token_vectors(states[counts]),
            start=ptr[:-1],
            size=ptr.diff(),
            cls=self.cls_vectors(states[sequences.leader]),
            document=sequences.document,
            document_ptr=sequences.document_ptr,
        )

    def cls_vectors(self, states: Tensor) -> Tensor:
        """Return the vectors of some [CLS], ``[., F]``, from their states; F is 0 unless a model has some."""
        return states[:, :0].float()

    def _token_vectors(self, states: Tensor) -> Tensor:
        return F.normalize(self.token_vector(states).float(), dim=-1)


def vector_layer(hidden_size: int, size: int) -> torch.nn.Linear:
    """Return the linear layer from a state to a vector, without bias, drawn as BERT draws its own."""
    linear = torch.nn.Linear(hidden_size, size, bias=False)
    torch.nn.init.normal_(linear.weight, std=0.02)
    return linear
