"""The difference of two finished rows, whatever they depend on.

Seeds are averaged query by query. The interval and p are those of a paired t-test (two-sided, not adjusted for how many
pairs one looks at). Where a row says which document each query is about, as those of compare.py's evidence do,
documents are counted.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
from omegaconf import DictConfig

from lab.report import Values, mixture, per_query, tested
from lab.results import Results
from socialgraph.data.collection import first_ids
from socialgraph.data.evidence import read_evidence
from socialgraph.errors import InputError, OptionError


def pair_table(config: DictConfig) -> pd.DataFrame:
    """Return the difference as a table of texts: all queries, then those of each bucket of evidence.

    Raises:
        OptionError: not two rows, or bounds that do not ascend.
        InputError: a row that is not there or damaged, rows of different queries, no such measure, no evidence.
    """
    if len(config.rows) != 2:
        raise OptionError(f"rows must be two, the second one is subtracted, got {list(config.rows)}")
    (first, documents), (second, _) = (values_of(config, row) for row in config.rows)
    if first.keys() != second.keys():
        strangers = sorted(first.keys() ^ second.keys())
        raise InputError(f"{len(strangers)} queries are in one result only: {first_ids(strangers)}")
    buckets = {"all": list(first)}
    if config.collection is not None:
        start = {
            query: evidence.start for query, evidence in read_evidence(Path(config.collection).expanduser()).items()
        }
        inside = {query: start[query] for query in first if query in start}
        if not inside:
            raise InputError(f"{config.collection} has no evidence of any query of {config.rows[0]}")
        buckets |= {f"evidence {name}": queries for name, queries in by_place(inside, config.bounds).items()}
    lines = []
    for name, queries in buckets.items():
        mine, theirs = ({query: values[query] for query in queries} for values in (first, second))
        test, cells = tested(mine, theirs, documents), ["-", "-", "-"]
        if test is not None:
            cells = [f"{test.difference:+.4f}", "{:+.4f} to {:+.4f}".format(*test.interval), f"{test.p_value:.2g}"]
        means = [f"{fmean(values.values()):.4f}" if values else "-" for values in (mine, theirs)]
        lines.append([name, str(len(queries)), *means, *cells])
    return pd.DataFrame(
        lines, columns=[config.measure, "queries", *config.rows, "difference", "95 % interval", "p"]
    )  # fmt: skip


def by_place(place: dict[str, int], bounds: list[int]) -> dict[str, list[str]]:
    """Return name of a bucket -> its queries; a bound belongs to the bucket above it.

    Raises:
        OptionError: bounds that do not ascend.
    """
    if list(bounds) != sorted(set(bounds)) or not bounds:
        raise OptionError(f"bounds must ascend, and there must be one, got {list(bounds)}")
    names = [
        f"under {bounds[0]:,}",
        *(f"{low:,} to {high - 1:,}" for low, high in pairwise(bounds)),
    ]
    buckets: dict[str, list[str]] = {name: [] for name in [*names, f"{bounds[-1]:,} and more"]}
    for query, at in place.items():
        list(buckets.values())[int(np.searchsorted(list(bounds), at, side="right"))].append(query)
    return buckets


def values_of(config: DictConfig, row: str) -> tuple[Values, dict[str, str] | None]:
    """Return a row's measure for each query, the mean over its seeds, and the document that each query is about.

    None in place of the latter where the row does not say so.

    Raises:
        InputError: no such row or seed, a damaged one, or one without this measure.
    """
    values: Values = {}
    documents: dict[str, str] = {}
    for folder in config.folder:
        seeds = Results(Path(folder).expanduser()).seeds(row, config.seeds).values()
        measures = per_query([(config.mixed and mixture(seed)) or seed["measures"] for seed in seeds])
        if config.measure not in measures:
            raise InputError(f"{row} has no measure {config.measure} in {folder}; it has {', '.join(measures)}")
        values = measures[config.measure] | values
        documents |= {query: document for seed in seeds for query, document in seed.get("clusters", {}).items()}
    return values, documents or None
