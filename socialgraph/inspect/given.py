"""What a model reads of a circle, and how much of a pair's texts it does not read."""

from __future__ import annotations

from torch.nn import Module

from socialgraph.data import Document, Tokens
from socialgraph.nn.bi_encoder import BiEncoder
from socialgraph.nn.keyb import KeyB
from socialgraph.nn.whole_document import WholeDocument


def layout(model: Module | None) -> str | None:
    """Return what a model reads of a circle: see ``given`` of :func:`~socialgraph.inspect.report`.

    KeyB joins circles, and an encoder of whole documents reads none.
    """
    if isinstance(model, KeyB | WholeDocument):
        return None
    return "apart" if isinstance(model, BiEncoder) else "together"


def whole_lengths(tokens: Tokens, document: Document, query: str) -> tuple[int, int]:
    """Return the number of word pieces of a whole document and of a whole query, whatever is read of them."""
    return tokens.whole_length(document.full_text), tokens.whole_length(query)
