"""Bi-encoders: query and passages go through BERT apart and meet as vectors only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from socialgraph.nn.bert_ranker import BertRanker


@dataclass(frozen=True)
class QueryVectors:
    """Vectors of B queries.

    Attributes:
        token: of each query's tokens, length 1, ``[B, query length, D]`` float32; one for the whole query where the
            model has no others.
        cls: of each query's [CLS], ``[B, F]`` float32; F is 0 where the model has none.
    """

    token: Tensor
    cls: Tensor


@dataclass(frozen=True)
class PassageVectors:
    """Vectors of the C passages of B documents: rows of a table of token vectors.

    Attributes:
        token: the table, ``[T, D]``. It may hold more than these passages, in half precision, on another device.
        start: each passage's first row, ``[C]``. A document's passages lie one after the other.
        size: each passage's rows, at least 1, ``[C]``.
        cls: of each passage's [CLS], ``[C, F]`` float32; F is 0 where the model has none.
        document: each passage's document, sorted, ``[C]``.
        document_ptr: bounds of the documents among the passages, ``[B + 1]``.
    """

    token: Tensor
    start: Tensor
    size: Tensor
    cls: Tensor
    document: Tensor
    document_ptr: Tensor


class BiEncoder(BertRanker):
    """Base of the models whose query and passages meet as vectors only.

    :meth:`encode` knows nothing of queries, so who keeps its vectors can :meth:`match` them with any query. A
    subclass implements :meth:`encode_queries`, :meth:`encode` and :meth:`match`. Its arguments are those of
    :class:`~socialgraph.nn.BertRanker`.
    """

    #: query and passages are no sequence's two segments
    segments = 1
    #: whether :meth:`match` reads the passages' relevance by BM25
    reads_relevance = False

    @classmethod
    def backbone_options(cls, backbone: str) -> dict[str, Any]:
        """Return the arguments of the class that the backbone's files decide; vectors are made without its pooler."""
        return {key: value for key, value in super().backbone_options(backbone).items() if key != "pooler"}

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names. All its circles are
                read as passages.
        """
        return self.match(self.encode_queries(graph), self.encode(graph), self.relevance(graph))

    def encode_queries(self, graph: Data) -> QueryVectors:
        """Return the vectors of each document's query.

        Args:
            graph: with ``query_ids`` and ``query_length``; it needs nothing else.
        """
        raise NotImplementedError

    def encode(self, graph: Data) -> PassageVectors:
        """Return the vectors of all passages. The query plays no part.

        Args:
            graph: see :meth:`scores`.
        """
        raise NotImplementedError

    def match(self, query: QueryVectors, passages: PassageVectors, relevance: Tensor | None = None) -> Tensor:
        """Return the score of each document, ``[B]``, from vectors alone.

        Args:
            query: of each document's query, ``B`` of them.
            passages: of the documents.
            relevance: of each passage by BM25, ``[C]``, where the model reads it.
        """
        raise NotImplementedError

    def relevance(self, graph: Data) -> Tensor | None:
        """Return what :meth:`match` needs of a graph beside vectors: nothing, for most."""
        return None
