"""The two TREC text formats: runs and relevance judgements (qrels).

A run line is `query Q0 document rank score tag`, a judgement line `query iteration document grade`, columns
divided by blanks or tabs. Files whose name ends in `.gz` are read and written through gzip. Reading is
strict: every line must be whole, and a pair of query and document may come only once. What `write_run` and
`write_qrels` write is read back equal, except that a query without documents leaves no line.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import NoReturn

from socialgraph.data.collection import Qrels, Run, grade_of, ranked
from socialgraph.data.files import atomic_text, decoded, numbered_lines
from socialgraph.errors import InputError

#: C0, DEL, C1, and the mark of byte order, which is dropped at the start of a file
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ufeff]")


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
    names: dict[bytes, str] = {}  # each id is decoded and kept once: large runs repeat the same ids
    for number, line in numbered_lines(path):
        columns = line.split()  # bytes split at ASCII blanks only, never inside an id
        if len(columns) != 6:
            _refuse(path, number, "6 columns (query Q0 document rank score tag)", line)
        query, _, document, rank, score, _ = columns
        try:
            place = _whole(rank)
            value = float(_without_underscore(score))
        except ValueError:
            _refuse(path, number, "a whole number as rank and a number as score", line)
        if not math.isfinite(value):
            _refuse(path, number, "a finite score", line)
        query_id = names.get(query) or _name(query, names, path, number)
        doc_id = names.get(document) or _name(document, names, path, number)
        scores = run.setdefault(query_id, {})
        if doc_id in scores:
            raise InputError(f"{path}:{number}: document {doc_id!r} comes twice for query {query_id!r}")
        scores[doc_id] = value
        if len(run) == 1:
            first.append((place, value))
    in_order = [score for _, score in sorted(first)]
    if len(in_order) > 2 and all(low < high for low, high in pairwise(in_order)):
        told = "the scores of the first query rise from its first rank to its last; higher scores are better here"
        warnings.warn(f"{path}: {told}, so its last document comes first", stacklevel=2)
    return run


def write_run(path: str | os.PathLike[str], run: Mapping[str, Mapping[str, float]], tag: str = "socialgraph") -> None:
    """Write a TREC run: queries in their order, documents from best to worst with ranks from 1.

    The file appears whole or not at all. Scores are written so that they are read back exactly.

    Raises:
        InputError: An id or the tag is empty or holds blanks, or a score is not a finite number; nothing is written.
    """
    _check_word(tag, "the tag of a run")
    with atomic_text(path) as file:
        for query_id, scores in run.items():
            _check_word(query_id, "a query id")
            for doc_id, score in scores.items():
                _check_word(doc_id, "a document id")
                if not math.isfinite(score):
                    raise InputError(f"query {query_id!r}, document {doc_id!r}: {score} is not finite")
            for rank, doc_id in enumerate(ranked(scores), start=1):
                file.write(f"{query_id} Q0 {doc_id} {rank} {float(scores[doc_id])!r} {tag}\n")


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """Read TREC judgements. The iteration column is dropped.

    Raises:
        InputError: Names file and line: not four columns, a grade that is no whole number or out of range
            (:func:`~socialgraph.data.collection.grade_of`), a document that is judged twice for one query, an id that
            is no word (:func:`is_word`).
    """
    qrels: Qrels = {}
    names: dict[bytes, str] = {}
    for number, line in numbered_lines(path):
        columns = line.split()
        if len(columns) != 4:
            _refuse(path, number, "4 columns (query iteration document grade)", line)
        query, _, document, grade = columns
        try:
            value = _whole(grade)
        except ValueError:
            _refuse(path, number, "a whole number as grade", line)
        value = grade_of(value, f"{path}:{number}")
        query_id = names.get(query) or _name(query, names, path, number)
        doc_id = names.get(document) or _name(document, names, path, number)
        grades = qrels.setdefault(query_id, {})
        if doc_id in grades:
            raise InputError(f"{path}:{number}: document {doc_id!r} is judged twice for query {query_id!r}")
        grades[doc_id] = value
    return qrels


def write_qrels(path: str | os.PathLike[str], qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write TREC judgements in the order of the mapping. The file appears whole or not at all.

    Raises:
        InputError: An id is empty or holds blanks; nothing is written.
    """
    with atomic_text(path) as file:
        for query_id, grades in qrels.items():
            _check_word(query_id, "a query id")
            for doc_id, grade in grades.items():
                _check_word(doc_id, "a document id")
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


def _check_word(text: str, what: str) -> None:
    if not is_word(text):
        raise InputError(f"{what} must be one word without blanks to be written in TREC format, got {text[:80]!r}")


def _name(column: bytes, names: dict[bytes, str], path: str | os.PathLike[str], number: int) -> str:
    name = decoded(column, f"{path}:{number}")
    if not is_word(name):
        raise InputError(f"{path}:{number}: an id holds a control character or is too long, got {name[:80]!r}")
    return names.setdefault(column, name)


def _without_underscore(number: bytes) -> bytes:
    """Return the column if it has none of what only Python takes for a part of a number: 1_000."""
    if b"_" in number:
        raise ValueError
    return number


def _whole(number: bytes) -> int:
    return int(_without_underscore(number))


def _refuse(path: str | os.PathLike[str], number: int, expected: str, line: bytes) -> NoReturn:
    shown = line[:80].decode("utf-8", errors="replace")
    raise InputError(f"{path}:{number}: expected {expected}, got {shown!r}") from None
