"""Documents from a file of one JSON object a line, as in this package's folders and in BEIR's."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from socialgraph.data.collection import Document, StoredDocuments, warn_of
from socialgraph.data.files import atomic_write, cache_folder, sha256
from socialgraph.data.lines import MAX_LINE, json_object, raw_lines, strings
from socialgraph.errors import InputError, OutputError

logger = logging.getLogger(__name__)


class IndexedDocuments(StoredDocuments):
    """Documents on disk, in rows: in memory are the ids, with the row of each."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}

    def _add(self, doc_id: str, where: str) -> None:
        """Give the next row to an id; one that comes twice is an InputError."""
        if self._rows.setdefault(doc_id, len(self._rows)) != len(self._rows) - 1:
            raise InputError(f"{where}: document id {doc_id!r} comes twice (first in row {self._rows[doc_id] + 1})")

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class JsonlDocuments(IndexedDocuments):
    """The documents of a `.jsonl` or `.jsonl.gz`, read from disk by id.

    In memory are the ids and 8 bytes for each document. The file is opened anew for each look-up, so that
    forked or pickled copies never share a position in it. A gzipped file is unpacked once into the cache
    folder, because it can only be read from its beginning. A title or a text that is null is empty.

    Args:
        path: the file.
        cache: see :func:`socialgraph.data.files.cache_folder`.

    Raises:
        InputError: A line is no document, or an id comes twice; with file and line. There is no document.

    Warns:
        UserWarning: Documents without text.
    """

    def __init__(self, path: Path, cache: str | os.PathLike[str] | None = None) -> None:
        super().__init__()
        self.path = path
        self._readable = _unpack(path, cache) if path.suffix == ".gz" else path
        self._offsets: npt.NDArray[np.int64]
        self._digest = self._index()

    def _index(self) -> str:
        """Read the whole file once: check each line, learn ids and offsets; return a hash of it."""
        digest = hashlib.sha256()
        offsets: list[int] = [0]
        empty: list[str] = []
        for number, line in self._lines():
            document = self._document(line, number)
            self._add(document.doc_id, f"{self.path}:{number}")
            offsets.append(offsets[-1] + len(line))
            digest.update(line)
            if not document.text.strip():
                empty.append(document.doc_id)
        if not self._rows:
            raise InputError(f"{self.path}: the corpus is empty")
        self._offsets = np.array(offsets, dtype=np.int64)
        warn_of(str(self.path), empty, "documents have no text")
        return digest.hexdigest()

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            yield from raw_lines(self._readable)
        except InputError as error:  # the user's file is the packed one
            raise InputError(str(error).replace(str(self._readable), str(self.path), 1)) from None

    def _document(self, line: bytes, number: int) -> Document:
        where = f"{self.path}:{number}"
        return Document(*strings(json_object(line, where), where, "text", "title"))

    def __getitem__(self, doc_id: str) -> Document:
        row = self._rows[doc_id]
        try:
            with open(self._readable, "rb") as file:
                file.seek(int(self._offsets[row]))
                document = self._document(file.readline(MAX_LINE), row + 1)
        except OSError as error:
            raise InputError(f"{self.path}:{row + 1}: cannot be read any more ({error})") from None
        if document.doc_id != doc_id:
            raise InputError(f"{self.path}:{row + 1}: changed since it was loaded (expected {doc_id!r})")
        return document

    def stream(self) -> Iterator[Document]:
        """Yield every document in the order of the file."""
        return (self._document(line, number) for number, line in self._lines())

    def identity(self) -> str:
        """Return a hash of the file."""
        return self._digest

    def __repr__(self) -> str:
        return f"{len(self):,} documents in {self.path.name}"


def _unpack(path: Path, cache: str | os.PathLike[str] | None) -> Path:
    """Return an unpacked copy of a gzipped file in the cache folder; it is made where there is none of these bytes."""
    try:
        copy = cache_folder(cache) / "corpus" / f"{path.resolve().parent.name[:40]}-{sha256(path)[:16]}.jsonl"
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    if not copy.exists():
        logger.info("unpacking %s into %s", path, copy)
        try:
            with atomic_write(copy, "wb") as plain:
                for _, line in raw_lines(path):
                    plain.write(line)
        except OutputError as error:
            raise OutputError(f"{path}: {error}; or set SOCIALGRAPH_CACHE to a folder with room") from None
    return copy
