"""What is ranked: documents, queries, graded judgements and candidate lists."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

from tqdm import tqdm

from socialgraph.errors import InputError, OptionError, shown

Queries = dict[str, str]
"""Query id -> text."""
Qrels = dict[str, dict[str, int]]
"""Query id -> document id -> grade. A grade of 1 or more means relevant."""
Run = dict[str, dict[str, float]]
"""Query id -> document id -> score, higher is better."""

#: the largest grade of a judgement, and below 0 the smallest: the measures' programs take memory by the grade
MAX_GRADE = 1000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Document:
    """One document. `title` is empty where the source has none."""

    doc_id: str
    text: str
    title: str = ""

    @property
    def full_text(self) -> str:
        """Title and text on lines of their own, or the text alone where there is no title."""
        return f"{self.title}\n{self.text}" if self.title else self.text


class StoredDocuments(Mapping[str, Document]):
    """Documents that stay on disk: read one by id, or all in storage order.

    A subclass gives `__getitem__`, `__len__`, `__iter__` and `stream`. It must survive `fork` and pickling,
    because the workers of a DataLoader read documents too. Its repr must be cheap: it stands in the
    collection's repr.
    """

    #: whether `in` is answered from memory; where it is not, the documents may not even be there yet
    knows_ids = True

    @abstractmethod
    def stream(self) -> Iterator[Document]:
        """Yield every document once, in storage order, with one pass over the file."""

    def identity(self) -> str:
        """Return a short text that changes when the documents may have changed; here from one pass over them.

        A subclass that knows it without reading says so.
        """
        return _digest(self.stream())

    def values(self) -> ValuesView[Document]:
        """Every document, by one pass instead of one look-up each."""
        return _StreamedValues(self)


class _StreamedValues(ValuesView[Document]):
    _mapping: StoredDocuments

    def __iter__(self) -> Iterator[Document]:
        return self._mapping.stream()


def identity(documents: Mapping[str, Document]) -> str:
    """Return a short text that changes when the documents may have changed: what is made of them is then stale."""
    return documents.identity() if isinstance(documents, StoredDocuments) else _digest(documents.values())


def _digest(documents: Iterable[Document]) -> str:
    digest = hashlib.sha256()
    for document in tqdm(documents, "hashing documents", unit="doc", delay=2, disable=None, leave=False):
        # A JSON array, so that no text can pass for the end of another.
        fields = json.dumps([document.doc_id, document.title, document.text])
        digest.update(fields.encode())
    return digest.hexdigest()


class Split:
    """Queries with their judgements and candidates.

    Args:
        queries: The queries of this split.
        qrels: The judgements. Queries without any are allowed: they are ranked but not measured.
        candidates: What is re-ranked for each query, or None where a first stage must still retrieve it. It may be a
            function without arguments that reads them; it is called at most once, when they are first asked for.
    """

    def __init__(self, queries: Queries, qrels: Qrels, candidates: Run | Callable[[], Run] | None = None) -> None:
        self.queries = queries
        self.qrels = qrels
        self._candidates = candidates
        #: the collection's documents, where the split belongs to one
        self.documents: Mapping[str, Document] | None = None

    @property
    def candidates(self) -> Run | None:
        """Query id -> document id -> first-stage score; None where there are no candidates yet."""
        if callable(self._candidates):
            self._candidates = self._candidates()
        return self._candidates

    @property
    def has_candidates(self) -> bool:
        """Whether there are candidates; unlike `candidates` this loads nothing."""
        return self._candidates is not None

    def relevant(self, query_id: str) -> list[str]:
        """Return the documents with a grade of 1 or more for a query, in the order of the judgements."""
        return [doc_id for doc_id, grade in self.qrels.get(query_id, {}).items() if grade >= 1]

    def with_candidates(self, run: Run) -> Split:
        """Return a copy of this split with other candidates."""
        return Split(self.queries, self.qrels, run)

    def __repr__(self) -> str:
        if self._candidates is None:
            candidates = "no candidates"
        elif callable(self._candidates):
            candidates = "candidates not read yet"
        else:
            candidates = f"{sum(map(len, self._candidates.values())):,} candidates"
        judgements = sum(map(len, self.qrels.values()))
        return f"Split({len(self.queries):,} queries, {judgements:,} judgements, {candidates})"


class Collection:
    """Documents and the splits that ask for them.

    Two rules hold for every split, wherever it was read:

    * A judgement on a document that does not exist is left out, with a warning. Where documents stay in another
      library's files (ir_datasets), so that a look at the judgements would first fetch them, such judgements stay,
      count as in any program of TREC, and are left out of the training alone.
    * A document that is the query itself is no candidate of it: both have the same id, and the id is no plain number,
      or the texts are the same (numbers coincide by accident). It would be the best candidate and, in a training, a
      negative; BEIR calls this ``ignore_identical_ids``. Where it is judged to be relevant, it stays.

    Args:
        name: What tables and logs call it.
        documents: Documents by id: a dict, or a store on disk (`StoredDocuments`).
        splits: `"train"`, `"dev"`, `"test"`, and any others. Every split but `"train"` is held out from training.
        ignore_identical_ids: Whether a query's own document is no candidate. None: as above; True: whatever the texts
            say; False: it stays.

    Warns:
        UserWarning: Judgements and candidates that are left out, with a count and the first ids.
    """

    def __init__(
        self,
        name: str,
        documents: Mapping[str, Document],
        splits: Mapping[str, Split],
        ignore_identical_ids: bool | None = None,
    ) -> None:
        self.name = name
        self.documents = documents
        self.ignore_identical_ids = ignore_identical_ids
        self.splits = {part: self._bind(part, split) for part, split in splits.items()}

    def _bind(self, name: str, split: Split) -> Split:
        """Return a split with this collection's documents, to which the rules above were applied."""
        if split.documents is self.documents:
            return split
        where = f"collection {self.name}, split {name}"
        knows = not isinstance(self.documents, StoredDocuments) or self.documents.knows_ids
        bound = Split(split.queries, _existing_judgements(split.qrels, self.documents, where) if knows else split.qrels)
        bound.documents = self.documents
        candidates = split._candidates
        if callable(candidates):
            bound._candidates = partial(self._read, name, bound, candidates)
        elif candidates is not None:
            bound._candidates = self._without_identical(name, bound, candidates)
        return bound

    def _read(self, name: str, split: Split, candidates: Callable[[], Run]) -> Run:
        return self._without_identical(name, split, candidates())

    def with_splits(self, splits: Mapping[str, Split]) -> Collection:
        """Return a copy with other splits. The documents are shared."""
        return Collection(self.name, self.documents, splits, self.ignore_identical_ids)

    def __getitem__(self, split: str) -> Split:
        """Return a split by name; an unknown one is an InputError that lists those there are."""
        try:
            return self.splits[split]
        except KeyError:
            there = ", ".join(self.splits) or "none"
            raise InputError(f"collection {self.name} has no split {split!r}; there are: {there}") from None

    def with_candidates(self, split: str, run: Run) -> Collection:
        """Return a copy in which `split` has `run` as its candidates. The documents are shared.

        Raises:
            InputError: No such split, or none of its queries has a candidate.

        Warns:
            UserWarning: Queries without candidates, with a count and the first ids.
        """
        check_queries(self[split].queries, run, f"collection {self.name}, split {split}")
        return self.with_splits(self.splits | {split: self[split].with_candidates(run)})

    def without_identical(self, split: str, run: Run) -> Run:
        """Return a run for a split's queries without documents that are the query itself, see above; warn of such."""
        return self._without_identical(split, self[split], run)

    def _without_identical(self, name: str, split: Split, run: Run) -> Run:
        if self.ignore_identical_ids is False:
            return run
        own = {one for one in split.queries if one in run.get(one, ()) and split.qrels.get(one, {}).get(one, 0) < 1}
        if not self.ignore_identical_ids:
            texts = self.documents
            own = {one for one in own if not one.isdecimal() or _is_text_of(split.queries[one], texts[one])}
        if not own:
            return run
        message = "queries are documents themselves, no candidates of their own unless ignore_identical_ids=False"
        warn_of(f"collection {self.name}, split {name}", sorted(own), message)
        return run | {query: {one: score for one, score in run[query].items() if one != query} for query in own}

    def first_stage_score(self, query_id: str, document_id: str) -> float:
        """Return the score that a document has among a query's candidates; NaN where it is none of them.

        Only a split that asks this query is read.
        """
        for name in sorted(self.splits, key="train".__eq__):  # the last one, as it may be large
            split = self.splits[name]
            if split.has_candidates and query_id in split.queries:
                score = (split.candidates or {}).get(query_id, {}).get(document_id)
                if score is not None:
                    return score
        return math.nan

    def held_out_documents(self) -> frozenset[str]:
        """Return ids of the documents that are relevant to a query of any split but `"train"`.

        Training candidates should hold none of them: a model that meets them as negatives learns that what is
        asked for in the test is never relevant.
        """
        return frozenset().union(*(_relevant(one.qrels) for name, one in self.splits.items() if name != "train"))

    def __repr__(self) -> str:
        in_memory = isinstance(self.documents, dict)  # a store on disk may have to be built to be counted
        documents = f"{len(self.documents):,} documents" if in_memory else repr(self.documents)
        lines = [f"  {name}: {split!r}" for name, split in self.splits.items()]
        return "\n".join([f"Collection({self.name}: {documents}", *lines]) + ")"


