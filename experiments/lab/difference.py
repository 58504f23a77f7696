"""The difference of two finished rows, whatever they depend on.

Seeds are averaged query by query. The interval and p are those of a paired t-test (two-sided, not adjusted for how many
pairs one looks at). Where a row says which document each query is about, as those of compare.py's evidence do,
documents are counted.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pandas as pd
from omegaconf import DictConfig

from lab.report import Values, buckets, mixture, per_query, tested
from lab.results import Results
from socialgraph.data.collection import first_ids
from socialgraph.data.evidence import read_evidence
from socialgraph.errors import InputError, OptionError


def difference(config: DictConfig) -> pd.DataFrame:
    """Return the difference as a table of texts: all queries, then those of each bucket of evidence.

    Raises:
        OptionError: not two rows, or bounds that do not ascend.
        InputError: a row that is not there or damaged, rows of different queries, no such measure, no evidence.
    """
    if len(config.rows) != 2:
        raise OptionError(f"rows must be two, the second one is subtracted, got {list(config.rows)}")
    (first, documents), (second, _) = (values_of(config, row) for row in config.rows)
    if strangers := sorted(first.keys() ^ second.keys()):
        raise InputError(f"{len(strangers)} queries are in one result only: {first_ids(strangers)}")
    groups = {"all": list(first)}
    if config.collection is not None:
        evidence = read_evidence(Path(config.collection).expanduser())
        start = pd.Series({query: evidence[query].start for query in first if query in evidence}, dtype=int)
        if start.empty:
            raise InputError(f"{config.collection} has no evidence of any query of {config.rows[0]}")
        for name, some in start.groupby(buckets(start, config.bounds), observed=False):
            groups[f"evidence {name}"] = list(some.index)
    lines = []
    for name, queries in groups.items():
        mine, theirs = ({query: values[query] for query in queries} for values in (first, second))
        test, cells = tested(mine, theirs, documents), ["-", "-", "-"]
        if test is not None:
            cells = [f"{test.difference:+.4f}", "{:+.4f} to {:+.4f}".format(*test.interval), f"{test.p_value:.2g}"]
        means = [f"{fmean(values.values()):.4f}" if values else "-" for values in (mine, theirs)]
        lines.append([name, str(len(queries)), *means, *cells])
    return pd.DataFrame(
        lines, columns=[config.measure, "queries", *config.rows, "difference", "95 % interval", "p"]
    )  # fmt: skip


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
