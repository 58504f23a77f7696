"""Texts as word pieces."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Self, cast

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from socialgraph.backbone import load_tokenizer, special_tokens
from socialgraph.data.collection import Document
from socialgraph.data.lru_cache import LRUCache
from socialgraph.data.token_store import Encoder, TokenStore, text_batches
from socialgraph.errors import OptionError, is_whole


class Tokens:
    """Turns queries and documents into word pieces of a backbone, without special tokens.

    Documents come from the store where there is one (:meth:`stored` finds or builds it), else they are tokenised and
    kept in memory. Queries are tokenised once.

    Args:
        backbone: whose tokenizer, see :func:`socialgraph.backbone.load_tokenizer`.
        max_document_length: word pieces of a document (title and text) that are read.
        max_query_length: word pieces of a query that are read.
        cache_size: bytes of word pieces (4 each) that are kept in memory, of documents that are in no store.
        store: word pieces of a collection's documents.

    Raises:
        OptionError: a length below 1.
    """

    def __init__(
        self,
        backbone: str = "minilm",
        max_document_length: int = 2048,
        max_query_length: int = 64,
        cache_size: int = 1 << 29,
        store: TokenStore | None = None,
    ) -> None:
        if not is_whole(max_document_length, 1) or not is_whole(max_query_length, 1):
            raise OptionError(
                f"lengths must be at least 1, and whole, got max_document_length={max_document_length} "
                f"and max_query_length={max_query_length}"
            )
        self.tokenizer = load_tokenizer(backbone)
        self.special = special_tokens(backbone, self.tokenizer)  # ids of [CLS] and [SEP]
        self.max_document_length = max_document_length
        self.max_query_length = max_query_length
        self.store = store
        self._encode = Encoder(self.tokenizer)
        self._documents = LRUCache(cache_size)
        self._queries = LRUCache(1 << 26)

    @classmethod
    def stored(
        cls,
        documents: Mapping[str, Document],
        backbone: str = "minilm",
        max_document_length: int = 2048,
        max_query_length: int = 64,
        cache: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Return the same with a store of these documents on disk, which is built if it is not in the cache yet.

        Args:
            documents: a collection's documents by id.
            backbone: see the class, as the lengths.
            max_document_length: the store holds whole documents and serves every length.
            max_query_length: see the class.
            cache: folder of caches, see :meth:`TokenStore.of <socialgraph.data.token_store.TokenStore.of>`.

        Raises:
            OptionError: a length below 1.
            InputError: the store cannot be written or read.
        """
        tokens = cls(backbone, max_document_length, max_query_length)
        tokens.store = TokenStore.of(documents, tokens.tokenizer, cache)
        return tokens

    def anew(self) -> Self:
        """Return the same for other documents: it knows none, whatever their ids, and has no store."""
        other = copy.copy(self)
        other.store, other._documents = None, LRUCache(self._documents.size)
        return other

    @property
    def vocab_size(self) -> int:
        """Number of word pieces there are."""
        return len(self.tokenizer)

    def query(self, text: str) -> Tensor:
        """Return a query's word pieces, ``[Q]`` int64; empty if nothing of it is a word piece."""
        known = self._queries.get(text)
        if known is None:
            known = torch.from_numpy(self._encode([text])[0][: self.max_query_length].astype(np.int64))
            self._queries.put(text, known)
        return known

    def document(self, document: Document) -> Tensor:
        """Return a document's word pieces, ``[L]`` int32; empty if nothing of it is a word piece."""
        return self.documents([document.doc_id], {document.doc_id: document})[0]

    def documents(self, ids: Sequence[str], documents: Mapping[str, Document]) -> list[Tensor]:
        """Return word pieces of many documents, each ``[L]`` int32; texts are read only where it must be.

        Args:
            ids: of the documents.
            documents: by id.

        Raises:
            KeyError: a document is neither in the store nor among ``documents``.
        """
        if self.store is None:
            return self._tokenised(ids, documents)
        rows = self.store.find(ids)
        strangers = [i for i, row in zip(ids, rows, strict=True) if row < 0]
        others = iter(self._tokenised(strangers, documents))
        return [next(others) if row < 0 else self.store.row(row, self.max_document_length) for row in rows]

    def lengths(self, ids: Sequence[str], documents: Mapping[str, Document]) -> list[int]:
        """Return the number of word pieces that are read of many documents; see :meth:`documents`."""
        rows = np.full(len(ids), -1) if self.store is None else self.store.find(ids)
        lengths = np.zeros(len(ids), np.int64)
        if self.store is not None:
            lengths[rows >= 0] = self.store.lengths(rows[rows >= 0]).clip(max=self.max_document_length)
        strangers = np.flatnonzero(rows < 0)
        for first in tqdm(range(0, len(strangers), 1024), "tokenising", disable=None, leave=False):
            some = strangers[first : first + 1024]
            lengths[some] = [len(pieces) for pieces in self._tokenised([ids[i] for i in some], documents)]
        return lengths.tolist()

    def whole_length(self, text: str) -> int:
        """Return the number of word pieces of a text, however much of it is read."""
        return len(self._encode([text])[0])

    def words(self, ids: Tensor) -> list[str]:
        """Return the word pieces as text, one for each id."""
        words: list[str] = self.tokenizer.convert_ids_to_tokens(ids.tolist())
        return words

    def _tokenised(self, ids: Sequence[str], documents: Mapping[str, Document]) -> list[Tensor]:
        """Return word pieces from memory; those that are not there are tokenised together."""
        pieces = {i: self._documents.get(i) for i in ids}
        for batch in text_batches(documents[i] for i, known in pieces.items() if known is None):
            for document, whole in zip(batch, self._encode([d.full_text for d in batch]), strict=True):
                cut = torch.from_numpy(whole[: self.max_document_length].astype(np.int32))
                self._documents.put(document.doc_id, cut)
                pieces[document.doc_id] = cut
        return [cast(Tensor, pieces[i]) for i in ids]
