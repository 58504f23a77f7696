"""The difference of two finished rows: paired over their queries, all of them and by where the evidence starts.

Each seed's measures are those in its JSON; seeds are averaged query by query. The interval and p are those of a paired
t-test (two-sided, not adjusted for how many pairs one looks at). Where a row says which document each query is about,
as those of compare.py's evidence do, documents are counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from statistics import fmean

from lab.comparison import mixed, per_query, tested
from lab.paper_figures import measures_by_length
from lab.report import markdown_head, markdown_line
from lab.store import Store
from socialgraph.data.evidence import read_evidence
from socialgraph.errors import InputError
from socialgraph.ranking import paired_t_test
from socialgraph.ranking.evaluate import TTest


def table(chosen: argparse.Namespace) -> str:
    """Return the difference as Markdown: all queries, then those of each bucket.

    Raises:
        InputError: a row that is not there or damaged, rows of different queries, no such measure, no evidence.
    """
    (first, document), (second, _) = (values_of(chosen, row) for row in (chosen.row, chosen.other))
    lines = [
        *markdown_head([chosen.measure, "queries", chosen.row, chosen.other, "difference", "95 % interval", "p"]),
        line("all", first, second, paired_t_test(first, second, document)),
    ]
    if chosen.evidence is not None:
        place = {query: evidence.start for query, evidence in read_evidence(chosen.evidence).items()}
        inside = {query: first[query] for query in first if query in place}
        if not inside:
            raise InputError(f"{chosen.evidence} has no evidence of any query of {chosen.row}: is it the collection?")
        for bucket in measures_by_length({chosen.row: inside}, place, chosen.bounds):
            pair = [{query: values[query] for query in bucket.queries} for values in (first, second)]
            lines.append(line(f"evidence {bucket.name}", *pair, tested(*pair, document)))
    return "\n".join(lines)


def line(name: str, first: Mapping[str, float], second: Mapping[str, float], test: TTest | None) -> str:
    """Return a line of the table; without a test (fewer than two queries) there is no interval."""
    means = [f"{fmean(values.values()):.4f}" if values else "-" for values in (first, second)]
    cells = ["-", "-", "-"]
    if test is not None:
        cells = [f"{test.difference:+.4f}", "{:+.4f} to {:+.4f}".format(*test.interval), f"{test.p_value:.2g}"]
    return markdown_line([name, str(len(first)), *means, *cells])


def values_of(chosen: argparse.Namespace, row: str) -> tuple[dict[str, float], dict[str, str] | None]:
    """Return a row's measure for each query, the mean over its seeds, and the document that each query is about.

    None in place of the latter where the row does not say so.

    Raises:
        InputError: no such row or seed, a damaged one, or one without this measure.
    """
    values: dict[str, float] = {}
    documents: dict[str, str] = {}
    for folder in (chosen.folder, *chosen.also):
        seeds = Store(folder).seeds(row, chosen.seeds).values()
        measures = per_query([(chosen.mixed and mixed(seed)) or seed["measures"] for seed in seeds])
        if chosen.measure not in measures:
            raise InputError(f"{row} has no measure {chosen.measure} in {folder}; it has {', '.join(measures)}")
        values = measures[chosen.measure] | values
        documents |= {query: document for seed in seeds for query, document in seed.get("clusters", {}).items()}
    return values, documents or None
