"""A collection from a folder of plain files.

```
corpus.jsonl[.gz]              one JSON object a line: {"doc_id": "...", "title": "...", "text": "..."}
queries.<split>.tsv            query id, tab, text
qrels.<split>.txt[.gz]         TREC judgements; may miss
run.<name>.<split>.txt[.gz]    TREC run, the candidates; may miss, read when first asked for
```

Reading is strict: a line that is not what it should be is an `InputError` with file and line.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from socialgraph.data.collection import (
    Collection,
    Document,
    Qrels,
    Queries,
    Run,
    Split,
    StoredDocuments,
    check_candidates,
    check_queries,
    first_ids,
    restricted,
)
from socialgraph.data.files import (
    MAX_LINE,
    atomic_write,
    built_folder,
    cache_folder,
    check_room,
    decoded,
    numbered_lines,
    plain_file,
    raw_lines,
    sha256,
)
from socialgraph.data.trec import is_unicode, is_word, read_qrels, read_run
from socialgraph.errors import InputError, OutputError

logger = logging.getLogger(__name__)


def load_folder(
    path: str | os.PathLike[str],
    candidates: str | None = "bm25",
    cache: str | os.PathLike[str] | None = None,
) -> Collection:
    """Load a collection from a folder of plain files (layout: see the module).

    The corpus is read through once, to check it and to learn where each document begins; after that documents
    are read from disk by id. The splits are those that have a file of queries. Runs are read when a split's
    candidates are first asked for.

    Args:
        path: The folder. Its name becomes the collection's name.
        candidates: Which run gives the candidates: `"bm25"` takes `run.bm25.<split>.txt[.gz]`. A split without such a
            file has no candidates. None: no split has any.
        cache: Where the unpacked copy of a gzipped corpus is kept: by default the environment variable
            `SOCIALGRAPH_CACHE`, else `socialgraph` in the user's cache folder. A copy is used again as long as
            the gzipped file has the same bytes.

    Raises:
        InputError: A file is missing, malformed (with file and line) or lies outside the folder (through a link); a
            document or query id comes twice; a query is empty; candidates name a document that the corpus lacks
            (when they are read); no split has the candidates that are named.

    Warns:
        UserWarning: With a count and the first ids: documents without text; judgements on documents that the
            corpus lacks (they are left out); judgements or candidates of queries that the split lacks (left out);
            queries of the training in another split; files that are called almost as they should be.
    """
    folder = Path(path)
    if not folder.is_dir():
        build = folder == built_folder(folder.name)
        hint = f"; to build it, once: socialgraph data {folder.name}" if build else ""
        raise InputError(f"{folder}: {'is no' if folder.exists() else 'no such'} folder{hint}")
    documents = JsonlDocuments(_either(folder, "corpus.jsonl"), cache)
    splits = {}
    for file in sorted(folder.glob("queries.*.tsv")):
        split = _checked_name(file.name.removeprefix("queries.").removesuffix(".tsv"), "split")
        queries = _read_queries(_inside(folder, file))
        qrels = _read_qrels(_find(folder, f"qrels.{split}.txt"), queries, documents)
        run = None if candidates is None else _find(folder, f"run.{_checked_name(candidates, 'run')}.{split}.txt")
        lazy = None if run is None else partial(_read_candidates, run, queries, documents)
        splits[split] = Split(queries, qrels, lazy)
    if not splits:
        raise InputError(f"{folder}: no queries.<split>.tsv in this folder")
    if candidates is not None and not any(split.has_candidates for split in splits.values()):
        names = (re.match(r"run\.(.+)\.[^.]+\.txt", file.name) for file in folder.glob("run.*.*.txt*"))
        there = sorted({name[1] for name in names if name} - {candidates})
        if there or candidates != "bm25":
            runs = f"runs named {first_ids(there, 9)}" if there else "no runs"
            raise InputError(f"{folder}: no run.{candidates}.<split>.txt[.gz]; there are {runs}")
    _warn_of_other_names(folder, splits)
    _warn_of_shared_queries(folder, splits)
    return Collection(folder.resolve().name, documents, splits)


def _warn_of_other_names(folder: Path, splits: Iterable[str]) -> None:
    """Warn of files that are called almost as they should be: nobody reads them."""
    split = "|".join(map(re.escape, splits))
    layout = rf"corpus\.jsonl(\.gz)?|queries\.({split})\.tsv|(qrels|run\..+)\.({split})\.txt(\.gz)?"
    meant = re.compile(r"(corpus|queries|qrels|run)\b.*[^~]", re.IGNORECASE)
    others = [name for name in sorted(os.listdir(folder)) if meant.fullmatch(name) and not re.fullmatch(layout, name)]
    if others:
        names = "corpus.jsonl, queries.<split>.tsv, qrels.<split>.txt or run.<name>.<split>.txt"
        warnings.warn(f"{folder}: files that are not called {names} are not read: {first_ids(others)}", stacklevel=3)


def _warn_of_shared_queries(folder: Path, splits: Mapping[str, Split]) -> None:
    """Warn where models learn from the queries that test them."""
    learned = splits["train"].queries if "train" in splits else {}
    for name, split in splits.items():
        twice = [query_id for query_id in split.queries if query_id in learned]
        if name != "train" and twice:
            told = f"{len(twice)} queries have ids of the training's: {first_ids(twice)}"
            warnings.warn(f"{folder / f'queries.{name}.tsv'}: {told}", stacklevel=3)


class JsonlDocuments(StoredDocuments):
    """The documents of a `corpus.jsonl` or `corpus.jsonl.gz`, read from disk by id.

    In memory are the ids and 8 bytes for each document. The file is opened anew for each look-up, so that
    forked or pickled copies never share a position in it. A gzipped corpus is unpacked once into the cache
    folder, because a gzip file can only be read from its beginning.
    """

    def __init__(self, path: Path, cache: str | os.PathLike[str] | None = None) -> None:
        self.path = path
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
            document = _document(line, f"{self.path}:{number}")
            if document.doc_id in self._rows:
                raise InputError(
                    f"{self.path}:{number}: document id {document.doc_id!r} comes twice "
                    f"(first in line {self._rows[document.doc_id] + 1})"
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
            message = f"{self.path}: {len(empty)} documents have no text: {first_ids(empty)}"
            warnings.warn(message, stacklevel=4)
        return digest.hexdigest()

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            yield from raw_lines(self._readable)
        except InputError as error:  # the user's file is the packed one
            raise InputError(str(error).replace(str(self._readable), str(self.path), 1)) from None

    def __getitem__(self, doc_id: str) -> Document:
        row = self._rows[doc_id]
        try:
            with open(self._readable, "rb") as file:
                file.seek(int(self._offsets[row]))
                document = _document(file.readline(MAX_LINE), f"{self.path}:{row + 1}")
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
        for number, line in self._lines():
            yield _document(line, f"{self.path}:{number}")

    def identity(self) -> str:
        """Return a hash of the file."""
        return self._digest

    def __repr__(self) -> str:
        return f"{len(self):,} documents in {self.path.name}"


def _document(line: bytes, where: str) -> Document:
    """Return the document of one line; `where` is file:line."""
    text = decoded(line, where).removeprefix("\ufeff")  # a byte order mark may stand at the start of a file
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = text.strip()[:60]
        raise InputError(f"{where}: expected a JSON object, got {shown!r} ({error})") from None
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected a JSON object, got {type(entry).__name__}")
    values = []
    for key, default in (("doc_id", None), ("text", None), ("title", "")):
        value = entry.get(key, default)
        if key not in entry and default is None:
            there = ", ".join(map(repr, entry))[:200] or "none"
            other = "; a folder in BEIR's layout is read by load_hub, data=hub data.id=..." if "_id" in entry else ""
            raise InputError(f"{where}: the key {key!r} is missing; there are: {there}{other}")
        if not isinstance(value, str):
            got = type(value).__name__ + ("" if isinstance(value, list | dict) else f" {str(value)[:40]!r}")
            raise InputError(f"{where}: {key!r} must be a string, got {got}")
        if "\\u" in text and not is_unicode(value):
            raise InputError(f"{where}: {key!r} holds half of a surrogate pair, which is no character")
        values.append(value)
    doc_id, body, title = values
    if not is_word(doc_id):
        raise InputError(f"{where}: 'doc_id' must be one word without blanks, got {doc_id[:80]!r}")
    return Document(doc_id, body, title)


def _read_queries(file: Path) -> Queries:
    queries: Queries = {}
    for number, line in numbered_lines(file):
        where = f"{file}:{number}"
        columns = decoded(line, where).split("\t")
        if len(columns) != 2:
            got = f"{len(columns)} columns in {line[:80].decode(errors='replace')!r}"
            raise InputError(f"{where}: expected query id, tab, text; got {got}")
        query_id, text = columns[0], columns[1].strip()
        if not is_word(query_id):
            raise InputError(f"{where}: a query id must be one word without blanks, got {query_id[:80]!r}")
        if query_id in queries:
            raise InputError(f"{where}: query id {query_id!r} comes twice")
        if not text:
            raise InputError(f"{where}: query {query_id!r} is empty")
        queries[query_id] = text
    return queries


def _read_qrels(file: Path | None, queries: Queries, documents: JsonlDocuments) -> Qrels:
    if file is None:
        return {}
    qrels = read_qrels(file)
    _warn_strangers(file, [query_id for query_id in qrels if query_id not in queries], "judgements")
    qrels = restricted(queries, qrels)
    unknown = [doc_id for grades in qrels.values() for doc_id in grades if doc_id not in documents]
    if unknown:
        warnings.warn(
            f"{file}: {len(unknown)} judgements are on documents that the corpus lacks and are left out: "
            f"{first_ids(unknown)}",
            stacklevel=3,
        )
        for query_id, grades in qrels.items():
            qrels[query_id] = {doc_id: grade for doc_id, grade in grades.items() if doc_id in documents}
    return {query_id: grades for query_id, grades in qrels.items() if grades}


def _read_candidates(file: Path, queries: Queries, documents: JsonlDocuments) -> Run:
    logger.info("reading %s", file)
    run = read_run(file)
    _warn_strangers(file, [query_id for query_id in run if query_id not in queries], "candidates")
    run = restricted(queries, run)
    check_candidates(run, documents, str(file))
    check_queries(queries, run, str(file))
    return run


def _warn_strangers(file: Path, query_ids: list[str], what: str) -> None:
    if query_ids:
        warnings.warn(
            f"{file}: {what} of {len(query_ids)} queries that this split does not have are left out: "
            f"{first_ids(query_ids)}",
            stacklevel=4,
        )


def _checked_name(name: str, what: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_+-][A-Za-z0-9_+.-]*", name):
        raise InputError(f"the name of a {what} is letters, digits and any of _ + - . only, got {name!r}")
    return name


def _find(folder: Path, name: str) -> Path | None:
    """Return `name` or `name.gz` in the folder, whichever is there; both at once are an error."""
    files = [file for file in (folder / name, folder / f"{name}.gz") if os.path.lexists(file)]
    if len(files) == 2:
        raise InputError(f"{folder}: both {name} and {name}.gz are there; keep one")
    return _inside(folder, files[0]) if files else None


def _either(folder: Path, name: str) -> Path:
    file = _find(folder, name)
    if file is None:
        raise InputError(f"{folder}: neither {name} nor {name}.gz is in this folder")
    return file


def _inside(folder: Path, file: Path) -> Path:
    """Return `file` if it truly lies in the folder: a link must not lead out of it."""
    plain_file(file)
    if not file.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{file}: leads out of the folder, to {file.resolve()}")
    return file


def _unpacked(path: Path, cache: str | os.PathLike[str] | None) -> Path:
    """Return an unpacked copy of a gzipped file in the cache folder; make it if it is not there yet."""
    copy = cache_folder(cache) / "corpus" / f"{path.resolve().parent.name[:40]}-{sha256(path)[:16]}.jsonl"
    if copy.exists():
        return copy
    logger.info("unpacking %s into %s", path, copy)
    try:
        check_room(copy.parent, path.stat().st_size)  # it unpacks to more, and never to less
        with atomic_write(copy, "wb") as plain:
            for _, line in raw_lines(path):
                plain.write(line)
    except OutputError as error:
        raise OutputError(f"{path}: {error}; or set SOCIALGRAPH_CACHE to a folder with room") from None
    return copy
