"""Texts as users have them, as documents with ids."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from socialgraph.data import Collection, Document
from socialgraph.errors import InputError

T = TypeVar("T")

Text = str | Document | Mapping[str, str]
"""A text; a dict has ``text``, and may have ``title``."""
Texts = Sequence[Text] | Mapping[Any, Text] | Collection


def as_documents(texts: Texts) -> tuple[list[str] | None, Mapping[str, Document]]:
    """Return the id of each place of a list, or None where texts have ids of their own; and documents by id.

    A text of a list is named after what it says, so that it has the same graph at any place of any list.

    Raises:
        InputError: one of them is no text.
    """
    if isinstance(texts, Collection):
        return None, texts.documents
    if isinstance(texts, Mapping):
        return None, {name: as_document(text, name)[1] for name, text in string_ids(texts).items()}
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise InputError(f"texts must be a list, a dict or a Collection, got {type(texts).__name__}")
    named = [as_document(text) for text in texts]
    return [name for name, _ in named], dict(named)


def string_ids(table: Mapping[Any, T]) -> dict[str, T]:
    """Return a table whose ids are strings, in the same order.

    Raises:
        InputError: two ids are one as strings, such as 1 and "1".
    """
    named: dict[str, Any] = {}
    for key in table:
        if named.setdefault(str(key), key) is not key:
            raise InputError(f"the ids {named[str(key)]!r} and {key!r} are one as strings; give them different names")
    return {name: table[key] for name, key in named.items()}


def as_document(text: Any, name: str | None = None) -> tuple[str, Document]:
    """Return a text's id, by default a hash of it, and the document.

    Raises:
        InputError: it is no text.
    """
    title, content = "", text
    if isinstance(text, Document):
        title, content = text.title, text.text
    elif isinstance(text, Mapping):
        title, content = str(text.get("title") or ""), text.get("text")
    if not isinstance(content, str):
        raise InputError(f"a text is a string, or a dict with 'text' and perhaps 'title', got {str(text)[:80]!r}")
    if name is None:
        name = hashlib.sha256(f"{title}\0{content}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return name, Document(name, content, title)


def as_queries(query: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return queries by id; one without an id is named by its text.

    Raises:
        InputError: one of them is no text.
    """
    if isinstance(query, Mapping):
        return {name: checked_query(one) for name, one in string_ids(query).items()}
    several = query if isinstance(query, Sequence) and not isinstance(query, str) else [query]
    return {checked_query(one): one for one in several}


def checked_query(query: Any) -> str:
    """Return a query's text.

    Raises:
        InputError: it is no text.
    """
    if not isinstance(query, str):
        raise InputError(f"a query is a string, several are a list or a dict, got {str(query)[:80]!r}")
    return query
