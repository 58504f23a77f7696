"""A table of finished runs as a DataFrame: Markdown, LaTeX and CSV.

``report.columns`` names the columns: of :data:`COLUMNS`, or a function of one's own by its dotted name, which takes a
:class:`Comparison` and returns a list of :class:`Column`::

    def loud(of):
        return [Column("Loud", [line.label.upper() for line in of.lines])]
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from lab.results import write_text
from lab.rows import Row, Run, by_row
from socialgraph.data.files import file_name
from socialgraph.errors import OptionError
from socialgraph.ranking import TTest, holm, paired_t_test, processes
from socialgraph.recipes.classes import imported
from socialgraph.recipes.compose import refuse_unnamed

log = logging.getLogger("socialgraph")

#: chance with which the minimum detectable difference is seen
POWER = 0.8
#: the difference for which "queries for" says how many there must be
WANTED = 0.05

#: query -> value
Values = dict[str, float]


@dataclass
class Line:
    """A row and its finished runs, the JSON of each seed."""

    row: Row
    seeds: list[dict[str, Any]]
    untrained: list[dict[str, Any]] = field(default_factory=list)  # the same without training, where that was run

    @property
    def label(self) -> str:
        """What it is called."""
        return self.row.label or str(self.seeds[0]["name"])

    def values(self, measure: str, kind: str = "all", mixed: bool = False) -> Values:
        """Return a measure of each query, the mean over the seeds; nothing where there is no such run.

        Args:
            measure: its name.
            kind: "all" runs that are there, "untrained", or "trained".
            mixed: of the mixture with the first stage.
        """
        runs = self.untrained if kind == "untrained" else self.seeds
        if kind == "trained" and self.seeds == self.untrained:
            return {}
        return per_query([mixture(run) if mixed else run["measures"] for run in runs]).get(measure, {})

    def mean(self, measure: str, kind: str = "all", mixed: bool = False) -> float | None:
        """Return a measure's mean over queries and seeds; None where there is no such run."""
        values = self.values(measure, kind, mixed)
        return fmean(values.values()) if values else None

    def cost(self, name: str, unit: float = 1) -> float | None:
        """Return a cost of the first seed in a unit; None if it is not known.

        A training after an untrained run finds costly weights of the same texts, so the time of the latter counts.
        """
        runs = self.untrained if self.untrained and name == "seconds_per_document" else self.seeds
        value = runs[0].get(name)
        return None if value is None else value / unit


def per_query(seeds: Sequence[dict[str, Values] | None]) -> dict[str, Values]:
    """Return measure -> query -> mean over the seeds; nothing if a seed has nothing."""
    known = [seed for seed in seeds if seed is not None]
    if not seeds or len(known) < len(seeds):
        return {}
    return {
        name: {query: fmean(seed[name][query] for seed in known) for query in values}
        for name, values in known[0].items()
    }


def mixture(run: dict[str, Any]) -> dict[str, Values] | None:
    """Return the measures of a run's mixture with the first stage; None where it has none, as a first stage itself."""
    measures = (run.get("interpolated") or {}).get("measures")
    return None if measures is None else measures[run["config"]["data"]["splits"]["test"]]


def tested(first: Values, second: Values, clusters: Mapping[str, str] | None) -> TTest | None:
    """Return a paired t-test over queries; None for fewer than two, or two clusters where they have some."""
    if len({clusters[query] if clusters else query for query in first}) < 2:
        return None
    return paired_t_test(first, second, clusters)


def buckets(values: Sequence[int], bounds: Sequence[int]) -> pd.Categorical:
    """Return in which bucket each value is; a bound belongs to the bucket above it.

    Raises:
        OptionError: bounds that do not ascend.
    """
    if list(bounds) != sorted(set(bounds)) or not bounds:
        raise OptionError(f"bounds must ascend, and there must be one, got {list(bounds)}")
    names = [f"under {bounds[0]:,}", *(f"{low:,} to {high - 1:,}" for low, high in pairwise(bounds))]
    places = np.searchsorted(list(bounds), list(values), side="right")
    return pd.Categorical.from_codes(places, [*names, f"{bounds[-1]:,} and more"])