def _existing_judgements(qrels: Qrels, documents: Mapping[str, Document], where: str) -> Qrels:
    """Return the judgements on documents that exist; warn of others."""
    unknown = [doc_id for grades in qrels.values() for doc_id in grades if doc_id not in documents]
    if not unknown:
        return qrels
    warn_of(where, unknown, "judgements are on documents that the corpus lacks and are left out")
    known = {query_id: {one: grade for one, grade in of.items() if one in documents} for query_id, of in qrels.items()}
    return {query_id: grades for query_id, grades in known.items() if grades}


def _is_text_of(query: str, document: Document) -> bool:
    """Whether a query is a document's title or text, or at least half of both."""
    asked, *texts = (" ".join(x.split()).lower() for x in (query, document.title, document.text, document.full_text))
    return asked in texts or (asked in texts[-1] and 2 * len(asked) >= len(texts[-1]))


def _relevant(qrels: Qrels) -> set[str]:
    """Return ids of the documents with a grade of 1 or more for any query."""
    return {doc_id for grades in qrels.values() for doc_id, grade in grades.items() if grade >= 1}


def grade_of(value: object, where: str) -> int:
    """Return a judgement's grade as a whole number, also one that was read as `1.0` or `"1"`.

    Raises:
        InputError: It begins with `where`: the grade is no whole number from -`MAX_GRADE` to `MAX_GRADE`.
    """
    try:
        grade = int(value)  # type: ignore[call-overload]
        if abs(grade) <= MAX_GRADE and (isinstance(value, str) or grade == value):
            return int(grade)
    except (TypeError, ValueError, OverflowError):  # None; "a", NaN; infinity
        pass
    raise InputError(f"{where}: a grade must be a whole number from -{MAX_GRADE} to {MAX_GRADE}, got {value!r:.40}")


