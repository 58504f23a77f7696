"""Collections of the Hugging Face Hub in the layout of BEIR and MTEB, by their ids: https://huggingface.co/datasets.

A dataset has three configurations: ``corpus`` (``_id``, ``title``, ``text``), ``queries`` (``_id``, ``text``) and the
judgements (``query-id``, ``corpus-id``, ``score``), whose splits are the collection's. MTEB calls that configuration
``qrels`` or ``default``; BEIR keeps it in a dataset of its own, ``<id>-qrels``. A folder may also be as BEIR packs one:
``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``. Where ir_datasets has a collection, take it from there
(:func:`socialgraph.data.load_irds`): it knows the original files.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
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
    first_ids,
    grade_of,
    hash_split,
    restricted,
)
from socialgraph.data.files import plain_file
from socialgraph.data.trec import is_word
from socialgraph.errors import InputError, first_line

#: what the split is called here -> what it may be called there
_SPLITS = {"train": ("train",), "dev": ("dev", "validation", "val"), "test": ("test",)}
_ID = ("_id", "id")
_JUDGED = ("query-id", "corpus-id", "score")


def load_hub(
    dataset_id: str,
    qrels: str | None = None,
    revision: str | None = None,
    shares: Sequence[float] | None = (0.6, 0.2, 0.2),
) -> Collection:
    """Load a collection of the Hugging Face Hub, through its ``datasets`` library, which keeps what it downloads.

    Its splits are those of the judgements. A dataset with ``test`` alone is divided: its judged queries go to train,
    dev and test by a hash of the query id (`hash_split`); ``shares=None`` keeps them together as ``test``. There are
    no candidates: retrieve them. No code of a dataset is run: the library of today has no loading scripts.

    Args:
        dataset_id: such as ``"BeIR/scifact"`` or ``"mteb/scifact"``, or a folder in that layout, or in that of BEIR's
            own archives: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``.
        qrels: id of the dataset with the judgements; None: `dataset_id` where it has them, else ``<id>-qrels``.
        revision: a commit, branch or tag of ``dataset_id``; None: the newest.
        shares: shares of train, dev and test where there is test alone, or None.

    Raises:
        InputError: The library is not installed; the dataset is not there, has no such configuration or column, or
            holds an id twice or one with blanks.

    Warns:
        UserWarning: With a count and the first ids: queries without text, and judgements on documents that the corpus
            lacks; they are left out.
    """
    source = _Source(dataset_id, revision)
    documents = HubDocuments(dataset_id, source.rows("corpus"))
    texts = _queries(dataset_id, source.rows("queries"))
    judged = _judged(source, qrels, documents)
    splits = {}
    for split, grades in judged.items():
        queries = {query_id: text for query_id, text in texts.items() if query_id in grades}
        splits[split] = Split(queries, restricted(queries, grades))
    if set(splits) == {"test"} and shares is not None:
        whole = splits["test"]
        parts = hash_split(whole.queries, shares)
        splits = {
            part: Split(restricted(ids, whole.queries), restricted(ids, whole.qrels)) for part, ids in parts.items()
        }
    return Collection(Path(dataset_id).name, documents, splits)


class HubDocuments(StoredDocuments):
    """The documents of one corpus, read by id from the library's files, which are mapped into memory."""

    def __init__(self, dataset_id: str, rows: Any) -> None:
        self.dataset_id = dataset_id
        self._rows = rows
        where = f"{dataset_id}, corpus"
        self._id = _column(rows, _ID, where)
        _column(rows, ("text",), where)
        self._places: dict[str, int] = {}
        for place, doc_id in enumerate(map(str, rows[self._id])):
            if not is_word(doc_id):
                raise InputError(f"{where}, row {place}: an id must be one word without blanks, got {doc_id[:80]!r}")
            if self._places.setdefault(doc_id, place) != place:
                raise InputError(f"{where}, row {place}: document id {doc_id!r} comes twice")

    def __getitem__(self, doc_id: str) -> Document:
        return self._document(self._rows[self._places[doc_id]])

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def stream(self) -> Iterator[Document]:
        """Yield every document in the order of the source."""
        return map(self._document, self._rows)

    def _document(self, row: dict[str, Any]) -> Document:
        return Document(str(row[self._id]), row["text"] or "", row.get("title") or "")

    def identity(self) -> str:
        """Return the id and the library's fingerprint, which changes with the files."""
        return f"{self.dataset_id} {self._rows._fingerprint}"

    def __repr__(self) -> str:
        return f"{len(self):,} documents of {self.dataset_id}"