def lines_of(runs: Iterable[Run], untrained: Iterable[Run] = ()) -> list[Line]:
    """Return the lines of the rows that are finished, in the order in which they are first named."""
    before, lines = by_row(untrained), []
    for row, some in by_row(runs).items():
        seeds, plain = ([one for run in each if (one := run.result())] for each in (some, before.get(row, [])))
        lines.append(Line(row, seeds, plain))
    if left_out := [line.row.name for line in lines if not line.seeds]:
        log.info("not finished under this configuration, so not in the table: %s", ", ".join(left_out))
    return [line for line in lines if line.seeds]


class Comparison:
    """Lines, each tested against one of them.

    Args:
        config: ``measures`` and ``report`` of a command or a level of it. Measures that were not taken are left out.
        lines: those that are finished.
        to: name of the row that the others are tested against; None: the first of ``report.significance.to`` there.
    """

    def __init__(self, config: DictConfig, lines: Sequence[Line], to: str | None = None) -> None:
        self.config, self.lines = config, list(lines)
        self.by_name = {line.row.name: line for line in lines}
        wanted, test = [to] if to else list(config.report.significance.to), config.report.significance
        self.to = next((name for name in wanted if name in self.by_name), wanted[0])
        first = self.lines[0].seeds[0] if self.lines else {"measures": config.measures}
        self.clusters = first.get("clusters")  # query -> what makes it dependent on others
        self.measures = [name for name in config.measures if name in first["measures"]]
        if not self.measures:
            raise OptionError(f"measures={config.measures}, but what is measured is {', '.join(first['measures'])}")
        self.tested = [name for name in test.measures if name in self.measures] or self.measures[:1]

    def label(self, name: str) -> str:
        """Return what a row is called."""
        return self.by_name[name].label if name in self.by_name else name

    def gains(self, measure: str, kind: str = "all", mixed: bool = False) -> list[TTest | None]:
        """Return each line's difference from the reference; None for the reference, or where nothing can be tested."""
        to = self.by_name.get(self.to)
        each = [line.values(measure, kind, mixed) if to not in (None, line) else {} for line in self.lines]
        return [tested(values, to.values(measure), self.clusters) if to and values else None for values in each]

    def p_values(self, measure: str, kind: str = "all", mixed: bool = False) -> list[float | None]:
        """Return how likely each line's difference is by chance: paired t-test, Holm over the lines."""
        gains = self.gains(measure, kind, mixed)
        adjusted = iter(holm([gain.p_value for gain in gains if gain is not None]))
        return [None if gain is None else next(adjusted) for gain in gains]

    def marks(self, measure: str, kind: str = "all", mixed: bool = False) -> list[str]:
        """Return a dagger for each line that differs from the reference by more than chance, in what is tested."""
        level = self.config.report.significance.level if measure in self.tested else 0
        return [" †" if p is not None and p < level else "" for p in self.p_values(measure, kind, mixed)]


# --- columns ----------------------------------------------------------------------------------------------------------


@dataclass
class Column:
    """A column.

    Attributes:
        heading: its name.
        values: of each line, as in the CSV; None: not there, or not known.
        form: how a value is written in Markdown and LaTeX, or what is written for each line.
        note: what one must know to read it.
        on_page: False: in the CSV alone.
    """

    heading: str
    values: Sequence[Any]
    form: str | Sequence[str] = ""
    note: str = ""
    on_page: bool = True

    def texts(self) -> list[str]:
        """Return what stands on a page; what a user typed does not end a cell."""
        form = self.form
        if isinstance(form, str):
            form = ["" if one is None else format(one, form) for one in self.values]
        return ["-" if one is None else text.replace("|", "/") for one, text in zip(self.values, form, strict=True)]


Columns = Iterator[Column]


def of_line(
    heading: str, read: Callable[[Line], Any], form: str = "", note: str = ""
) -> Callable[[Comparison], Columns]:
    """Return what makes a column of something that each line knows."""

    def column(of: Comparison) -> Columns:
        yield Column(heading, [read(line) for line in of.lines], form, note)

    return column