def judge(qrels: Qrels, query_id: str, doc_id: str, value: object, where: str) -> None:
    """Add a judgement. The same one may come twice.

    Raises:
        InputError: It begins with `where`: no grade (:func:`grade_of`), or the document was judged otherwise before.
    """
    grade = grade_of(value, where)
    before = qrels.setdefault(query_id, {}).setdefault(doc_id, grade)
    if before != grade:
        raise InputError(f"{where}: document {doc_id!r} is judged twice for query {query_id!r}: {before} and {grade}")


def check_scores(run: Mapping[str, Mapping[str, float]], where: str) -> None:
    """Raise an InputError that begins with `where` if a score is no finite number: such have no order."""
    for query_id, scores in run.items():
        for doc_id, score in scores.items():
            try:
                has_order = math.isfinite(score)
            except (TypeError, OverflowError):  # no number, or a whole one that no float holds
                has_order = False
            if not has_order:
                raise InputError(f"{where}: the score of document {doc_id!r} for query {query_id!r} is {score}")


def check_queries(queries: Queries, run: Run, where: str) -> None:
    """Warn where some queries have no candidates; they cannot be ranked, and every measure counts them as 0.

    Raises:
        InputError: It begins with `where`: there are queries, and none has a candidate.
    """
    without = [query_id for query_id in queries if not run.get(query_id)]
    if without and len(without) == len(queries):
        raise InputError(f"{where}: none of the {len(queries)} queries has a candidate, so there is nothing to rank")
    warn_of(where, without, f"of {len(queries)} queries have no candidates and count 0 in every measure")


