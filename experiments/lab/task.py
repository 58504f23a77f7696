"""What is ranked: a collection, the queries of its splits, and their candidates."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, fields
from functools import cache, cached_property, partial
from itertools import islice
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf

from lab.config import Data
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
    """What all rows share. Candidates are retrieved where they are first asked for, of the queries that are ranked.

    Attributes:
        data: the options.
        collection: its splits retrieve candidates for all of their queries, where they have none of their own.
        bare: the same as it was loaded.
        retriever: the first stage.
    """

    data: Data
    collection: Collection
    bare: Collection
    retriever: Retriever | None

    @cached_property
    def dev(self) -> Split:
        """The queries on which the weight of a mixture is chosen; none where ``data.queries.dev`` is 0."""
        if self.data.queries.dev == 0:
            return Split({}, {}, {})
        return self._ranked(self.data.splits.dev, self.data.queries.dev)

    @cached_property
    def test(self) -> Split:
        """The queries that are ranked at the end."""
        return self._ranked(self.data.splits.test, self.data.queries.test)

    @property
    def train(self) -> Split:
        """What models learn from; its candidates hold no document that is relevant to a query of another split."""
        return self.collection[self.data.splits.train]

    @cached_property
    def evidence(self) -> dict[str, Evidence]:
        """Where the evidence of each question stands, as far as it is known."""
        return evidence_of(self.data.label, self.collection, self.data.path or ".")

    def first_stage_score(self, query_id: str, document_id: str) -> float:
        """Return the score that a document has among a query's candidates; NaN where it is none of them."""
        for part in (vars(self).get("test"), vars(self).get("dev")):  # first those whose candidates are there
            if part is not None and document_id in (found := (part.candidates or {}).get(query_id, {})):
                return float(found[document_id])
        return self.collection.first_stage_score(query_id, document_id)

    def _ranked(self, name: str, amount: int | None) -> Split:
        """Return the queries of a split that are ranked, those with the lowest hash, with their candidates."""
        if self.data.queries.found or self.bare[name].has_candidates:
            chosen = sampled(self.collection[name], amount, self.data.depth, self.data.queries.found)
        else:  # candidates are retrieved of these queries alone
            some = sampled(self.bare[name], amount, self.data.depth)
            chosen = Split(some.queries, some.qrels)
            chosen = chosen.with_candidates(retrieved(self.bare, self.retriever, self.data.depth, name, chosen))
        self._check(name, chosen)
        return chosen

    def _check(self, name: str, split: Split) -> None:
        """Warn of what makes the measures of a split say little.

        Raises:
            InputError: no query that is ranked has judgements.
        """
        where, candidates = f"collection {self.collection.name}, split {name}", split.candidates or {}
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


def retrieved(collection: Collection, retriever: Retriever | None, depth: int, name: str, split: Split) -> Ranking:
    """Return the first stage's candidates for the queries of a split.

    Raises:
        OptionError: there is no first stage.
        InputError: none of the queries matches anything.
    """
    if retriever is None:
        raise OptionError(f"data.retriever is null, but {collection.name}, split {name} has no candidates")
    asked = collection.with_splits({**collection.splits, name: split})
    return ranking.retrieve_candidates(asked, retriever, depth, [name])[name].candidates or {}


def load_task(config: DictConfig) -> Task:
    """Return what a configuration's ``data`` describes; each task is loaded once.

    Raises:
        InputError: the collection cannot be used, or has no such split.
        OptionError: there is no such class, or an option is of another kind.
    """
    return _load_task(json.dumps(OmegaConf.to_container(config, resolve=True)))


@cache
def _load_task(description: str) -> Task:
    values = json.loads(description)
    own = {option.name: values[option.name] for option in fields(Data) if option.name in values}
    data: Data = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Data), own))  # type: ignore[assignment]
    for name in ("dev", "test"):
        amount = getattr(data.queries, name)
        if (amount is not None and amount < 0) or data.depth < 1:
            raise OptionError(f"data.queries.{name} and data.depth must not be negative, got {amount} and {data.depth}")
    collection = instantiate_as(data.collection, "data.collection", Collection)
    retriever = None if data.retriever is None else instantiate_as(data.retriever, "data.retriever", Retriever)
    for split, path in data.runs.items():
        collection = collection.with_candidates(split, read_run(path))
    splits = data.splits
    for name in {splits.test, *([splits.dev] if data.queries.dev != 0 else [])}:
        _ = collection[name]  # one that is not there is told before the first stage, which may take long
    for other, told in (
        (splits.train, "models are trained on the queries that test them"),
        (splits.dev if data.queries.dev != 0 else "", "the weight of BM25 is chosen on the queries that test it"),
    ):
        if splits.test == other:
            warnings.warn(f"data.splits.test={splits.test}: {told}", stacklevel=3)
    whole = {
        name: split if split.has_candidates
        else Split(split.queries, split.qrels, partial(retrieved, collection, retriever, data.depth, name, split))
        for name, split in collection.splits.items()
    }  # fmt: skip
    return Task(data, collection.with_splits(whole), collection, retriever)


def instantiate_as(spec: Any, option: str, kind: type[T]) -> T:
    """Return the object that an option describes by its class or function.

    Raises:
        OptionError: there is no such class, it does not take its options, or what it gives is of another kind.
    """
    plain = OmegaConf.to_container(spec, resolve=True) if OmegaConf.is_config(spec) else spec
    value = build_named(plain, option)
    if not isinstance(value, kind):
        raise OptionError(f"{option} gives a {type(value).__name__}, and no {kind.__name__}")
    return value


@cache
def read_texts(
    collection: Collection, backbone: str, document_length: int, query_length: int
) -> tuple[Tokens, TermStatistics]:  # fmt: skip
    """Return the word pieces of all texts and their statistics; each combination is read once."""
    tokens = Tokens(backbone, document_length, query_length, Cache.on_disk())
    return tokens, TermStatistics.of(tokens, collection.documents)


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


def rank_by_first_stage(retriever: Retriever, split: Split) -> Ranking:
    """Return the candidates of a split in a first stage's order; those without a word of the query come last."""
    ranking: Ranking = {}
    for query_id, scores in (split.candidates or {}).items():
        known = retriever.score(split.queries[query_id], scores)
        last = min(known.values(), default=0.0) - 1
        mine = {document: known.get(document, last) for document in scores}
        ranking[query_id] = {document: mine[document] for document in ranked(mine)}
    return ranking