def measures(of: Comparison) -> Columns:
    """Yield each measure; the CSV also has its deviation over seeds and its p value."""
    for name in of.measures:
        means = [fmean(line.values(name).values()) for line in of.lines]
        seeds = [[fmean(run["measures"][name].values()) for run in line.seeds] for line in of.lines]
        deviations = [stdev(one) if len(one) > 1 else None for one in seeds]
        shown = [
            f"{mean:.4f}{'' if deviation is None else f' ± {deviation:.4f}'}{mark}"
            for mean, deviation, mark in zip(means, deviations, of.marks(name), strict=True)
        ]
        yield Column(name, means, shown)
        yield Column(f"sd of {name}", deviations, on_page=False)
        yield Column(f"p of {name}", of.p_values(name), on_page=False)


MIXED = (
    "+ BM25: the scores mixed with the candidates' own, each scaled to [0, 1], with the weight of theirs that is best "
    "on dev (0.4 of BM25 where no query of dev is ranked)."
)


def by_kind(of: Comparison, kind: str, mixed: bool) -> Columns:
    """Yield the first measure of untrained or trained runs, alone or mixed; nothing while there are none.

    Where the weight of a mixture was chosen on dev, it stands beside it.
    """
    name = of.measures[0]
    means = [line.mean(name, kind, mixed) for line in of.lines]
    if all(mean is None for mean in means):
        return
    marks = of.marks(name, kind, mixed)
    shown = ["" if mean is None else f"{mean:.4f}{mark}" for mean, mark in zip(means, marks, strict=True)]
    yield Column("+ BM25" if mixed else f"{name} {kind}", means, shown, MIXED if mixed else "")
    if mixed and of.config.data.queries.dev != 0:
        runs = [line.untrained if kind == "untrained" else line.seeds for line in of.lines]
        weights = [
            ", ".join(f"{run['interpolated']['weight']:g}" for run in some if run["interpolated"]) for some in runs
        ]
        yield Column(
            "weight", [weight if mean is not None else None for weight, mean in zip(weights, means, strict=True)]
        )


def differences(of: Comparison) -> Columns:
    """Yield the differences from other rows, in % of theirs."""
    for measure, to in [(one.measure, one.to) for one in of.config.report.differences] or [(of.measures[0], of.to)]:
        theirs = of.by_name[to].mean(measure) if to in of.by_name else None
        mine = [line.mean(measure) for line in of.lines]
        percent = [100 * (one - theirs) / theirs if one is not None and theirs else None for one in mine]
        yield Column(f"Δ {measure} vs {of.label(to)} %", percent, "+.2f")


def gain(of: Comparison) -> Columns:
    """Yield the first measure's difference from the reference, in its own units, with its interval."""
    name, gains = f"Δ {of.measures[0]}", of.gains(of.measures[0])
    shown = [one and f"{one.difference:+.3f} ({one.interval[0]:+.3f} to {one.interval[1]:+.3f})" for one in gains]
    note = "Δ: the difference, in the measure's own units, with its 95 % interval, not adjusted for the number of rows."
    yield Column(f"{name} (95 %)", [one and one.difference for one in gains], shown, note)
    yield Column(f"Low of {name}", [one and one.interval[0] for one in gains], on_page=False)
    yield Column(f"High of {name}", [one and one.interval[1] for one in gains], on_page=False)


def power(of: Comparison) -> Columns:
    """Yield the minimum detectable difference of the first measure, and how many queries 0.05 would take."""
    smallest, needed = [], []
    for test in of.gains(of.measures[0]):
        # half an interval away it is told from 0; another 0.84 standard errors make it seen in four cases of five
        seen = test and (test.interval[1] - test.interval[0]) / 2 + float(scipy.stats.norm.ppf(POWER)) * test.error
        smallest.append(seen)
        needed.append(math.ceil(test.queries * (seen / WANTED) ** 2) if test and seen and seen > WANTED else None)
    note = (
        f"Minimum detectable difference: of the first measure, with a chance of {POWER:.0%}, in one two-sided "
        f"comparison at 5 %; and how many queries {WANTED} would take, if more."
    )
    yield Column("Minimum detectable difference", smallest, ".3f", note)
    yield Column(f"Queries for {WANTED}", needed)


