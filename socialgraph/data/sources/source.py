"""What a public source says, and where it stands: the two objects that every collection is made of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from socialgraph.data.collection import Document

#: word pieces at which a new bucket of lengths begins
BOUNDS = (512, 1024, 2048)


class Question(NamedTuple):
    """A question, the one document that is relevant to it, and where in its text the answer stands.

    ``place`` is in characters of the document's text, end excluded; None where the source does not say.
    """

    query_id: str
    text: str
    doc_id: str
    place: tuple[int, int] | None


@dataclass
class Contents:
    """What was read of a source.

    Args:
        documents: by id, in the order in which the corpus is written.
        questions: in the order in which each split lists them.
        splits: from each document's length in word pieces to its split: ``train``, ``dev`` or ``test``.
        tables: further files: name -> text.
    """

    documents: dict[str, Document]
    questions: list[Question]
    splits: Callable[[Mapping[str, int]], dict[str, str]]
    tables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """Where a collection comes from, how it is read, and what is made of it.

    Args:
        name: of the collection.
        repository: on GitHub, ``owner/name``.
        commit: of that repository, 40 hexadecimal digits.
        files: patterns of the files that are read, relative to the repository.
        digest: of what is built, see :func:`socialgraph.data.sources.make.digest`.
        read: from the unpacked repository to its contents.
        notice: what the file NOTICE says: source, licence, changes.
        balanced: split -> questions for each bucket of the relevant document's length, in a split ``<split>_bal``.
        only_found: whether a balanced split takes only questions whose document is among the first candidates.
    """

    name: str
    repository: str
    commit: str
    files: tuple[str, ...]
    digest: str
    read: Callable[[Path], Contents]
    notice: str
    balanced: Mapping[str, int] = field(default_factory=dict)
    only_found: bool = False


def sha1(text: str) -> str:
    """Return the SHA-1 of a text in hexadecimal: what decides here is drawn by it, the same on every machine."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def bucket(length: int) -> int:
    """Return which bucket of lengths a document of so many word pieces is in."""
    return sum(length >= bound for bound in BOUNDS)


def one_line(text: str) -> str:
    """Return a question on one line, each run of blanks as one."""
    return " ".join(text.split())


def without_repeats(questions: Iterable[Question], everywhere: bool = False) -> list[Question]:
    """Return the questions without exact repeats for one document (upper and lower case alike); the first stays.

    Args:
        questions: in order.
        everywhere: whether a repeat for another document goes too.
    """
    kept: dict[tuple[str, str], Question] = {}
    for question in questions:
        kept.setdefault(("" if everywhere else question.doc_id, question.text.lower()), question)
    return list(kept.values())
