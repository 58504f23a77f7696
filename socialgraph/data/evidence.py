"""Where a question's answer stands in its document: of a folder in ``evidence.tsv``, of pydocs in the docstrings."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from socialgraph.backbone import load_tokenizer
from socialgraph.data.collection import Collection, Document
from socialgraph.data.lines import find, table
from socialgraph.data.tokens import Tokens
from socialgraph.errors import InputError

#: whose word pieces the places count: those of BERT, uncased
COUNTED_BY = "minilm"


class Evidence(NamedTuple):
    """A place in a document: word pieces of its text, without title, from ``start`` to before ``end``."""

    document_id: str
    start: int
    end: int

    def in_full_text(self, document: Document, tokens: Tokens) -> Evidence:
        """Return the same place in word pieces of title and text, as the document is read."""
        before = tokens.whole_length(document.title)
        return Evidence(self.document_id, self.start + before, self.end + before)


def read_evidence(folder: str | Path) -> dict[str, Evidence]:
    """Return query id -> place of its answer, from ``evidence.tsv[.gz]``: query, document, start, end; with a header.

    Returns:
        Nothing where there is no such file.

    Raises:
        InputError: a line that is not so, or a query that comes twice; with file and line.
    """
    places: dict[str, Evidence] = {}
    file = find(Path(folder), "evidence.tsv")
    for where, row in table(file, ["qid", "doc_id", "start_tok", "end_tok"], heading=True) if file is not None else ():
        query_id, document_id, *ends = row
        start, end = (int(one) if one.isascii() and one.isdigit() else -1 for one in ends)
        if not (query_id and document_id and 0 <= start < end) or query_id in places:
            expected = "a query that is new, a document, and two whole numbers, the second above the first"
            raise InputError(f"{where}: expected {expected}, got {', '.join(row)[:80]!r}")
        places[query_id] = Evidence(document_id, start, end)
    return places


def evidence_of(name: str, collection: Collection, folder: str | Path) -> dict[str, Evidence]:
    """Return where the evidence of each question stands, in word pieces of the text: of pydocs, or of a folder."""
    return _pydocs_evidence(collection) if name == "pydocs" else read_evidence(folder)


@lru_cache(maxsize=1)  # it takes seconds, and every run and table asks for it
def _pydocs_evidence(collection: Collection) -> dict[str, Evidence]:
    """Return where each question's docstring stands in its module: query ids are the names that stand before it."""
    size, tokenizer = Tokens(COUNTED_BY).whole_length, load_tokenizer(COUNTED_BY)
    places: dict[str, Evidence] = {}
    starts: dict[str, npt.NDArray[np.int64]] = {}  # document -> the characters at which its pieces start
    for split in collection.splits.values():
        for query_id, grades in split.qrels.items():
            document_id = next(iter(grades))
            text = collection.documents[document_id].text
            place = _docstring(query_id, text)
            if place is not None:
                if document_id not in starts:  # a module is split into word pieces once, not before each of its names
                    starts[document_id] = np.array([start for start, _ in _offsets(tokenizer, text)])
                before = int(np.searchsorted(starts[document_id], place[0]))
                places[query_id] = Evidence(document_id, before, before + max(1, size(text[place[0] : place[1]])))
    return places


def _docstring(name: str, text: str) -> tuple[int, int] | None:
    """Return the characters of a module's documentation, from and to before, that tell of a name; None: none do."""
    match = re.search(rf"^{re.escape(name)}\n", text, re.MULTILINE)
    if match is None:
        return None
    after = re.search(r"^[\w.]+$", text[match.end() :], re.MULTILINE)
    return match.start(), match.end() + (after.start() if after else 400)


def evidence_nodes(
    query_id: str, document: Document, tokenizer: Any, folder: str | Path | None = None
) -> tuple[int, int] | None:
    """Return which nodes of a document's graph hold a question's evidence, from and to before; None: it is not known.

    The places of a folder are counted in word pieces of BERT, and in the text without its title; a graph's nodes are
    the word pieces of title and text, of whatever backbone. What joins them is the characters.

    Args:
        query_id: the question.
        document: whose evidence is asked for.
        tokenizer: the graph's, of :func:`~socialgraph.backbone.load_tokenizer`.
        folder: with ``evidence.tsv[.gz]``; None: the document is one of pydocs.

    Raises:
        InputError: see :func:`read_evidence`.
    """
    place = _docstring(query_id, document.text) if folder is None else None
    evidence = read_evidence(folder).get(query_id) if folder is not None else None
    if evidence is not None and evidence.document_id == document.doc_id:
        where = _offsets(load_tokenizer(COUNTED_BY), document.text)[evidence.start : evidence.end]
        place = (where[0][0], where[-1][1]) if where else None
    if place is None:
        return None
    before = len(document.full_text) - len(document.text)
    start, end = (before + one for one in place)
    pieces = enumerate(_offsets(tokenizer, document.full_text))
    nodes = [node for node, (left, right) in pieces if left < end and right > start]
    return (nodes[0], nodes[-1] + 1) if nodes else None


def _offsets(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    """Return the characters of each word piece, from and to before."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    whole = tokenizer(clean, add_special_tokens=False, verbose=False, return_offsets_mapping=True)
    offsets: list[tuple[int, int]] = whole["offset_mapping"]
    return offsets