class _Source:
    """A dataset's configurations and their rows."""

    def __init__(self, dataset_id: str, revision: str | None = None) -> None:
        self.dataset_id, self.revision = dataset_id, revision
        self.files = _unpacked(Path(dataset_id))
        with _readable(dataset_id):
            self.configs: list[str] = list(self.files) or _library().get_dataset_config_names(
                dataset_id, revision=revision
            )

    def rows(self, config: str) -> Any:
        """Return the rows of a configuration with one split, which some call like the configuration, some ``train``."""
        parts = self.splits(config)
        if len(parts) != 1:
            raise InputError(f"{self.dataset_id}, {config}: expected one split, got {', '.join(parts)}")
        return next(iter(parts.values()))

    def splits(self, config: str) -> Any:
        """Return split -> rows of a configuration."""
        if config not in self.configs:
            raise InputError(
                f"{self.dataset_id}: there is no configuration {config!r}, only {', '.join(self.configs)}; "
                "expected BEIR's or MTEB's layout (corpus, queries, qrels)"
            )
        with _readable(f"{self.dataset_id}, {config}"):
            if not self.files:
                return _library().load_dataset(self.dataset_id, config, revision=self.revision)
            if config != "qrels":
                return _library().load_dataset("json", data_files=self.files[config])
            columns = {name: _library().Value("string") for name in _JUDGED}  # an id like 0001 is no number
            return _library().load_dataset(
                "csv", data_files=self.files[config], sep="\t", keep_default_na=False,
                features=_library().Features(columns),
            )  # fmt: skip


def _unpacked(folder: Path) -> dict[str, dict[str, str]]:
    """Return configuration -> split -> file of a folder as BEIR packs it; of any other, and of an id, nothing.

    Raises:
        InputError: a file is no plain file, or judgements do not begin with the names of their columns.
    """
    files = {name: {name: folder / f"{name}.jsonl"} for name in ("corpus", "queries")}
    files["qrels"] = {file.stem: file for file in sorted((folder / "qrels").glob("*.tsv"))}
    if not files["qrels"] or not all(file.exists() for parts in files.values() for file in parts.values()):
        return {}
    for file in (file for parts in files.values() for file in parts.values()):
        plain_file(file)
    for file in files["qrels"].values():
        with file.open(encoding="utf-8-sig", errors="replace") as lines:
            first = lines.readline(200).rstrip()
        if first.split("\t") != list(_JUDGED):
            raise InputError(f"{file}:1: expected the heading {', '.join(_JUDGED)}, tabs between, got {first[:80]!r}")
    return {name: {split: str(file) for split, file in parts.items()} for name, parts in files.items()}


def _judged(source: _Source, qrels: str | None, documents: HubDocuments) -> dict[str, Qrels]:
    """Return split -> judgements; splits of other names are left out."""
    here = next((name for name in ("qrels", "default") if name in source.configs), None)
    if qrels is None and here is not None:
        parts = source.splits(here)
    else:
        other = _Source(qrels or f"{source.dataset_id}-qrels")
        parts = other.splits(other.configs[0])
    judgements: dict[str, Qrels] = {}
    for split, names in _SPLITS.items():
        if name := next((name for name in names if name in parts), None):
            judgements[split] = _qrels(f"{source.dataset_id}, qrels, {name}", parts[name], documents)
    if not judgements:
        there = ", ".join(parts)
        raise InputError(f"{source.dataset_id}: the judgements have no split train, dev or test, only {there}")
    return judgements


def _queries(dataset_id: str, rows: Any) -> Queries:
    column = _column(rows, _ID, f"{dataset_id}, queries")
    text = _column(rows, ("text",), f"{dataset_id}, queries")
    queries: Queries = {}
    empty = []
    for query_id, asked in zip(map(str, rows[column]), rows[text], strict=True):
        if not is_word(query_id):
            raise InputError(f"{dataset_id}, queries: an id must be one word without blanks, got {query_id[:80]!r}")
        if query_id in queries:
            raise InputError(f"{dataset_id}, queries: query id {query_id!r} comes twice")
        if asked and asked.strip():
            queries[query_id] = " ".join(asked.split())
        else:
            empty.append(query_id)
    if empty:
        warnings.warn(f"{dataset_id}: {len(empty)} queries are empty and left out: {first_ids(empty)}", stacklevel=3)
    return queries


def _qrels(where: str, rows: Any, documents: HubDocuments) -> Qrels:
    columns = [_column(rows, (name,), where) for name in _JUDGED]
    qrels: Qrels = {}
    unknown = []
    for place, (query_id, doc_id, score) in enumerate(zip(*(rows[column] for column in columns), strict=True)):
        if str(doc_id) in documents:
            qrels.setdefault(str(query_id), {})[str(doc_id)] = grade_of(score, f"{where}, row {place}")
        else:
            unknown.append(str(doc_id))
    if unknown:
        warnings.warn(
            f"{where}: {len(unknown)} judgements are on documents that the corpus lacks and are left out: "
            f"{first_ids(unknown)}",
            stacklevel=4,
        )
    return qrels


def _column(rows: Any, names: Sequence[str], where: str) -> str:
    for name in names:
        if name in rows.column_names:
            return name
    raise InputError(f"{where}: there is no column {' or '.join(names)}, only {', '.join(rows.column_names)}")


def _library() -> Any:
    try:
        import datasets
    except ImportError:
        raise InputError("datasets of the Hugging Face Hub need the extra: pip install 'socialgraph-ir[hub]'") from None
    return datasets


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Turn what the library raises over a dataset (unknown, not to be fetched, damaged) into one error."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # its own errors have many bases
        raise InputError(f"{what} cannot be read from the Hugging Face Hub ({first_line(error)})") from error
