"""Texts as word pieces."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor

from socialgraph.backbone import load_tokenizer, special_tokens
from socialgraph.data.collection import Document
from socialgraph.errors import OptionError


class Tokens:
    """Turns queries and documents into word pieces of a backbone, without special tokens.

    Args:
        backbone: whose tokenizer, see :func:`socialgraph.backbone.load_tokenizer`.
        max_document_length: word pieces of a document (title and text) that are read.
        max_query_length: word pieces of a query that are read.
        cache_size: documents whose word pieces are kept in memory.

    Raises:
        OptionError: a length below 1.
    """

    def __init__(
        self,
        backbone: str = "minilm",
        max_document_length: int = 2048,
        max_query_length: int = 64,
        cache_size: int = 20_000,
    ) -> None:
        if max_document_length < 1 or max_query_length < 1:
            raise OptionError(
                f"lengths must be at least 1, got max_document_length={max_document_length} "
                f"and max_query_length={max_query_length}"
            )
        self.tokenizer = load_tokenizer(backbone)
        self.special = special_tokens(backbone)  # ids of [CLS] and [SEP]
        self.max_document_length = max_document_length
        self.max_query_length = max_query_length
        self.cache_size = cache_size
        self._documents: OrderedDict[str, Tensor] = OrderedDict()

    @property
    def vocab_size(self) -> int:
        """Number of word pieces there are."""
        return len(self.tokenizer)

    def query(self, text: str) -> Tensor:
        """Return a query's word pieces, ``[Q]`` int64; empty if nothing of it is a word piece."""
        return self._encode(text, self.max_query_length).long()

    def document(self, document: Document) -> Tensor:
        """Return a document's word pieces, ``[L]`` int32; empty if nothing of it is a word piece."""
        known = self._documents.get(document.doc_id)
        if known is None:
            known = self._encode(document.full_text, self.max_document_length)
            self._documents[document.doc_id] = known
            if len(self._documents) > self.cache_size:
                self._documents.popitem(last=False)
        else:
            self._documents.move_to_end(document.doc_id)
        return known

    def words(self, ids: Tensor) -> list[str]:
        """Return the word pieces as text, one for each id."""
        words: list[str] = self.tokenizer.convert_ids_to_tokens(ids.tolist())
        return words

    def _encode(self, text: str, length: int) -> Tensor:
        # Lone surrogates have no UTF-8 and would stop the tokenizer.
        text = text.encode("utf-8", "replace").decode("utf-8")
        ids = self.tokenizer(
            text, add_special_tokens=False, truncation=True, max_length=length, return_attention_mask=False
        )
        return torch.tensor(ids["input_ids"], dtype=torch.int32)