def check_candidates(run: Run, documents: Mapping[str, Document], where: str) -> None:
    """Raise an InputError that begins with `where` if `run` names a document that `documents` lacks."""
    missing = {doc_id for doc_id in {one for scores in run.values() for one in scores} if doc_id not in documents}
    for query_id, scores in run.items():
        if lost := [doc_id for doc_id in scores if doc_id in missing]:
            message = f"it lacks {len(missing):,} documents that are candidates"
            raise InputError(f"{where}: candidate {lost[0]!r} of query {query_id!r} is not in the corpus ({message})")


def ranked(scores: Mapping[str, float]) -> list[str]:
    """Return document ids from best to worst. Equal scores go by document id, the smaller first.

    This is the one order of the package: candidate lists, run files and measures all use it.
    """
    return sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))


def first_ids(ids: Iterable[str], count: int = 3) -> str:
    """Return the first ids for a message: `q1, q7, q9, ...`, long ones cut."""
    listed = list(ids)
    return ", ".join(shown(one[:80]) or "''" for one in listed[:count]) + (", ..." if len(listed) > count else "")


def warn_of(where: str, ids: Sequence[str], message: str) -> None:
    """Warn where there are some, with a count and the first ids: `wtq: 4 queries are empty: q1, q7, q9, ...`."""
    if ids:
        warnings.warn(f"{where}: {len(ids)} {message}: {first_ids(ids)}", stacklevel=4)


def hash_fraction(text: str) -> float:
    """Return a number in [0, 1) that depends on `text` only: the same on every machine and in every version.

    It is the first 8 bytes of the SHA-256 of the UTF-8 text, divided by 2^64 (53 bits of it, so that it stays
    below 1 in floating point).
    """
    head = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return (head >> 11) / (1 << 53)


def hash_split(ids: Iterable[str], shares: Sequence[float]) -> dict[str, list[str]]:
    """Divide ids into `train`, `dev` and `test` by the hash of each id alone.

    Each id goes where `hash_fraction(id)` falls among the cumulated shares, so adding ids never moves another
    one. The shares are met only on average.

    Args:
        ids: What is divided. Its order is kept inside each part.
        shares: Shares of train, dev and test; not negative, sum 1.

    Raises:
        OptionError: The shares are not three numbers from 0 to 1 with the sum 1.
    """
    if len(shares) != 3 or min(shares) < 0 or not abs(sum(shares) - 1) <= 1e-9:  # NaN is neither
        raise OptionError(f"shares (train, dev, test) must be 3 numbers >= 0 with the sum 1, got {shares}")
    parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    # The last part with a share takes what rounding of the sum leaves over.
    train, train_dev = shares[0], (shares[0] + shares[1] if shares[2] > 0 else 1.0)
    for one in ids:
        fraction = hash_fraction(one)
        parts["train" if fraction < train else "dev" if fraction < train_dev else "test"].append(one)
    return parts


def divide(split: Split, shares: Sequence[float]) -> dict[str, Split]:
    """Divide a split into `train`, `dev` and `test` by a hash of the query ids, see :func:`hash_split`.

    Queries without judgements are left out, and so are training candidates that are relevant to a query of dev or test.
    """
    parts = hash_split((query_id for query_id in split.queries if query_id in split.qrels), shares)
    held_out = _relevant(restrict([*parts["dev"], *parts["test"]], split.qrels))
    splits = {}
    for name, ids in parts.items():
        read = partial(_of_part, split, ids, held_out if name == "train" else set())
        judged = restrict(ids, split.qrels)
        splits[name] = Split(restrict(ids, split.queries), judged, read if split.has_candidates else None)
    return splits


def _of_part(split: Split, query_ids: Iterable[str], held_out: set[str]) -> Run:
    run = restrict(query_ids, split.candidates or {})
    if not held_out:
        return run
    rest = {one: {doc: score for doc, score in scores.items() if doc not in held_out} for one, scores in run.items()}
    return {query_id: scores for query_id, scores in rest.items() if scores}


def restrict(queries: Iterable[str], table: Mapping[str, T]) -> dict[str, T]:
    """Return the entries of `table` for these queries, in the order of the queries; others are left out."""
    return cast("dict[str, T]", {query_id: table[query_id] for query_id in queries if query_id in table})