def own_interval(of: Comparison) -> Columns:
    """Yield the first measure's interval around the line's own mean."""
    values = [line.values(of.measures[0]) for line in of.lines]
    tests = [tested(own, dict.fromkeys(own, 0.0), of.clusters) for own in values]
    yield Column(f"95 % of {of.measures[0]}", [one and "{:+.3f} to {:+.3f}".format(*one.interval) for one in tests])


def p(of: Comparison) -> Columns:
    """Yield the p values of the measures that are tested; none of them is 0 where it is not."""
    for name in of.tested:
        values = of.p_values(name)
        yield Column(f"p of {name}", values, ["<0.001" if (one or 0) < 0.0005 else f"{one:.3f}" for one in values])


def beside(of: Comparison, name: str, form: str = "", note: str = "", before: str = "") -> Columns:
    """Yield the columns of what stands beside rows under a name, such as the figures that a paper prints."""
    each = [line.row.beside.get(name, {}) for line in of.lines]
    for key in dict.fromkeys(chain.from_iterable(each)):
        yield Column(before + key, [one.get(key) for one in each], form, note)


def cost(heading: str, name: str, form: str, note: str = "", unit: float = 1) -> Callable[[Comparison], Columns]:
    """Return what makes the column of a cost."""
    return of_line(heading, lambda line: line.cost(name, unit), form, note)


def length(line: Line) -> int | None:
    """Return the word pieces of a document that a line's model reads; None for a first stage."""
    return line.seeds[0]["config"]["recipe"]["document_length"] if line.seeds[0]["parameters"] is not None else None


PRINTED = "The columns of the paper are its own printed figures, on other data and with other models."

COLUMNS: dict[str, Callable[[Comparison], Iterable[Column]]] = {
    "model": of_line("Model", lambda line: line.label),
    "options": partial(beside, name="options"),
    "length": of_line("Doc. length", length),
    "window": of_line("Window", lambda line: line.row.beside.get("window")),
    "measures": measures,
    "differences": differences,
    "gain": gain,
    "own_interval": own_interval,
    "power": power,
    "p": p,
    "untrained": partial(by_kind, kind="untrained", mixed=False),
    "untrained_mixed": partial(by_kind, kind="untrained", mixed=True),
    "trained": partial(by_kind, kind="trained", mixed=False),
    "trained_mixed": partial(by_kind, kind="trained", mixed=True),
    "parameters": cost("Parameters (M)", "parameters", ".1f", unit=1e6),
    "training": cost("Training (s)", "training_seconds", ".0f"),
    "seconds": cost(
        "s / document", "seconds_per_document", ".4f",
        "s / document: of re-ranking, in the first seed's run, whatever else the machine did.",
    ),
    "circles": cost(
        "Circles (s)", "graph_seconds_per_document", ".4f",
        "Circles: seconds for a document's edges and circles, without what BERT reads for dynamic centrality.",
    ),
    "misses": cost("Cache misses", "newly_read", ".0f", "Cache misses: sequences that no row before had."),
    "memory": cost("Memory (GB)", "peak_memory_bytes", ".2f", "Memory: peak while a row was trained and ranked.", 1e9),
    "paper": partial(beside, name="paper", form=".4f", note=PRINTED, before="paper: "),
}  # fmt: skip


def check_columns(config: DictConfig) -> None:
    """Refuse a column that does not exist, or is of a measure that is not measured.

    Raises:
        OptionError: there is one.
    """
    report, measured = config.report, list(config.measures)
    own = [name for name in report.columns if "." in name]
    refuse_unnamed([{"_target_": name} for name in own], HydraConfig.get().overrides.task)
    for name in own:
        imported(name, option="report.columns=")
    if unknown := [name for name in report.columns if name not in COLUMNS and name not in own]:
        raise OptionError(f"report.columns: there is no column {unknown[0]!r}; there are: {', '.join(COLUMNS)}")
    compared = [one.measure for one in report.differences] if "differences" in report.columns else []
    if not set(report.significance.measures) & set(measured):
        compared += report.significance.measures
    if missing := [name for name in compared if name not in measured]:
        raise OptionError(
            f"report compares {missing[0]}, and what is measured is {', '.join(measured)} (measures=[...])"
        )


def columns_of(of: Comparison) -> list[Column]:
    """Return the columns that ``report.columns`` declares."""
    makers = [COLUMNS.get(name) or imported(name) for name in of.config.report.columns]
    return [column for make in makers for column in make(of)]


