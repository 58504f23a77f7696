"""Documents and queries from files of one JSON object a line, in the layout of this package's folders or of BEIR's."""

from __future__ import annotations

import hashlib
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from socialgraph.data.collection import Document, StoredDocuments, first_ids
from socialgraph.data.files import atomic_write, cache_folder, sha256
from socialgraph.data.lines import MAX_LINE, json_object, raw_lines
from socialgraph.data.trec import checked_id, is_unicode
from socialgraph.errors import InputError, OutputError

logger = logging.getLogger(__name__)


class JsonlDocuments(StoredDocuments):
    """The documents of a `.jsonl` or `.jsonl.gz`, read from disk by id.

    In memory are the ids and 8 bytes for each document. The file is opened anew for each look-up, so that
    forked or pickled copies never share a position in it. A gzipped file is unpacked once into the cache
    folder, because it can only be read from its beginning.

    Args:
        path: the file.
        cache: see :func:`socialgraph.data.files.cache_folder`.
        key: what the id is called.
        is_beir: whether title and text may be null, as in BEIR's files.

    Raises:
        InputError: A line is no document, or an id comes twice; with file and line. There is no document.

    Warns:
        UserWarning: Documents without text.
    """

    def __init__(
        self, path: Path, cache: str | os.PathLike[str] | None = None, key: str = "doc_id", is_beir: bool = False
    ) -> None:
        self.path = path
        self.key = key
        self.is_beir = is_beir
        self._readable = _unpacked(path, cache) if path.suffix == ".gz" else path
        self._rows: dict[str, int] = {}
        self._offsets: npt.NDArray[np.int64]
        self._digest = self._index()

    def _index(self) -> str:
        """Read the whole file once: check each line, learn ids and offsets; return a hash of it."""
        digest = hashlib.sha256()
        offsets: list[int] = []
        empty: list[str] = []
        offset = 0
        for number, line in self._lines():
            document = self._document(line, number)
            if document.doc_id in self._rows:
                first = self._rows[document.doc_id] + 1
                raise InputError(
                    f"{self.path}:{number}: document id {document.doc_id!r} comes twice (first in line {first})"
                )
            self._rows[document.doc_id] = len(offsets)
            offsets.append(offset)
            offset += len(line)
            digest.update(line)
            if not document.text.strip():
                empty.append(document.doc_id)
        if not offsets:
            raise InputError(f"{self.path}: the corpus is empty")
        self._offsets = np.array(offsets, dtype=np.int64)
        if empty:
            warnings.warn(f"{self.path}: {len(empty)} documents have no text: {first_ids(empty)}", stacklevel=4)
        return digest.hexdigest()

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            yield from raw_lines(self._readable)
        except InputError as error:  # the user's file is the packed one
            raise InputError(str(error).replace(str(self._readable), str(self.path), 1)) from None

    def _document(self, line: bytes, number: int) -> Document:
        values = json_texts(line, f"{self.path}:{number}", {self.key: None, "text": None, "title": ""}, self.is_beir)
        return Document(values[self.key], values["text"], values["title"])

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

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def stream(self) -> Iterator[Document]:
        """Yield every document in the order of the file."""
        return (self._document(line, number) for number, line in self._lines())

    def identity(self) -> str:
        """Return a hash of the file."""
        return self._digest

    def __repr__(self) -> str:
        return f"{len(self):,} documents in {self.path.name}"


def json_texts(line: bytes, where: str, keys: Mapping[str, str | None], is_beir: bool = False) -> dict[str, str]:
    """Return the strings that a JSON object has under these keys.

    Args:
        line: the object.
        where: file:line.
        keys: of what is read, the first of them an id -> what stands in its place where it is missing; None: it must
            be there.
        is_beir: whether all but the id may be null, which means empty.

    Raises:
        InputError: A key is missing, or what it has is no string, or no id.
    """
    entry, (id_key, *_), texts = json_object(line, where), keys, {}
    for key, default in keys.items():
        value = entry.get(key, default)
        if key not in entry and default is None:
            there = ", ".join(map(repr, entry))[:200] or "none"
            beir = key == "doc_id" and "_id" in entry
            other = "; a folder in BEIR's layout is read by load_hub, data=hub data.id=..." if beir else ""
            raise InputError(f"{where}: the key {key!r} is missing; there are: {there}{other}")
        if value is None and is_beir and key != id_key:
            value = ""
        if not isinstance(value, str):
            got = type(value).__name__ + ("" if isinstance(value, list | dict) else f" {str(value)[:40]!r}")
            raise InputError(f"{where}: {key!r} must be a string, got {got}")
        if not is_unicode(value):
            raise InputError(f"{where}: {key!r} holds half of a surrogate pair, which is no character")
        texts[key] = value
    checked_id(texts[id_key], f"{where}: {id_key!r}")
    return texts


def _unpacked(path: Path, cache: str | os.PathLike[str] | None) -> Path:
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
