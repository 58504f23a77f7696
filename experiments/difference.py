"""The difference of two finished rows: paired over their queries, all of them and by where the evidence starts.

Each seed's measures are those in the row's JSON; seeds are averaged query by query. The interval and p are those of a
paired t-test (two-sided, not adjusted for how many pairs one looks at).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from app import begin, one_line_errors

if TYPE_CHECKING:
    from socialgraph.ranking.evaluate import TTest

begin()

EXAMPLES = """\
  python experiments/difference.py experiments/results/wtq/test socialformer-edge parade
  python experiments/difference.py experiments/results/wtq/test without-inter-circle socialformer-edge --seeds 0 \\
      --also experiments/results/wtq/test_bal             (the queries of both)
  python experiments/difference.py experiments/results/fairytale/test \\
      untrained-whole-pages-and-first-passages untrained-random-whole-pages-and-first-passages \\
      --evidence ~/.cache/socialgraph/collections/fairytale --bounds 1024
  python experiments/difference.py experiments/results/wtq/test maxp bm25 --mixed    (the first one mixed with BM25)"""


def main() -> None:
    """Read the options and print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, epilog=f"examples:\n{EXAMPLES}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folder", type=Path, help="of finished rows: experiments/results/<data>/<split>")
    options.add_argument("row", help="such as socialformer-edge")
    options.add_argument("other", help="the row that is subtracted")
    what = "more such folders; a query that is in several counts once, as in the first"
    options.add_argument("--also", type=Path, nargs="+", default=[], metavar="FOLDER", help=what)
    options.add_argument("--measure", default="RR@10", help="one that the rows have (default: %(default)s)")
    options.add_argument("--seeds", type=int, nargs="+", help="these only (default: all that a row has)")
    what = "rows as mixed with the candidates' own scores; one that has no mixture, such as bm25, as it is"
    options.add_argument("--mixed", action="store_true", help=what)
    options.add_argument("--evidence", type=Path, metavar="COLLECTION", help="folder with evidence.tsv")
    what = "word pieces at which a new bucket of evidence begins (default: 512 1024 2048)"
    options.add_argument("--bounds", type=int, nargs="+", default=[512, 1024, 2048], help=what)
    chosen = options.parse_args()
    with one_line_errors():
        print(table(chosen))


def table(chosen: argparse.Namespace) -> str:
    """Return the difference as Markdown: all queries, then those of each bucket.

    Raises:
        InputError: a row that is not there or damaged, rows of different queries, no such measure, no evidence.
    """
    from evidence import read_evidence

    from socialgraph.errors import InputError
    from socialgraph.inspect.by_length import measures_by_length
    from socialgraph.ranking import paired_t_test

    first, second = (values_of(chosen, row) for row in (chosen.row, chosen.other))
    lines = [
        f"| {chosen.measure} | queries | {chosen.row} | {chosen.other} | difference | 95 % interval | p |",
        "|---|---:|---:|---:|---:|---:|---:|",
        line("all", first, second, paired_t_test(first, second)),
    ]
    if chosen.evidence is not None:
        place = {query: evidence.start for query, evidence in read_evidence(chosen.evidence).items()}
        inside = {query: first[query] for query in first if query in place}
        if not inside:
            raise InputError(f"{chosen.evidence} has no evidence of any query of {chosen.row}: is it the collection?")
        for bucket in measures_by_length({chosen.row: inside}, place, chosen.bounds):
            pair = [{query: values[query] for query in bucket.queries} for values in (first, second)]
            test = paired_t_test(*pair) if len(bucket.queries) > 1 else None
            lines.append(line(f"evidence {bucket.name}", *pair, test))
    return "\n".join(lines)


def line(name: str, first: Mapping[str, float], second: Mapping[str, float], test: TTest | None) -> str:
    """Return a line of the table; without a test (fewer than two queries) there is no interval."""
    means = [f"{fmean(values.values()):.4f}" if values else "-" for values in (first, second)]
    found = ["-", "-", "-"]
    if test is not None:
        found = [f"{test.difference:+.4f}", "{:+.4f} to {:+.4f}".format(*test.interval), f"{test.p_value:.2g}"]
    return f"| {' | '.join([name, str(len(first)), *means, *found])} |"


def values_of(chosen: argparse.Namespace, row: str) -> dict[str, float]:
    """Return a row's measure for each query, the mean over its seeds.

    Raises:
        InputError: no such row or seed, a damaged one, or one without this measure.
    """
    from report import per_query
    from results import read_seeds

    from socialgraph.errors import InputError

    values: dict[str, float] = {}
    for folder in (chosen.folder, *chosen.also):
        seeds = list(read_seeds(folder, row, chosen.seeds).values())
        if chosen.mixed:
            seeds = [mixed(seed) for seed in seeds]
        measures = per_query(seeds)
        if chosen.measure not in measures:
            raise InputError(f"{row} has no measure {chosen.measure} in {folder}; it has {', '.join(measures)}")
        values = measures[chosen.measure] | values
    return values


def mixed(seed: dict[str, Any]) -> dict[str, Any]:
    """Return a seed's JSON with the mixture's measures in place of its own, where it has a mixture."""
    if not seed.get("interpolated"):
        return seed
    split = seed["config"]["data"]["splits"]["test"]  # tries lie in a folder that is not called as their split
    return {**seed, "measures": seed["interpolated"]["measures"][split]}


if __name__ == "__main__":
    main()
