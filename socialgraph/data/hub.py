"""Collections in the layout of BEIR and MTEB: from the Hugging Face Hub, https://huggingface.co/datasets, or a folder.

A dataset has three configurations: ``corpus`` (``_id``, ``title``, ``text``), ``queries`` (``_id``, ``text``) and the
judgements (``query-id``, ``corpus-id``, ``score``), whose splits are the collection's. MTEB calls that configuration
``qrels`` or ``default``; BEIR keeps it in a dataset of its own, ``<id>-qrels``. A folder may also be as BEIR packs one:
``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``. Where ir_datasets has a collection, take it from there
(:func:`socialgraph.data.load_irds`): it knows the original files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from socialgraph.data.collection import (
    Collection,
    Document,
    Qrels,
    Queries,
    Split,
    StoredDocuments,
    divide,
    judge,
    restrict,
    warn_of,
)
from socialgraph.data.jsonl import IndexedDocuments, JsonlDocuments
from socialgraph.data.lines import ID_KEYS, find, json_object, numbered_lines, strings, table
from socialgraph.errors import InputError, first_line

#: what the split is called here -> what it may be called there
_SPLITS = {"train": ("train",), "dev": ("dev", "validation", "val"), "test": ("test",)}
_JUDGED = ("query-id", "corpus-id", "score")


def load_hub(
    dataset_id: str,
    qrels: str | None = None,
    revision: str | None = None,
    shares: Sequence[float] | None = (0.6, 0.2, 0.2),
    ignore_identical_ids: bool | None = None,
) -> Collection:
    """Load a collection of the Hugging Face Hub, through its ``datasets`` library, which keeps what it downloads.

    Its splits are those of the judgements. A dataset with ``test`` alone is divided: its judged queries go to train,
    dev and test by a hash of the query id (`hash_split`); ``shares=None`` keeps them together as ``test``. There are
    no candidates: retrieve them. No code of a dataset is run: the library of today has no loading scripts. Files of
    JSON lines and of columns between tabs are read as they are: the library would take texts that look like dates or
    numbers for such.

    Args:
        dataset_id: such as ``"BeIR/scifact"`` or ``"mteb/scifact"``, or a folder in that layout, or in that of BEIR's
            own archives: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``.
        qrels: id of the dataset with the judgements; None: `dataset_id` where it has them, else ``<id>-qrels``.
        revision: a commit, branch or tag of ``dataset_id``; None: the newest.
        shares: shares of train, dev and test where there is test alone, or None.
        ignore_identical_ids: see :class:`~socialgraph.data.Collection`.

    Raises:
        InputError: The library is not installed; the dataset is not there, has no such configuration or column, holds
            an id twice or one with blanks, a text that is none, or two judgements of a document that differ. Of files
            the message names file and line.

    Warns:
        UserWarning: With a count and the first ids: queries without text, and judgements on documents that the corpus
            lacks; they are left out.
    """
    source = _Source(dataset_id, revision)
    documents = source.documents()
    texts = source.queries()
    splits = {}
    for split, grades in _judged(source, qrels).items():
        asked = [query_id for query_id in texts if query_id in grades]
        splits[split] = Split(restrict(asked, texts), restrict(asked, grades))
    if set(splits) == {"test"} and shares is not None:
        splits = divide(splits["test"], shares)
    return Collection(source.path.name, documents, splits, ignore_identical_ids)


class HubDocuments(IndexedDocuments):
    """The documents of one corpus, read by id from the library's files, which are mapped into memory."""

    def __init__(self, dataset_id: str, rows: Any) -> None:
        super().__init__()
        self.dataset_id = dataset_id
        self._table = rows
        if len(rows):
            self._document(rows[0])  # which needs all columns
        ids = rows.select_columns([name for name in rows.column_names if name in ID_KEYS])
        for number, row in enumerate(ids):  # of a large corpus the texts are not read
            where = f"{dataset_id}, corpus, row {number}"
            self._add(strings(row, where)[0], where)

    def __getitem__(self, doc_id: str) -> Document:
        return self._document(self._table[self._rows[doc_id]])

    def stream(self) -> Iterator[Document]:
        """Yield every document in the order of the source."""
        return map(self._document, self._table)

    def _document(self, row: dict[str, Any]) -> Document:
        return Document(*strings(row, f"{self.dataset_id}, corpus", "text", "title"))

    def identity(self) -> str:
        """Return the id and the library's fingerprint, which changes with the files."""
        return f"{self.dataset_id} {self._table._fingerprint}"

    def __repr__(self) -> str:
        return f"{len(self):,} documents of {self.dataset_id}"


