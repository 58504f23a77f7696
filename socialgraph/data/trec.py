"""The two TREC text formats: runs and relevance judgements (qrels).

A run line is `query Q0 document rank score tag`, a judgement line `query iteration document grade`, columns
divided by blanks or tabs. Files whose name ends in `.gz` are read and written through gzip. Reading is
strict: every line must be whole, and what is said of a query and a document may come only once. What `write_run` and
`write_qrels` write is read back equal, except that a query without documents leaves no line.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TypeVar

from socialgraph.data.collection import Qrels, Run, judge, ranked
from socialgraph.data.files import atomic_text
from socialgraph.data.lines import decoded, numbered_lines
from socialgraph.errors import InputError

T = TypeVar("T", int, float)

#: C0, DEL, C1, and the mark of byte order, which is dropped at the start of a file
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ufeff]")
_RUN = ("query", "Q0", "document", "rank", "score", "tag")
_QRELS = ("query", "iteration", "document", "grade")


def read_run(path: str | os.PathLike[str]) -> Run:
    """Read a TREC run.

    The scores count; the rank column must hold whole numbers but is not used, and the tag is dropped. Queries
    and documents come in the order of the file.

    Raises:
        InputError: Names file and line: not six columns, a rank that is no whole number, a score that is no finite
            number, a document that comes twice for one query, an id that is no word (:func:`is_word`).

    Warns:
        UserWarning: The first query's documents are ranked from the lowest score up, as distances are.
    """
    run: Run = {}
    first: list[tuple[int, float]] = []  # ranks and scores of the first query
    for where, query_id, doc_id, (*_, rank, score, _) in _rows(path, _RUN):
        try:
            place, value = _number(rank, int), _number(score, float)
        except ValueError:
            raise InputError(
                f"{where}: expected a whole number as rank and a number as score, got {_shown(rank, score)}"
            ) from None
        if not math.isfinite(value):
            raise InputError(f"{where}: expected a finite score, got {_shown(score)}")
        scores = run.setdefault(query_id, {})
        if doc_id in scores:
            raise InputError(f"{where}: document {doc_id!r} comes twice for query {query_id!r}")
        scores[doc_id] = value
        if len(run) == 1:
            first.append((place, value))
    in_order = [score for _, score in sorted(first)]
    if len(in_order) > 2 and all(low < high for low, high in pairwise(in_order)):
        told = "the scores of the first query rise from its first rank to its last; higher scores are better here"
        warnings.warn(f"{path}: {told}, so its last document comes first", stacklevel=2)
    return run


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """Read TREC judgements. The iteration column is dropped.

    Raises:
        InputError: Names file and line: not four columns, a grade that is no whole number or out of range
            (:func:`~socialgraph.data.collection.grade_of`), a document that is judged twice for one query and not
            alike, an id that is no word (:func:`is_word`).
    """
    qrels: Qrels = {}
    for where, query_id, doc_id, columns in _rows(path, _QRELS):
        try:
            grade = _number(columns[-1], int)
        except ValueError:
            raise InputError(f"{where}: expected a whole number as grade, got {_shown(columns[-1])}") from None
        judge(qrels, query_id, doc_id, grade, where)
    return qrels


def _rows(path: str | os.PathLike[str], expected: tuple[str, ...]) -> Iterator[tuple[str, str, str, list[bytes]]]:
    """Yield file:line, the ids of query and document, and all columns."""
    names: dict[bytes, str] = {}  # each id is decoded and kept once: large runs repeat the same ids

    def name(column: bytes, where: str) -> str:
        text = decoded(column, where)
        if not is_word(text):
            raise InputError(f"{where}: an id holds a control character or is too long, got {text[:80]!r}")
        return names.setdefault(column, text)

    for where, line in numbered_lines(path):
        columns = line.split()  # bytes split at ASCII blanks only, never inside an id
        if len(columns) != len(expected):
            raise InputError(f"{where}: expected {len(expected)} columns ({' '.join(expected)}), got {_shown(line)}")
        query, document = columns[0], columns[2]
        yield where, names.get(query) or name(query, where), names.get(document) or name(document, where), columns


def _number(column: bytes, kind: Callable[[bytes], T]) -> T:
    if b"_" in column:  # 1_000 is a number for Python alone
        raise ValueError
    return kind(column)


def _shown(*columns: bytes) -> str:
    return repr(b" ".join(columns)[:80].decode("utf-8", errors="replace"))


def write_run(path: str | os.PathLike[str], run: Mapping[str, Mapping[str, float]], tag: str = "socialgraph") -> None:
    """Write a TREC run: queries in their order, documents from best to worst with ranks from 1.

    The file appears whole or not at all. Scores are written so that they are read back exactly.

    Raises:
        InputError: An id or the tag is empty or holds blanks, or a score is not a finite number; nothing is written.
    """
    checked_id(tag, "the tag of a run")
    with atomic_text(path) as file:
        for query_id, scores in run.items():
            checked_id(query_id, "a query id")
            for doc_id, score in scores.items():
                checked_id(doc_id, "a document id")
                if not math.isfinite(score):
                    raise InputError(f"query {query_id!r}, document {doc_id!r}: {score} is not finite")
            for rank, doc_id in enumerate(ranked(scores), start=1):
                file.write(f"{query_id} Q0 {doc_id} {rank} {float(scores[doc_id])!r} {tag}\n")


def write_qrels(path: str | os.PathLike[str], qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write TREC judgements in the order of the mapping. The file appears whole or not at all.

    Raises:
        InputError: An id is empty or holds blanks; nothing is written.
    """
    with atomic_text(path) as file:
        for query_id, grades in qrels.items():
            checked_id(query_id, "a query id")
            for doc_id, grade in grades.items():
                checked_id(doc_id, "a document id")
                file.write(f"{query_id} 0 {doc_id} {int(grade)}\n")


def is_word(text: str) -> bool:
    """Whether `text` can be an id, and a column of these files.

    It is not empty, storable as UTF-8 in at most 4,096 bytes, and has no blank, line end or control character: the
    programs that measure runs end an id at a NUL, and a terminal obeys an escape.
    """
    if _CONTROL.search(text) or not is_unicode(text):
        return False
    data = text.encode()
    return data.split() == [data] and len(data) <= 4096


def is_unicode(text: str) -> bool:
    """Whether `text` can be stored as UTF-8: it holds no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_id(text: str, what: str) -> str:
    """Return an id; `what` begins the InputError where it can be none (:func:`is_word`)."""
    if not is_word(text):
        raise InputError(f"{what} must be one word without blanks, got {text[:80]!r}")
    return text