# --- tables -----------------------------------------------------------------------------------------------------------


def write_table(of: Comparison, run: DictConfig, folder: Path, name: str, more: str = "") -> None:
    """Write a table in three formats and print it.

    Args:
        of: its lines.
        run: the configuration of one of the runs.
        folder: where it goes.
        name: of its files.
        more: what comes after it in Markdown.
    """
    if not of.lines:
        log.info("no row is finished, so there is no table")
        return
    columns = columns_of(of)
    page, notes = page_of(of, columns), notes_of(of, run, columns)
    text = f"{markdown(page)}\n\n{notes}\n{more}"
    write_text(folder / f"{file_name(name)}.md", text)
    write_text(folder / f"{file_name(name)}.tex", f"% {notes}\n{latex(page)}")
    write_text(folder / f"{file_name(name)}.csv", values_of(of, columns).to_csv(index=False))
    if processes.is_first():
        print(f"\n{text}", flush=True)
    log.info("written to %s: %s.md, .tex and .csv", folder, name)


def values_of(of: Comparison, columns: Sequence[Column]) -> pd.DataFrame:
    """Return all values of a table, a row for each line."""
    named = [("Row", [line.row.name for line in of.lines]), ("Group", [line.row.group for line in of.lines])]
    cells = [*named, *((column.heading, column.values) for column in columns)]
    table = pd.DataFrame(zip(*(values for _, values in cells), strict=True), dtype=object)
    return table.set_axis([heading for heading, _ in cells], axis=1)


def page_of(of: Comparison, columns: Sequence[Column]) -> pd.DataFrame:
    """Return a table as it is shown: texts, with a row for each group of lines."""
    shown = [column for column in columns if column.on_page]
    texts, cells = zip(*(column.texts() for column in shown), strict=True), []
    for group, lines in groupby(of.lines, lambda line: line.row.group):
        cells += [[f"**{group}**", *[""] * (len(shown) - 1)]] if group else []
        cells += [next(texts) for _ in lines]
    return pd.DataFrame(cells, columns=[column.heading for column in shown])


def markdown(page: pd.DataFrame) -> str:
    """Return a table of texts as Markdown: the first column on the left, numbers on the right."""
    align = ["left", *["right"] * (page.shape[1] - 1)]
    return str(page.to_markdown(index=False, disable_numparse=True, colalign=align))


def latex(page: pd.DataFrame) -> str:
    """Return a table of texts as LaTeX; it needs the package booktabs."""
    text = page.to_latex(index=False, escape=True, column_format=f"l{'r' * (page.shape[1] - 1)}")
    text = re.sub(r"\*\*(.*?)\*\*", r"\\textit{\1}", text)
    return text.replace("†", r"$^{\dagger}$").replace("Δ", r"$\Delta$").replace("±", r"$\pm$")


def notes_of(of: Comparison, run: DictConfig, columns: Sequence[Column]) -> str:
    """Return what one must know to read a table: what is the same for all rows, what is tested, what columns are."""
    data, runs = run.data, [seed for line in of.lines for seed in line.seeds]
    seeds = sorted({seed["config"]["seed"] for seed in runs})
    splits = dict.fromkeys(seed["config"]["data"]["splits"]["test"] for seed in runs)
    answerable = ", the relevant one among them" if data.queries.get("found", False) else ""
    about = (
        f"{data.label}, split {', '.join(splits)}: {len(next(iter(runs[0]['measures'].values())))} queries, their "
        f"first {data.depth} candidates at most{answerable}, the same for all rows. Backbone {run.backbone}, "
        f"{'mean ± standard deviation of the seeds' if len(seeds) > 1 else 'seed'} {', '.join(map(str, seeds))}."
    )
    daggers = (
        f"†: differs from {of.label(of.to)} in {' or '.join(of.tested)} (paired t-test over queries, seeds "
        f"averaged, two-sided, Holm over the rows, p < {of.config.report.significance.level})."
        if of.to in of.by_name
        else f"Nothing is tested: the table has no row {of.to} (report.significance.to)."
    )
    return " ".join(dict.fromkeys([about, daggers, *(column.note for column in columns if column.note)]))
