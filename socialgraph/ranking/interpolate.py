"""Mixing two runs, usually the first stage's and the model's.

Scores of two systems live on different scales, so each query's scores are first brought to [0, 1] by min-max:
a mixed score then depends on the weight and on both lists, and on no other query.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from socialgraph.data.collection import Qrels, Run, check_scores, ranked
from socialgraph.errors import InputError, check_between
from socialgraph.ranking.evaluate import evaluate

DEFAULT_GRID = tuple(step / 20 for step in range(21))
"""0, 0.05, ..., 1."""

DEFAULT_WEIGHT = 0.4
"""Share of BM25 beside "minilm-reader" where there is no dev split; chosen on six dev sets, see the reader's card."""


def interpolate(first: Run, second: Run, weight: float = DEFAULT_WEIGHT) -> Run:
    """Return `weight * minmax(first) + (1 - weight) * minmax(second)`, query by query, best document first.

    Min-max is over the documents that a run holds for the query: the lowest becomes 0, the highest 1; where
    all are equal all become 0. A document that only one run holds counts 0 in the other, as if it stood last
    there. A query that only one run holds keeps that run's order.

    Args:
        first: A run.
        second: Another; the result holds the queries of `first` in their order, then those of `second` alone.
        weight: Share of `first`, from 0 to 1. Without a dev split to choose it on (:func:`choose_weight`) take the
            default, with BM25 as `first`.

    Raises:
        InputError: A score is not finite.
        OptionError: The weight is out of its range.
    """
    check_between("the weight of an interpolation", weight, 0, 1)
    for run in (first, second):
        check_scores(run, "interpolation")
    mixed: Run = {}
    for query_id in dict.fromkeys([*first, *second]):
        ones, others = (_minmax(run.get(query_id, {})) for run in (first, second))
        share = 1.0 if not others else 0.0 if not ones else weight
        scores = {
            doc_id: share * ones.get(doc_id, 0.0) + (1 - share) * others.get(doc_id, 0.0)
            for doc_id in dict.fromkeys([*ones, *others])
        }
        mixed[query_id] = {doc_id: scores[doc_id] for doc_id in ranked(scores)}
    return mixed


def _minmax(scores: Mapping[str, float]) -> dict[str, float]:
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if math.isinf(high - low):  # a quarter of each has the same shares
        scores, low, high = {doc_id: score / 4 for doc_id, score in scores.items()}, low / 4, high / 4
    width = (high - low) or 1.0
    return {doc_id: (score - low) / width for doc_id, score in scores.items()}


def choose_weight(
    first: Run, second: Run, qrels: Qrels, measure: str = "nDCG@10", grid: Sequence[float] = DEFAULT_GRID
) -> float:
    """Return the weight of `first` that is best on these judgements, which should be the dev split's.

    Among equally good weights the smallest is taken, that is, as much of `second` as possible.

    Raises:
        InputError: The grid is empty.
    """
    if not grid:
        raise InputError("the grid of weights is empty")
    means = {weight: evaluate(qrels, interpolate(first, second, weight), [measure]).mean[measure] for weight in grid}
    # Means that differ by rounding only are equal.
    return min(means, key=lambda weight: (-round(means[weight], 12), weight))
