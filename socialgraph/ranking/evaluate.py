"""Measures of a run and the significance of a difference between two runs, through ir_measures and scipy.

A run is measured in the package's one order: best score first, equal scores by document id, the smaller
first. (The programs behind ir_measures break ties each in its own way, so that RR@10 and nDCG@10 of one run
could speak of two different lists.)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from socialgraph.data.collection import Qrels, Run, check_scores, first_ids, grade_of, ranked
from socialgraph.data.lines import is_unicode
from socialgraph.data.texts import string_ids
from socialgraph.errors import InputError, OptionError, check_between, first_line

if TYPE_CHECKING:
    import ir_measures

DEFAULT_MEASURES = ("RR@100", "RR@10", "nDCG@10", "nDCG@100")


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found: measure -> query id -> value."""

    per_query: dict[str, dict[str, float]]

    @property
    def mean(self) -> dict[str, float]:
        """Measure -> mean over all judged queries."""
        return {measure: fmean(values.values()) for measure, values in self.per_query.items()}


def evaluate(
    qrels: Qrels, run: Run, measures: Sequence[str] = DEFAULT_MEASURES, ignore_identical_ids: bool | None = None
) -> Evaluation:
    """Measure a run.

    Every query with judgements counts: one that the run lacks has the value 0. Queries without judgements are
    left out. A grade of 1 or more is relevant; nDCG takes the grades as gains.

    Args:
        qrels: The judgements. Ids that are no strings, such as numbers, are compared as strings.
        run: What is measured.
        measures: Names as ir_measures writes them, such as `"RR@10"`, `"nDCG@10"`, `"AP"`, `"R@100"`.
        ignore_identical_ids: Whether a document whose id is the query's is passed over, as in BEIR, because it is the
            query itself. None: where the id is no plain number, as numbers coincide by accident, and it is not judged
            to be relevant.

    Raises:
        InputError: There are no judgements, a score is not finite, a grade is no whole number or out of range, or an
            id holds a NUL or half of a surrogate pair.
        OptionError: A name that ir_measures does not know or cannot compute here.
    """
    import ir_measures  # here and below: slow to import, and not needed to rank

    if not qrels:
        raise InputError("a run cannot be measured without judgements (qrels)")
    parsed = parse_measures(measures)
    keys = list(qrels)
    qrels = {query_id: string_ids(grades) for query_id, grades in string_ids(qrels).items()}
    run = {query_id: string_ids(scores) for query_id, scores in string_ids(run).items()}
    judged = {query_id: _judged(query_id, grades) for query_id, grades in qrels.items()}
    check_scores({query_id: run[query_id] for query_id in qrels if query_id in run}, "the run that is measured")
    run = _without_identical(qrels, run, ignore_identical_ids)
    spread = {query_id: _spread(query_id, run[query_id]) for query_id in qrels if run.get(query_id)}
    values = {measure: dict.fromkeys(qrels, 0.0) for measure in parsed.values()}
    if spread:
        try:
            for metric in ir_measures.iter_calc(list(values), judged, spread):
                values[metric.measure][metric.query_id] = float(metric.value)
        except Exception as error:  # each of the programs has errors of its own
            raise OptionError(f"{', '.join(measures)} cannot be computed here ({first_line(error)})") from error
    # two names can mean the same measure; the caller's ids come back
    return Evaluation({n: dict(zip(keys, values[measure].values(), strict=True)) for n, measure in parsed.items()})


def _without_identical(qrels: Qrels, run: Run, ignore: bool | None) -> Run:
    """Return the run without documents that have their query's id; warn of them."""
    own = [one for one in qrels if ignore is not False and one in run.get(one, ())]
    if not ignore:
        own = [one for one in own if not one.isdecimal() and qrels[one].get(one, 0) < 1]
    if not own:
        return run
    told = "find a document of their own id, which is passed over; ignore_identical_ids=False counts it"
    warnings.warn(f"{len(own)} queries {told}: {first_ids(own)}", stacklevel=3)
    return run | {one: {doc_id: score for doc_id, score in run[one].items() if doc_id != one} for one in own}


def _judged(query_id: str, grades: Mapping[str, int]) -> dict[str, int]:
    """Return a query's grades, checked, as the measures' library can take them.

    trec_eval makes a table with a place for each grade up to the highest. Where all grades are below 0 it writes before
    the table's first place, and the process dies. As 0 such grades mean the same: judged, and not relevant.
    """
    _check_ids(query_id, grades)
    known = {doc_id: grade_of(g, f"query {query_id!r}, document {doc_id!r}") for doc_id, g in grades.items()}
    return dict.fromkeys(known, 0) if known and max(known.values()) < 0 else known


def _spread(query_id: str, scores: Mapping[str, float]) -> dict[str, float]:
    """Return n, n - 1, ..., 1 as scores: the same order, no ties, exact in trec_eval's 32 bits."""
    _check_ids(query_id, scores)
    return {doc_id: float(len(scores) - place) for place, doc_id in enumerate(ranked(scores))}


