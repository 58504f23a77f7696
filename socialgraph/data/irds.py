"""Collections of ir_datasets, by their ids: https://ir-datasets.com.

The library finds its files in the folder named by the environment variable `IR_DATASETS_HOME`, which it reads
when it is first imported (here: when the first collection is loaded). Documents are read by id from its docs
store and are never all in memory; the store is built when the first document is asked for.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from socialgraph.data.collection import (
    Collection,
    Document,
    Qrels,
    Queries,
    Run,
    Split,
    StoredDocuments,
    divide,
    first_ids,
    grade_of,
    restrict,
    warn_of,
)
from socialgraph.errors import InputError


def load_irds(
    test: str,
    dev: str | None = None,
    train: str | None = None,
    shares: Sequence[float] | None = (0.6, 0.2, 0.2),
    ignore_identical_ids: bool | None = None,
) -> Collection:
    """Load a collection of ir_datasets.

    With `dev` or `train`, each id becomes the split of that name. With `test` alone its judged queries are
    divided into train, dev and test by a hash of the query id (`hash_split`), and queries without judgements
    are left out; then the train candidates hold no document that is relevant to a dev or test query.
    `shares=None` keeps all its queries together as the one split `test`.

    Candidates are the dataset's scoreddocs where it has them, read when first asked for. Where a query's
    scores do not tell its documents apart (all equal, or missing), the order of the source becomes the score
    n, n - 1, ..., 1.

    Args:
        test: id such as `"cranfield"` or `"msmarco-document/dev"`.
        dev: id of the dev split; all ids must share one corpus.
        train: id of the train split.
        shares: Shares of train, dev and test when `test` comes alone, or None.
        ignore_identical_ids: See :class:`~socialgraph.data.Collection`.

    Raises:
        InputError: An id that ir_datasets does not know, has no documents, queries or judgements, or another corpus; a
            file that it cannot read or fetch.

    Warns:
        UserWarning: With a count and the first ids: queries without text, which are left out; documents that the
            source judges twice for a query and not alike: the last judgement counts, as in other programs.
    """
    ids = {split: name for split, name in (("train", train), ("dev", dev), ("test", test)) if name is not None}
    for dataset_id in ids.values():
        _check(dataset_id)
    corpora = {dataset_id: str(_library().docs_parent_id(dataset_id)) for dataset_id in ids.values()}
    if len(set(corpora.values())) > 1:
        listing = ", ".join(f"{dataset_id} has {corpus}" for dataset_id, corpus in corpora.items())
        raise InputError(f"the splits of a collection must share one corpus, but {listing}")
    splits = {}
    for split, dataset_id in ids.items():
        queries = _queries(dataset_id)
        scored = _dataset(dataset_id).has_scoreddocs()
        run = partial(_candidates, dataset_id, queries) if scored else None
        splits[split] = Split(queries, restrict(queries, _qrels(dataset_id)), run)
    if len(ids) == 1 and shares is not None:
        splits = divide(splits["test"], shares)
    return Collection(test, IrdsDocuments(corpora[test]), splits, ignore_identical_ids)


class IrdsDocuments(StoredDocuments):
    """The documents of one ir_datasets corpus, read by id from its docs store.

    A store keeps a file open and its position in it. So each process opens its own, after a fork too, and a
    pickled copy carries the id only.
    """

    knows_ids = False

    def __init__(self, dataset_id: str) -> None:
        self.dataset_id = dataset_id
        self._opened: tuple[int, Any] | None = None

    def _store(self) -> Any:
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = (os.getpid(), _dataset(self.dataset_id).docs_store())
        return self._opened[1]

    def __getitem__(self, doc_id: str) -> Document:
        with _readable(f"the documents of {self.dataset_id}"):
            records = self._store().get_many([doc_id])
        return as_document(records[doc_id])

    def __iter__(self) -> Iterator[str]:
        return (document.doc_id for document in self.stream())

    def __len__(self) -> int:
        with _readable(f"the documents of {self.dataset_id}"):
            # From the store if it is built, else from the library's catalogue.
            count = _dataset(self.dataset_id).docs_count()
            return int(self._store().count() if count is None else count)

    def stream(self) -> Iterator[Document]:
        """Yield every document in the order of the source."""
        with _readable(f"the documents of {self.dataset_id}"):
            yield from map(as_document, _dataset(self.dataset_id).docs_iter())

    def identity(self) -> str:
        """Return the id, which ir_datasets gives to no other documents, and the folder of its files."""
        return f"ir_datasets {self.dataset_id} in {_library().util.home_path().resolve()}"

    def __reduce__(self) -> tuple[type[IrdsDocuments], tuple[str]]:
        return type(self), (self.dataset_id,)

    def __repr__(self) -> str:
        return f"documents of {self.dataset_id}"


def as_document(document: Any) -> Document:
    """Return a document of ir_datasets as a `Document`.

    The title is the field `title` or `headline`; the text is the only one of `body`, `text` and `abstract` that the
    document has. Where it has none of them or more than one, or one that is no string (sections, or a page's bytes),
    the text is `default_text()`, which holds the title already.
    """
    titles = [getattr(document, field, None) for field in ("title", "headline")]
    title = next((one for one in titles if isinstance(one, str) and one.strip()), "")
    texts = [getattr(document, field) for field in ("body", "text", "abstract") if hasattr(document, field)]
    if len(texts) == 1 and isinstance(texts[0], str):
        return Document(document.doc_id, texts[0], title)
    return Document(document.doc_id, document.default_text())


def _library() -> Any:
    # Imported late: it reads IR_DATASETS_HOME at import, and the rest of the package should not wait for it.
    import ir_datasets

    return ir_datasets


def _dataset(dataset_id: str) -> Any:
    try:
        return _library().load(dataset_id)
    except KeyError:
        near = difflib.get_close_matches(dataset_id, [str(one) for one in _library().registry], n=3)
        hint = f"; near it: {', '.join(near)}" if near else ""
        raise InputError(f"ir_datasets knows no dataset {dataset_id!r}{hint}") from None


def _check(dataset_id: str) -> None:
    dataset = _dataset(dataset_id)
    lacks = [what for what in ("docs", "queries", "qrels") if not getattr(dataset, f"has_{what}")()]
    if lacks:
        inside = [str(one) for one in _library().registry if str(one).startswith(f"{dataset_id}/")]
        whole = [one for one in inside if _library().load(one).has_qrels()]
        hint = f"; with judgements there are {first_ids(whole, 5)}" if whole else ""
        raise InputError(f"the ir_datasets id {dataset_id!r} has no {', no '.join(lacks)}{hint}")


def _queries(dataset_id: str) -> Queries:
    with _readable(f"the queries of {dataset_id}"):
        texts = {query.query_id: _query_text(query).strip() for query in _dataset(dataset_id).queries_iter()}
    warn_of(dataset_id, [one for one, text in texts.items() if not text], "queries are empty and left out")
    return {query_id: text for query_id, text in texts.items() if text}


def _query_text(query: Any) -> str:
    text = getattr(query, "text", None)
    return text if isinstance(text, str) else str(query.default_text())


def _qrels(dataset_id: str) -> Qrels:
    qrels: Qrels = {}
    otherwise: list[str] = []
    with _readable(f"the judgements of {dataset_id}"):
        for one in _dataset(dataset_id).qrels_iter():
            where = f"{dataset_id}, document {one.doc_id!r} for query {one.query_id!r}"
            grade, grades = grade_of(one.relevance, where), qrels.setdefault(one.query_id, {})
            if grades.get(one.doc_id, grade) != grade:
                otherwise.append(one.doc_id)
            grades[one.doc_id] = grade
    warn_of(dataset_id, otherwise, "judgements are followed by another one of the same document, which counts")
    return qrels


def _candidates(dataset_id: str, queries: Queries) -> Run:
    """Return the scoreddocs of these queries."""
    run: Run = {}
    with _readable(f"the scoreddocs of {dataset_id}"):
        for scored in _dataset(dataset_id).scoreddocs_iter():
            if scored.query_id in queries:
                score = getattr(scored, "score", None)
                run.setdefault(scored.query_id, {})[scored.doc_id] = math.nan if score is None else float(score)
    for query_id, scores in run.items():
        values = set(scores.values())
        if any(map(math.isnan, values)) or len(values) < min(len(scores), 2):  # the source gives no scores
            run[query_id] = {doc_id: float(len(scores) - place) for place, doc_id in enumerate(scores)}
    return restrict(queries, run)


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Turn what the library raises over a file (missing, damaged, not to be fetched) into one error."""
    try:
        yield
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError, EOFError, StopIteration) as error:
        home = _library().util.home_path()
        raise InputError(f"{what} cannot be read (IR_DATASETS_HOME is {home}): {error!r}") from error