class _Source:
    """A dataset's configurations, each of some splits: a file of lines each, or rows of the library."""

    def __init__(self, dataset_id: str, revision: str | None = None) -> None:
        self.dataset_id, self.revision = dataset_id, revision
        self.path = Path(dataset_id).expanduser()
        self.is_local = self.path.exists() or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", dataset_id)
        if self.is_local and not self.path.is_dir():
            raise InputError(f"{self.path}: {'is no' if self.path.exists() else 'no such'} folder")
        self._files = _packed_by_beir(self.path.absolute())
        with self._readable():
            self.configs: list[str] = list(self._files) or _library().get_dataset_config_names(
                str(self.path), revision=revision
            )

    def documents(self) -> StoredDocuments:
        """Return the documents."""
        part = self._only("corpus")
        return JsonlDocuments(part) if isinstance(part, Path) else HubDocuments(self.dataset_id, part)

    def queries(self) -> Queries:
        """Return the queries of all splits; warn of those without text."""
        texts: Queries = {}
        for where, entry in self._entries(self._only("queries"), "queries"):
            query_id, text = strings(entry, where, "text")
            if query_id in texts:
                raise InputError(f"{where}: query id {query_id!r} comes twice")
            texts[query_id] = " ".join(text.split())
        warn_of(self.dataset_id, [one for one, text in texts.items() if not text], "queries are empty and left out")
        return {query_id: text for query_id, text in texts.items() if text}

    def qrels(self, config: str, split: str) -> Qrels:
        """Return the judgements of a split."""
        qrels: Qrels = {}
        for where, entry in self._entries(self.splits(config)[split], f"qrels, {split}"):
            query_id, doc_id, grade = (entry.get(name) for name in _JUDGED)
            if query_id is None or doc_id is None:
                raise InputError(f"{where}: expected {', '.join(_JUDGED)}, got {', '.join(entry)}")
            judge(qrels, str(query_id), str(doc_id), grade, where)
        return qrels

    def _entries(self, part: Any, what: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield where each row of a file, or of the library's, stands, and what it holds."""
        if not isinstance(part, Path):
            yield from ((f"{self.dataset_id}, {what}, row {n}", row) for n, row in enumerate(part.to_list()))
        elif part.suffix == ".tsv":
            for where, row in table(part, _JUDGED, heading=True):
                yield where, dict(zip(_JUDGED, row, strict=True))
        else:
            for where, line in numbered_lines(part):
                yield where, json_object(line, where)

    def splits(self, config: str) -> Mapping[str, Any]:
        """Return split -> file or rows of a configuration."""
        if config not in self.configs:
            raise InputError(
                f"{self.dataset_id}: there is no configuration {config!r}, only {', '.join(self.configs)}; "
                "expected BEIR's or MTEB's layout (corpus, queries, qrels)"
            )
        if self._files:
            return self._files[config]
        with self._readable(f", {config}"):
            library = _library()
            files = library.load_dataset_builder(str(self.path), config, revision=self.revision).config.data_files
            if all(len(urls) == 1 and re.search(r"\.(jsonl|tsv)(\.gz)?$", urls[0]) for urls in files.values()):
                manager = library.DownloadManager()
                get = manager.download if self.is_local else manager.download_and_extract
                return {split: Path(get(urls[0])) for split, urls in files.items()}
            return library.load_dataset(str(self.path), config, revision=self.revision)

    def _only(self, config: str) -> Any:
        """Return the one split of a configuration, which some call like the configuration, some ``train``."""
        parts = self.splits(config)
        if len(parts) != 1:
            raise InputError(f"{self.dataset_id}, {config}: expected one split, got {', '.join(parts)}")
        return next(iter(parts.values()))

    @contextmanager
    def _readable(self, config: str = "") -> Iterator[None]:
        """Turn what the library raises over a dataset (unknown, not to be fetched, damaged) into one error."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:  # its own errors have many bases
            hub = "" if self.is_local else " from the Hugging Face Hub"
            raise InputError(f"{self.dataset_id}{config} cannot be read{hub} ({first_line(error)})") from error


def _packed_by_beir(folder: Path) -> dict[str, dict[str, Path]]:
    """Return configuration -> split -> file of a folder as BEIR packs it; of any other, and of an id, nothing."""
    corpus, queries = find(folder, "corpus.jsonl"), find(folder, "queries.jsonl")
    judged = {file.stem: file for file in sorted((folder / "qrels").glob("*.tsv"))}
    if corpus is None or queries is None or not judged:
        return {}
    return {"corpus": {"corpus": corpus}, "queries": {"queries": queries}, "qrels": judged}


def _judged(source: _Source, qrels: str | None) -> dict[str, Qrels]:
    """Return split -> judgements; splits of other names are left out."""
    config = "qrels" if "qrels" in source.configs else "default"
    if qrels is not None or config not in source.configs:
        source = _Source(qrels or f"{source.dataset_id}-qrels")
        config = source.configs[0]
    parts = source.splits(config)
    names = {split: next((name for name in names if name in parts), None) for split, names in _SPLITS.items()}
    judgements = {split: source.qrels(config, name) for split, name in names.items() if name is not None}
    if not judgements:
        there = ", ".join(parts)
        raise InputError(f"{source.dataset_id}: the judgements have no split train, dev or test, only {there}")
    return judgements


def _library() -> Any:
    try:
        import datasets
    except ImportError:
        raise InputError("datasets of the Hugging Face Hub need the extra: pip install 'socialgraph-ir[hub]'") from None
    return datasets