def _check_ids(query_id: str, documents: Iterable[str]) -> None:
    # The programs behind ir_measures are written in C: an id ends at a NUL, and two become one.
    text = "\n".join((query_id, *documents))
    if "\0" in text or not is_unicode(text):
        raise InputError(f"query {query_id!r}: an id holds a NUL, or half of a surrogate pair")


def parse_measures(names: Iterable[str]) -> dict[str, ir_measures.Measure]:
    """Return measures by their names, so that a mistake shows before hours of work.

    A cutoff of 0 is refused: trec_eval's assertions end the process.

    Raises:
        OptionError: no name, or one that ir_measures does not know or cannot compute here.
    """
    import ir_measures

    if isinstance(names, str) or not (names := [*names]):
        raise OptionError(f"measures are a list of names, such as ['nDCG@10'], got {names!r}")
    parsed = {}
    for name in names:
        why = "no program that is installed computes it"
        try:
            parsed[name] = measure = ir_measures.parse_measure(name)
            if ir_measures.DefaultPipeline.supports(measure):
                why = "" if measure.params.get("cutoff", 1) >= 1 else "a cutoff must be at least 1"
        except (ValueError, NameError, KeyError, SyntaxError, AssertionError, TypeError) as error:
            why = f"ir_measures does not know it ({error}); try RR@10, nDCG@10"
        if why:
            raise OptionError(f"measure {name!r}: {why}")
    return parsed


@dataclass(frozen=True)
class TTest:
    """A paired t-test of two runs.

    Attributes:
        difference: Mean difference, first - second.
        statistic: t.
        p_value: Two-sided.
        queries: How many.
        interval: Bounds of the difference at 95 % confidence.
        error: Standard error of the difference.
    """

    difference: float
    statistic: float
    p_value: float
    queries: int
    interval: tuple[float, float]
    error: float

    def significant(self, level: float = 0.05) -> bool:
        """Whether p is below `level`."""
        return self.p_value < level


def paired_t_test(
    first: Mapping[str, float], second: Mapping[str, float], clusters: Mapping[str, str] | None = None
) -> TTest:
    """Compare two runs by one measure's values per query (`Evaluation.per_query[measure]`).

    Student's t-test on the paired differences, two-sided, as `scipy.stats.ttest_rel`. If the differences, or those of
    whole clusters, do not vary, there is no error to weigh their mean against: a mean of 0 has t = 0 and p = 1, any
    other an infinite t and p = 0.

    With clusters the queries of one cluster may depend on each other, such as questions about one document: the
    standard error of the mean difference is that of the G clusters' sums, sqrt(G / (G - 1) sum_g e_g^2) / n with e_g
    the sum of a cluster's deviations from the mean, and t has G - 1 degrees of freedom (A. Colin Cameron and Douglas L.
    Miller, "A Practitioner's Guide to Cluster-Robust Inference", Journal of Human Resources 50, 2015).

    Args:
        first: query -> value.
        second: the same queries -> value.
        clusters: query -> cluster; None: each query is one of its own.

    Raises:
        InputError: The two speak of different queries, or of fewer than two, or of fewer than two clusters.
    """
    if first.keys() != second.keys():
        strangers = sorted(first.keys() ^ second.keys())
        raise InputError(f"{len(strangers)} queries are in one result only: {first_ids(strangers)}")
    names = [clusters[query_id] for query_id in first] if clusters else list(first)
    group = np.unique(names, return_inverse=True)[1]
    if len(set(names)) < 2:
        raise InputError(f"a t-test needs two {'clusters' if clusters else 'queries'} or more, got {len(set(names))}")
    differences = np.array([first[query_id] - second[query_id] for query_id in first])
    mean = float(differences[0] if np.ptp(differences) == 0 else differences.mean())  # equals are not rounded
    sums = np.bincount(group, differences - mean)
    error = math.sqrt(len(sums) / (len(sums) - 1) * float((sums**2).sum())) / len(first)
    if error == 0:
        statistic = math.copysign(math.inf, mean) if mean else 0.0
        return TTest(mean, statistic, 0.0 if mean else 1.0, len(first), (mean, mean), error)
    import scipy.stats

    law = scipy.stats.t(len(sums) - 1)
    wide = float(law.ppf(0.975)) * error
    p_value = float(2 * law.sf(abs(mean / error)))
    return TTest(mean, mean / error, p_value, len(first), (mean - wide, mean + wide), error)


def holm(p_values: Sequence[float]) -> list[float]:
    r"""Return p values adjusted for being many, in the order given: compare each with the level as it is.

    Sorted from the smallest, the i-th of m is multiplied by how many are left; none falls below the one before it.

    .. math:: \tilde p_{(i)} = \min\big(1, \max_{j \le i} (m - j + 1)\, p_{(j)}\big)

    The chance of any false discovery then stays below the level. Holm, "A simple sequentially rejective multiple test
    procedure", Scandinavian Journal of Statistics, 1979.

    Raises:
        OptionError: a value outside of 0 to 1.
    """
    for p in p_values:
        check_between("a p value", p, 0, 1)
    adjusted, highest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted
