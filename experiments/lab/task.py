"""What is ranked: a collection, the queries of its splits, and their candidates."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TypeVar

from omegaconf import DictConfig, OmegaConf

from socialgraph import ranking
from socialgraph.data import Cache, Collection, Split, TermStatistics, Tokens, read_run
from socialgraph.data.collection import Run as Ranking
from socialgraph.data.collection import first_ids, hash_fraction, ranked
from socialgraph.data.evidence import Evidence, evidence_of
from socialgraph.errors import InputError, OptionError
from socialgraph.ranking import Retriever
from socialgraph.recipes.build import build_named

T = TypeVar("T")


@dataclass
class Task:
    """What all rows share."""

    data: DictConfig  # what describes it
    collection: Collection
    dev: Split
    tests: dict[str, Split]

    @property
    def train(self) -> Split:
        """What models learn from.

        Raises:
            InputError: there is no such split, which only a training needs.
        """
        return self.collection[str(self.data.splits.train)]

    @property
    def test_name(self) -> str:
        """Name of the first test split, of which circles are described and pictures drawn."""
        return next(iter(self.tests))

    @property
    def test(self) -> Split:
        """The first test split."""
        return self.tests[self.test_name]

    @property
    def folder(self) -> str:
        """Folder in which evidence and flags of its questions lie, if it has them."""
        return str(self.data.get("path", "."))

    @property
    def evidence(self) -> dict[str, Evidence]:
        """Where the evidence of each question stands, as far as it is known."""
        return evidence_of(self.data.label, self.collection, self.folder)


#: the tasks that this process has loaded, by their configuration
_LOADED: dict[str, Task] = {}


def task_of(config: DictConfig) -> Task:
    """Return what a configuration ranks; each task is loaded once."""
    key = json.dumps(OmegaConf.to_container(config.data, resolve=True))
    if key not in _LOADED:
        _LOADED[key] = load_task(config.data)
    return _LOADED[key]


def load_task(data: DictConfig) -> Task:
    """Load the collection with candidates for every split, those of the first stage where none are given.

    Raises:
        InputError: the collection cannot be used, or what is ranked cannot be measured.
        OptionError: there is no such class, or there are splits without candidates and no first stage.
    """
    collection = made(data.collection, "data.collection", Collection)
    retriever = None if data.retriever is None else made(data.retriever, "data.retriever", Retriever)
    for split, path in data.runs.items():
        collection = collection.with_candidates(split, read_run(path))
    bare = [name for name, split in collection.splits.items() if not split.has_candidates]
    if retriever is None and bare:
        raise OptionError(f"data.retriever is null, but {collection.name} has no candidates for {', '.join(bare)}")
    for name in test_splits(data) if data.queries.dev == 0 else [str(data.splits.dev), *test_splits(data)]:
        _ = collection[name]  # one that is not there is told before the first stage, which may take long
    collection = ranking.retrieve_candidates(collection, retriever, data.depth)
    answerable = data.queries.get("found", False)
    dev = Split({}, {}, {})
    if data.queries.dev != 0:
        dev = sampled(collection[str(data.splits.dev)], data.queries.dev, data.depth, answerable)
    tests = {
        name: sampled(collection[name], data.queries.test, data.depth, answerable) for name in test_splits(data)
    }  # fmt: skip
    check_splits(data, collection, dev, tests)
    return Task(data, collection, dev, tests)


def check_splits(data: DictConfig, collection: Collection, dev: Split, tests: dict[str, Split]) -> None:
    """Warn of what makes the measures of a split say little.

    Raises:
        InputError: no query of a split that is ranked has judgements.
    """
    measured = tests if data.queries.dev == 0 else {str(data.splits.dev): dev, **tests}
    for name, split in measured.items():
        where, candidates = f"collection {collection.name}, split {name}", split.candidates or {}
        if not split.qrels:
            raise InputError(
                f"{where}: none of the {len(split.queries)} queries that are ranked is judged, so nothing can be "
                f"measured; in a folder judgements are qrels.{name}.txt, with the ids of the queries"
            )
        if silent := [query for query in split.queries if query not in split.qrels]:
            told = f"{len(silent)} of the {len(split.queries)} queries that are ranked are not judged and count nowhere"
            warnings.warn(f"{where}: {told}: {first_ids(silent)}", stacklevel=3)
        if not any(candidates.get(query, {}).keys() & split.relevant(query) for query in split.qrels):
            warnings.warn(f"{where}: no query has a relevant candidate, so all orders measure the same", stacklevel=3)
    for name in tests:
        if name == str(data.splits.train):
            warnings.warn(f"data.splits.test={name}: models are trained on the queries that test them", stacklevel=3)
        if name == str(data.splits.dev) and data.queries.dev != 0:  # with 0 nothing is chosen
            told = "the weight of the first stage is chosen on the queries that test it"
            warnings.warn(f"data.splits.test={name}: {told}", stacklevel=3)


@cache
def read_texts(
    collection: Collection, backbone: str, document_length: int, query_length: int
) -> tuple[Tokens, TermStatistics]:  # fmt: skip
    """Return the word pieces of all texts and their statistics; each combination is read once."""
    tokens = Tokens(backbone, document_length, query_length, Cache.on_disk())
    return tokens, TermStatistics.of(tokens, collection.documents)


@cache
def whole_texts(collection: Collection, backbone: str) -> Tokens:
    """Return the word pieces of whole documents, however much of them is read; each backbone's once."""
    return Tokens(backbone, 1 << 30, cache=Cache.on_disk())


