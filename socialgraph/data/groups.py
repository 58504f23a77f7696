"""What a training step compares: one relevant document of a query and some that are not."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import Split, warn_of
from socialgraph.errors import InputError, check_whole


class Group(NamedTuple):
    """A query and its documents, the relevant one first."""

    query_id: str
    query: str
    document_ids: list[str]


class TrainingGroups(torch.utils.data.Dataset[Group]):
    """Groups of 1 relevant document and ``negatives`` others, drawn from a split's candidates.

    Group i is a function of (seed, i) alone: a run that resumes, or reads with several workers, sees the same groups.
    Every query comes once before any comes twice. The relevant document is drawn from those with a grade
    above 0, whether the candidates hold it or not; the others are candidates that are not. A query with fewer of them
    gets a smaller group. Where a query's relevant documents do not exist, which some collections know only when they
    are looked up, the next query of the order takes its place.

    Args:
        split: queries, judgements and candidates.
        size: number of groups.
        negatives: number of others.
        seed: of the draws.

    Raises:
        InputError: no query has a relevant document that exists and another candidate.
        OptionError: size or negatives below 1, or no whole number.
    """

    def __init__(self, split: Split, size: int, negatives: int = 7, seed: int = 0) -> None:
        check_whole("groups (size)", size, 1)
        check_whole("negatives", negatives, 1)
        candidates = split.candidates or {}
        self.size = size
        self.negatives = negatives
        self.seed = seed
        self._epoch = -1
        self._permutation = np.empty(0, np.int64)
        self.queries = split.queries
        self.documents = split.documents
        self.positives: dict[str, list[str]] = {}
        self.others: dict[str, list[str]] = {}
        for query_id in split.queries:
            grades = split.qrels.get(query_id, {})
            positive = sorted(split.relevant(query_id))
            other = [document for document in candidates.get(query_id, {}) if grades.get(document, 0) <= 0]
            if positive and other:
                self.positives[query_id], self.others[query_id] = positive, other
        self.query_ids = sorted(self.positives)
        if not self.query_ids:
            message = f"none of the {len(split.queries)} training queries has a relevant document"
            raise InputError(f"{message} and a candidate beside it")
        if missing := len(split.queries) - len(self.query_ids):
            message = f"{missing} of {len(split.queries)} training queries have no relevant document"
            warnings.warn(f"{message} or no other candidate and are left out", stacklevel=2)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Group:
        """Return group ``index``."""
        if not 0 <= index < self.size:
            raise IndexError(f"group {index} of {self.size}")
        epoch, place = divmod(index, len(self.query_ids))
        order = self._order(epoch)
        asked = (self.query_ids[order[(place + step) % len(order)]] for step in range(len(order)))
        query_id, positives = next(((one, there) for one in asked if (there := self._existing(one))), ("", []))
        if not positives:
            raise InputError("none of the documents that are relevant to a training query exists")
        draw = np.random.default_rng([self.seed, 1, index])
        positive = positives[draw.integers(len(positives))]
        others = self.others[query_id]
        chosen = draw.choice(len(others), min(self.negatives, len(others)), replace=False)
        return Group(query_id, self.queries[query_id], [positive, *(others[i] for i in chosen)])

    def _existing(self, query_id: str) -> list[str]:
        """Return a query's relevant documents that exist; warn of others."""
        wanted, known = self.positives[query_id], self.documents
        there = [document for document in wanted if known is None or document in known]
        message = "documents are relevant to a training query and left out, as the corpus lacks them"
        warn_of(f"query {query_id!r}", sorted(set(wanted) - set(there)), message)
        return there

    def _order(self, epoch: int) -> npt.NDArray[np.int64]:
        """Return the order of the queries in an epoch; the last one is kept, as groups are read one after another."""
        if self._epoch != epoch:
            self._epoch = epoch
            self._permutation = np.random.default_rng([self.seed, 0, epoch]).permutation(len(self.query_ids))
        return self._permutation


class GroupCollator:
    """Builds the graphs of some groups, as far as a worker can (:meth:`GraphBuilder.ahead`).

    Args:
        builder: builds graphs.
        fresh_draws: whether each epoch draws graphs of its own.

    Attributes:
        draw: number of the draw, see :meth:`GraphBuilder.redrawn`; who trains sets it.
    """

    def __init__(self, builder: GraphBuilder, fresh_draws: bool = False) -> None:
        self.builder = builder
        self.fresh_draws = fresh_draws
        self.draw = 0

    def __call__(self, groups: Sequence[Group]) -> dict[str, Any]:
        """Return ``graph`` (a batch), ``group [B]`` (of each document), ``relevant [B]`` (bool) and ``groups``."""
        pairs = [(group.query_id, group.query, document) for group in groups for document in group.document_ids]
        sizes = torch.tensor([len(g.document_ids) for g in groups])
        relevant = torch.zeros(len(pairs), dtype=torch.bool)
        relevant[sizes.cumsum(0) - sizes] = True
        return {
            "graph": self.builder.redrawn(self.draw).ahead(pairs),
            "group": torch.repeat_interleave(sizes),
            "relevant": relevant,
            "groups": [tuple(group) for group in groups],  # on the way to a device named tuples lose their names
        }
