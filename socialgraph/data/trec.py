"""The two TREC text formats: runs and relevance judgements (qrels).

A run line is `query Q0 document rank score tag`, a judgement line `query iteration document grade`, columns
divided by blanks or tabs. Files whose name ends in `.gz` are read and written through gzip. Reading is
strict: every line must be whole, and what is said of a query and a document may come only once. What `write_run` and
`write_qrels` write is read back equal, except that a query without documents leaves no line.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeVar

from socialgraph.data.collection import Qrels, Run, check_scores, judge, ranked
from socialgraph.data.files import atomic_write
from socialgraph.data.lines import checked_id, decoded, numbered_lines
from socialgraph.errors import InputError

T = TypeVar("T", int, float)

_RUN = ("query", "Q0", "document", "rank", "score", "tag")
_QRELS = ("query", "iteration", "document", "grade")


def read_run(path: str | os.PathLike[str]) -> Run:
    """Read a TREC run.

    The scores count; the rank column must hold whole numbers but is not used, and the tag is dropped. Queries
    and documents come in the order of the file.

    Raises:
        InputError: Names file and line: not six columns, a rank that is no whole number, a score that is no finite
            number, a document that comes twice for one query, an id that is no word
            (:func:`~socialgraph.data.lines.is_word`).

    Warns:
        UserWarning: The first query's documents are ranked from the lowest score up, as distances are.
    """
    run: Run = {}
    first: list[tuple[int, float]] = []  # ranks and scores of the first query
    for where, query_id, doc_id, (*_, rank, score, _) in _rows(path, _RUN):
        place, value = _number(rank, int, f"{where}: the rank"), _number(score, float, f"{where}: the score")
        scores = run.setdefault(query_id, {})
        if doc_id in scores:
            raise InputError(f"{where}: document {doc_id!r} comes twice for query {query_id!r}")
        scores[doc_id] = value
        if len(run) == 1:
            first.append((place, value))
    in_order = [score for _, score in sorted(first)]
    if len(in_order) > 2 and all(low < high for low, high in pairwise(in_order)):
        message = "the scores of the first query rise from its first rank to its last; higher scores are better here"
        warnings.warn(f"{path}: {message}, so its last document comes first", stacklevel=2)
    return run


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """Read TREC judgements. The iteration column is dropped.

    Raises:
        InputError: Names file and line: not four columns, a grade that is no whole number or out of range
            (:func:`~socialgraph.data.collection.grade_of`), a document that is judged twice for one query and not
            alike, an id that is no word (:func:`~socialgraph.data.lines.is_word`).
    """
    qrels: Qrels = {}
    for where, query_id, doc_id, (*_, grade) in _rows(path, _QRELS):
        judge(qrels, query_id, doc_id, _number(grade, int, f"{where}: the grade"), where)
    return qrels


def _rows(path: str | os.PathLike[str], expected: tuple[str, ...]) -> Iterator[tuple[str, str, str, list[bytes]]]:
    """Yield file:line, the ids of query and document, and all columns."""
    names: dict[bytes, str] = {}  # each id is decoded and kept once: large runs repeat the same ids
    for where, line in numbered_lines(path):
        columns = line.split()  # bytes split at ASCII blanks only, never inside an id
        if len(columns) != len(expected):
            shown = line[:80].decode(errors="replace")
            raise InputError(f"{where}: expected {len(expected)} columns ({' '.join(expected)}), got {shown!r}")
        for column in (columns[0], columns[2]):
            if column not in names:
                names[column] = checked_id(decoded(column, where), f"{where}: an id")
        yield where, names[columns[0]], names[columns[2]], columns


def _number(column: bytes, kind: Callable[[bytes], T], what: str) -> T:
    try:
        value = kind(column)
        if b"_" not in column and abs(value) < math.inf:  # 1_000 is a number for Python alone
            return value
    except ValueError:
        pass
    wanted = "a whole number" if kind is int else "a finite number"
    raise InputError(f"{what} must be {wanted}, got {column[:80].decode(errors='replace')!r}")


def write_run(path: str | os.PathLike[str], run: Mapping[str, Mapping[str, float]], tag: str = "socialgraph") -> None:
    """Write a TREC run: queries in their order, documents from best to worst with ranks from 1.

    The file appears whole or not at all. Scores are written so that they are read back exactly.

    Raises:
        InputError: An id or the tag is empty or holds blanks, or a score is not a finite number; nothing is written.
    """
    checked_id(tag, "the tag of a run")
    check_scores(run, "a run")
    _write(path, (
        (query_id, doc_id, f"{query_id} Q0 {doc_id} {rank} {float(scores[doc_id])!r} {tag}\n")
        for query_id, scores in run.items()
        for rank, doc_id in enumerate(ranked(scores), start=1)
    ))  # fmt: skip


def write_qrels(path: str | os.PathLike[str], qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write TREC judgements in the order of the mapping. The file appears whole or not at all.

    Raises:
        InputError: An id is empty or holds blanks; nothing is written.
    """
    _write(path, (
        (query_id, doc_id, f"{query_id} 0 {doc_id} {int(grade)}\n")
        for query_id, grades in qrels.items()
        for doc_id, grade in grades.items()
    ))  # fmt: skip


def _write(path: str | os.PathLike[str], rows: Iterable[tuple[str, str, str]]) -> None:
    """Write a line for each query and document."""
    with atomic_write(path) as file:
        for query_id, doc_id, line in rows:
            checked_id(query_id, "a query id")
            checked_id(doc_id, "a document id")
            file.write(line)
