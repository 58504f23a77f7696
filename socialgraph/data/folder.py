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

import logging
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from socialgraph.data.collection import (
    Collection,
    Document,
    Queries,
    Run,
    Split,
    check_candidates,
    check_queries,
    first_ids,
    restrict,
    warn_of,
)
from socialgraph.data.files import built_folder
from socialgraph.data.jsonl import JsonlDocuments
from socialgraph.data.lines import checked_id, find, table
from socialgraph.data.trec import read_qrels, read_run
from socialgraph.errors import InputError

T = TypeVar("T")
logger = logging.getLogger(__name__)


def load_folder(
    path: str | os.PathLike[str],
    candidates: str | None = "bm25",
    cache: str | os.PathLike[str] | None = None,
    ignore_identical_ids: bool | None = None,
) -> Collection:
    """Load a collection from a folder of plain files (layout: see the module).

    The corpus is read through once, to check it and to learn where each document begins; after that documents
    are read from disk by id. The splits are those that have a file of queries. Runs are read when a split's
    candidates are first asked for.

    Args:
        path: The folder; `~` is the user's own. Its name becomes the collection's name.
        candidates: Which run gives the candidates: `"bm25"` takes `run.bm25.<split>.txt[.gz]`. A split without such a
            file has no candidates. None: no split has any.
        cache: Where the unpacked copy of a gzipped corpus is kept: by default the environment variable
            `SOCIALGRAPH_CACHE`, else `socialgraph` in the user's cache folder.
        ignore_identical_ids: See :class:`~socialgraph.data.Collection`.

    Raises:
        InputError: A file is missing or malformed (with file and line); a document or query id comes twice; a query is
            empty; candidates name a document that the corpus lacks (when they are read); no split has the candidates
            that are named.

    Warns:
        UserWarning: With a count and the first ids: documents without text; judgements on documents that the
            corpus lacks (they are left out); judgements or candidates of queries that the split lacks (left out);
            queries of the training in another split; files that are called almost as they should be.
    """
    folder = Path(path).expanduser().absolute()  # the program may go to another folder before runs are read
    if not folder.is_dir():
        build = folder == built_folder(folder.name)
        hint = f"; to build it, once: socialgraph data {folder.name}" if build else ""
        raise InputError(f"{folder}: {'is no' if folder.exists() else 'no such'} folder{hint}")
    corpus = find(folder, "corpus.jsonl")
    if corpus is None:
        raise InputError(f"{folder}: neither corpus.jsonl nor corpus.jsonl.gz is in this folder")
    documents = JsonlDocuments(corpus, cache)
    splits = {}
    for file in sorted(folder.glob("queries.*.tsv")):
        split = _checked_name(file.name.removeprefix("queries.").removesuffix(".tsv"), "split")
        queries = _read_queries(file)
        judged = find(folder, f"qrels.{split}.txt")
        qrels = {} if judged is None else _of_split(read_qrels(judged), queries, str(judged))
        run = None if candidates is None else find(folder, f"run.{_checked_name(candidates, 'run')}.{split}.txt")
        read = None if run is None else partial(_read_candidates, run, queries, documents)
        splits[split] = Split(queries, qrels, read)
    if not splits:
        raise InputError(f"{folder}: no queries.<split>.tsv in this folder")
    if candidates is not None and not any(split.has_candidates for split in splits.values()):
        names = (re.match(r"run\.(.+)\.[^.]+\.txt", file.name) for file in folder.glob("run.*.*.txt*"))
        there = sorted({name[1] for name in names if name} - {candidates})
        if there or candidates != "bm25":
            runs = f"runs named {first_ids(there, 9)}" if there else "no runs"
            raise InputError(f"{folder}: no run.{candidates}.<split>.txt[.gz]; there are {runs}")
    _warn_of_odd_files(folder, splits)
    return Collection(folder.resolve().name, documents, splits, ignore_identical_ids)


def _warn_of_odd_files(folder: Path, splits: Mapping[str, Split]) -> None:
    """Warn of files that are called almost as they should be, which nobody reads, and of tests on the training."""
    split = "|".join(map(re.escape, splits))
    layout = rf"corpus\.jsonl(\.gz)?|queries\.({split})\.tsv|(qrels|run\..+)\.({split})\.txt(\.gz)?"
    meant = re.compile(r"(corpus|queries|qrels|run)\b.*[^~]", re.IGNORECASE)
    others = [name for name in sorted(os.listdir(folder)) if meant.fullmatch(name) and not re.fullmatch(layout, name)]
    names = "corpus.jsonl, queries.<split>.tsv, qrels.<split>.txt or run.<name>.<split>.txt"
    warn_of(str(folder), others, f"files that are not called {names} are not read")
    learned = splits["train"].queries if "train" in splits else {}
    for name in splits.keys() - {"train"}:
        twice = [query_id for query_id in splits[name].queries if query_id in learned]
        warn_of(f"{folder / f'queries.{name}.tsv'}", twice, "queries have ids of the training's")


def _read_queries(file: Path) -> Queries:
    queries: Queries = {}
    for where, (query_id, text) in table(file, ("query id", "text")):
        if checked_id(query_id, f"{where}: a query id") in queries:
            raise InputError(f"{where}: query id {query_id!r} comes twice")
        if not text.strip():
            raise InputError(f"{where}: query {query_id!r} is empty")
        queries[query_id] = text.strip()
    return queries


def _read_candidates(file: Path, queries: Queries, documents: Mapping[str, Document]) -> Run:
    logger.info("reading %s", file)
    run = _of_split(read_run(file), queries, str(file))
    check_candidates(run, documents, str(file))
    check_queries(queries, run, str(file))
    return run


def _of_split(table: dict[str, T], queries: Queries, where: str) -> dict[str, T]:
    """Return what is said of a split's queries; warn of others."""
    others = [query_id for query_id in table if query_id not in queries]
    warn_of(where, others, "queries that this split does not have are left out")
    return restrict(queries, table)


def _checked_name(name: str, what: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_+-][A-Za-z0-9_+.-]*", name):
        raise InputError(f"the name of a {what} is letters, digits and any of _ + - . only, got {name!r}")
    return name
