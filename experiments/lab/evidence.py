"""Where a question's answer stands in its document: ``evidence.tsv``, and which questions are clear: ``flags.tsv``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from socialgraph.backbone import load_tokenizer
from socialgraph.data import Collection
from socialgraph.data.files import decoded, numbered_lines
from socialgraph.errors import InputError

#: that of a collection, which takes seconds to find and is asked for by every run and table
_FOUND: WeakKeyDictionary[Collection, dict[str, Evidence]] = WeakKeyDictionary()


class Evidence(NamedTuple):
    """A place in a document: word pieces of its text, without title, from ``start`` to before ``end``."""

    document_id: str
    start: int
    end: int


def read_evidence(folder: str | Path) -> dict[str, Evidence]:
    """Return query id -> place of its answer, from ``evidence.tsv[.gz]``: query, document, start, end; with a header.

    Returns:
        Nothing where there is no such file.

    Raises:
        InputError: a line that is not so, or a query that comes twice; with file and line.
    """
    found: dict[str, Evidence] = {}
    for where, columns in _rows(Path(folder), "evidence.tsv", 4, header=["qid", "doc_id", "start_tok", "end_tok"]):
        start, end = _whole(columns[2], where), _whole(columns[3], where)
        if end <= start:
            raise InputError(f"{where}: the evidence must end after it starts, got {start} to {end}")
        _once(columns[0], found, where)
        found[columns[0]] = Evidence(columns[1], start, end)
    return found


def evidence_of(name: str, collection: Collection, folder: str | Path) -> dict[str, Evidence]:
    """Return where the evidence of each question stands, in word pieces of the text: of pydocs, or of a folder."""
    if name != "pydocs":
        return read_evidence(folder)
    if collection not in _FOUND:
        _FOUND[collection] = pydocs_evidence(collection)
    return _FOUND[collection]


def pydocs_evidence(collection: Collection) -> dict[str, Evidence]:
    """Return where each question's docstring stands in its module: query ids are the names that stand before it."""
    tokenizer = load_tokenizer("minilm")
    size = lambda text: len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])  # noqa: E731
    found = {}
    for split in collection.splits.values():
        for query_id, grades in split.qrels.items():
            document_id = next(iter(grades))
            text = collection.documents[document_id].text
            match = re.search(rf"^{re.escape(query_id)}\n", text, re.MULTILINE)
            if match is not None:
                before = size(text[: match.start()])
                after = re.search(r"^[\w.]+$", text[match.end() :], re.MULTILINE)
                body = text[match.start() : match.end() + (after.start() if after else 400)]
                found[query_id] = Evidence(document_id, before, before + max(1, size(body)))
    return found


def read_flags(folder: str | Path) -> dict[str, bool]:
    """Return query id -> whether it is anchored in its document, from ``flags.tsv``: query, 0 or 1, rank.

    Returns:
        Nothing where there is no such file.

    Raises:
        InputError: a line that is not so, or a query that comes twice; with file and line.
    """
    found: dict[str, bool] = {}
    for where, columns in _rows(Path(folder), "flags.tsv", 3):
        if columns[1] not in ("0", "1"):
            raise InputError(f"{where}: expected 0 or 1 in the second column, got {columns[1]!r}")
        _whole(columns[2], where)
        _once(columns[0], found, where)
        found[columns[0]] = columns[1] == "1"
    return found


def _rows(folder: Path, name: str, count: int, header: list[str] | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield file:line and the columns of a table, packed or not."""
    there = [path for path in (folder / name, folder / f"{name}.gz") if path.exists()]
    if len(there) > 1:
        raise InputError(f"{folder}: both {name} and {name}.gz are there; keep one")
    for path in there:
        for number, line in numbered_lines(path):
            where = f"{path}:{number}"
            columns = decoded(line, where).split("\t")
            if header is not None and number == 1:
                if columns != header:
                    raise InputError(f"{where}: expected the header {' '.join(header)}, got {' '.join(columns)[:80]!r}")
                continue
            if len(columns) != count or not all(columns):
                raise InputError(f"{where}: expected {count} columns, got {len(columns)} in {' '.join(columns)[:80]!r}")
            yield where, columns


def _whole(text: str, where: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InputError(f"{where}: expected a whole number of 0 or more, got {text[:40]!r}")
    return int(text)


def _once(query_id: str, found: Mapping[str, object], where: str) -> None:
    if query_id in found:
        raise InputError(f"{where}: query {query_id!r} comes twice")