def made(config: DictConfig, option: str, kind: type[T]) -> T:
    """Return the object that an option describes by its class or function.

    Raises:
        OptionError: there is no such class, it does not take its options, or what it gives is of another kind.
    """
    value = build_named(OmegaConf.to_container(config, resolve=True), option)
    if not isinstance(value, kind):
        raise OptionError(f"{option}: {config._target_} gives a {type(value).__name__}, and no {kind.__name__}")
    return value


def test_splits(data: DictConfig) -> list[str]:
    """Return the names of the splits that are ranked at the end."""
    names = data.splits.test
    return [str(names)] if isinstance(names, str | int) else list(map(str, names))


def test_split(data: DictConfig) -> str:
    """Return the name of the split that is ranked at the end, where there must be one.

    Raises:
        OptionError: there are several.
    """
    split, *others = test_splits(data)
    if others:
        raise OptionError(f"data.splits.test must be one split here, got {', '.join([split, *others])}")
    return split


def sampled(
    split: Split, amount: int | None, depth: int, answerable: bool = False, skipped: int = 0
) -> Split:  # fmt: skip
    """Return a split with that many of its queries, those with the lowest hash, and their best candidates.

    Args:
        split: a split.
        amount: of queries; None: all.
        depth: candidates of a query, at most.
        answerable: leave out queries without a relevant document among them: no order of theirs is better than another.
        skipped: so many of the lowest hash are left out first.
    """
    candidates = split.candidates or {}

    def best(query_id: str) -> dict[str, float]:
        scores = candidates.get(query_id, {})
        return {document: scores[document] for document in ranked(scores)[:depth]}

    def is_asked(query_id: str) -> bool:
        return not answerable or bool(best(query_id).keys() & split.relevant(query_id))

    # lazily: of many queries few are asked, and only their candidates are looked at
    asked = filter(is_asked, sorted(split.queries, key=hash_fraction))
    chosen = set(islice(asked, skipped, None if amount is None else skipped + amount))
    return Split(
        {query_id: text for query_id, text in split.queries.items() if query_id in chosen},
        {query_id: grades for query_id, grades in split.qrels.items() if query_id in chosen},
        {query_id: best(query_id) for query_id in candidates if query_id in chosen},
    )


def rank_by_first_stage(retriever: Retriever, collection: Collection, split: Split) -> Ranking:
    """Return the candidates of a split in a first stage's order; those without a word of the query come last."""
    candidates = split.candidates or {}
    named = {document for scores in candidates.values() for document in scores}
    retrieved = retriever.retrieve(split.queries, max(1, len(named)), set(collection.documents) - named)
    ranking: Ranking = {}
    for query_id, scores in candidates.items():
        known = retrieved.get(query_id, {})
        last = min(known.values(), default=0.0) - 1
        mine = {document: known.get(document, last) for document in scores}
        ranking[query_id] = {document: mine[document] for document in ranked(mine)}
    return ranking
