"""Texts to word pieces."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from socialgraph.data.cache import content_key

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
