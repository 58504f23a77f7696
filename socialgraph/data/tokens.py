"""Texts as word pieces."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from tqdm import tqdm

from socialgraph.backbone import load_tokenizer, special_tokens
from socialgraph.data.batches import batches
from socialgraph.data.cache import Cache, content_key
from socialgraph.data.collection import Document
from socialgraph.errors import OptionError, is_whole

Ids = npt.NDArray[np.unsignedinteger[Any] | np.signedinteger[Any]]

#: characters that are tokenised at once: enough for all threads, little in memory
BATCH_CHARACTERS = 2_000_000
#: characters that are read first for each word piece; most texts have fewer than that
_CHARACTERS = 8
#: where a text may be cut: behind a character that is no blank, before one that all tokenizers take for a blank
_CUT = re.compile(r"\S(?=[ \n])")


class Encoder:
    """Texts to word pieces, many at once on all cores, without special tokens.

    Args:
        tokenizer: a fast tokenizer of transformers. Its own settings stay as they are.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.vocab_size = len(tokenizer)
        self._backend = copy.deepcopy(tokenizer.backend_tokenizer)
        self._backend.no_truncation()
        self._backend.no_padding()
        self._can_cut = _splits_at_blanks(self._backend)

    def __call__(self, texts: Sequence[str], length: int | None = None) -> list[Ids]:
        """Return each text's word pieces ``[L]``: uint16 where the vocabulary allows, else int32.

        Args:
            texts: to be encoded.
            length: word pieces of a text that are wanted; of a long text no more is read than they need. None: all.
        """
        pieces: list[Ids] = [np.empty(0, self.dtype)] * len(texts)
        missing, room = list(range(len(texts))), _CHARACTERS * (length or 0)
        while missing:
            heads = [self._head(texts[i], room) if length is not None else texts[i] for i in missing]
            # Lone surrogates have no UTF-8 and would stop the tokenizer.
            clean = [head.encode("utf-8", "replace").decode("utf-8") for head in heads]
            short = []
            for i, head, one in zip(missing, heads, self._encode(clean), strict=True):
                if length is not None and len(one) < length and len(head) < len(texts[i]):
                    short.append(i)
                pieces[i] = one[:length]
            missing, room = short, 4 * room
        return pieces

    def _head(self, text: str, room: int) -> str:
        """Return at least ``room`` characters of a text, cut where its first word pieces stay what they are."""
        cut = _CUT.search(text, room) if self._can_cut else None
        return text if cut is None else text[: cut.end()]

    def _encode(self, texts: list[str]) -> list[Ids]:
        encodings = self._backend.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(one.ids, dtype=self.dtype) for one in encodings]

    @property
    def dtype(self) -> npt.DTypeLike:
        """The smallest type that holds every word piece."""
        return np.uint16 if self.vocab_size <= 1 << 16 else np.int32

    @cached_property
    def identity(self) -> bytes:
        """A hash that is the same for two encoders that give the same word pieces."""
        return content_key(self._backend.to_str().encode())


def _splits_at_blanks(backend: Any) -> bool:
    """Whether no word piece reaches over a blank, so that a text's first ones do not depend on what follows."""
    added = backend.get_added_tokens_decoder().values()
    if backend.pre_tokenizer is None or any(map(str.isspace, "".join(token.content for token in added))):
        return False
    text = "a b\na" if backend.normalizer is None else backend.normalizer.normalize_str("a b\na")
    return len(backend.pre_tokenizer.pre_tokenize_str(text)) >= 3


class Tokens:
    """Turns queries and documents into word pieces of a backbone, without special tokens.

    What was tokenised is found again by its text, whatever it is called.

    Args:
        backbone: whose tokenizer, see :func:`socialgraph.backbone.load_tokenizer`.
        max_document_length: word pieces of a document (title and text) that are read.
        max_query_length: word pieces of a query that are read.
        cache: keeps word pieces of documents, 2 bytes each (4 in large vocabularies): :meth:`Cache.on_disk
            <socialgraph.data.Cache.on_disk>` for other processes and later, None: 1 GiB of them in memory.

    Raises:
        OptionError: a length below 1.
    """

    def __init__(
        self,
        backbone: str = "minilm",
        max_document_length: int = 2048,
        max_query_length: int = 64,
        cache: Cache | None = None,
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
        self.cache = Cache() if cache is None else cache
        self.encoder = Encoder(self.tokenizer)

    @property
    def vocab_size(self) -> int:
        """Number of word pieces there are."""
        return len(self.tokenizer)

    def query(self, text: str) -> Tensor:
        """Return a query's word pieces, ``[Q]`` int64; empty if nothing of it is a word piece."""
        return _query(self.encoder, text, self.max_query_length)

    def document(self, document: Document) -> Tensor:
        """Return a document's word pieces, ``[L]`` int32; empty if nothing of it is a word piece."""
        return self.documents([document.doc_id], {document.doc_id: document})[0]

    def documents(self, ids: Sequence[str], documents: Mapping[str, Document]) -> list[Tensor]:
        """Return word pieces of many documents, each ``[L]`` int32.

        Args:
            ids: of the documents.
            documents: by id.

        Raises:
            KeyError: a document is not among ``documents``.
        """
        texts = {one: documents[one].full_text for one in ids}
        pieces = self._tokenised(list(texts.values()))
        read = {one: torch.from_numpy(ids.astype(np.int32)) for one, ids in zip(texts, pieces, strict=True)}
        return [read[one] for one in ids]

    def lengths(self, ids: Sequence[str], documents: Mapping[str, Document]) -> list[int]:
        """Return the number of word pieces that are read of many documents; see :meth:`documents`."""
        lengths: list[int] = []
        texts = tqdm((documents[one].full_text for one in ids), "tokenising", len(ids), disable=None, leave=False)
        for some in batches(texts, len, BATCH_CHARACTERS):
            lengths += map(len, self._tokenised(some))
        return lengths

    def whole_length(self, text: str) -> int:
        """Return the number of word pieces of a text, however much of it is read."""
        return len(self.encoder([text])[0])

    def words(self, ids: Tensor) -> list[str]:
        """Return the word pieces as text, one for each id."""
        words: list[str] = self.tokenizer.convert_ids_to_tokens(ids.tolist())
        return words

    def _tokenised(self, texts: Sequence[str]) -> list[Ids]:
        """Return the word pieces that are read of some texts; those that the cache lacks are tokenised together."""
        length, encoder = self.max_document_length, self.encoder
        about = encoder.identity + b"%d" % length
        keys = [content_key(about, text.encode("utf-8", "surrogatepass")) for text in texts]
        known = {key: np.frombuffer(value, encoder.dtype) for key, value in self.cache.get(keys).items()}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        for some in batches(missing.items(), lambda item: len(item[1]), BATCH_CHARACTERS):
            fresh = dict(zip(dict(some), encoder([text for _, text in some], length), strict=True))
            self.cache.put({key: ids.tobytes() for key, ids in fresh.items()})
            known |= fresh
        return [known[key] for key in keys]


@lru_cache(maxsize=1 << 14)  # each pair of a batch asks for its query
def _query(encoder: Encoder, text: str, length: int) -> Tensor:
    return torch.from_numpy(encoder([text], length)[0].astype(np.int64))
