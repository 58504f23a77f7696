"""A table of finished runs: a DataFrame with declared columns; Markdown, LaTeX and CSV.

``report.columns`` names the columns, of :data:`COLUMNS` or a function of one's own by its dotted name, which takes a
:class:`Comparison` and returns a list of :class:`Column`.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain, groupby
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pandas as pd
import scipy.stats
from omegaconf import DictConfig

from lab.results import write_text
from lab.rows import Row, Run, by_row
from socialgraph.data.files import file_name
from socialgraph.errors import OptionError
from socialgraph.ranking import TTest, holm, paired_t_test, processes
from socialgraph.recipes.classes import imported

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

    def runs(self, kind: str) -> list[dict[str, Any]]:
        """Return the runs of a kind: "all" that are there, "untrained", or "trained"."""
        if kind == "untrained":
            return self.untrained
        return [] if kind == "trained" and self.seeds == self.untrained else self.seeds

    def measures(self, kind: str = "all", mixed: bool = False) -> dict[str, Values]:
        """Return measure -> query -> mean over the seeds; nothing where there is no such run."""
        return per_query([mixture(run) if mixed else run["measures"] for run in self.runs(kind)])

    def mean(self, measure: str, kind: str = "all", mixed: bool = False) -> float | None:
        """Return a measure's mean over queries and seeds; None where there is no such run."""
        values = self.measures(kind, mixed).get(measure)
        return fmean(values.values()) if values else None

    def deviation(self, measure: str) -> float | None:
        """Return the standard deviation of the seeds' means."""
        means = [fmean(run["measures"][measure].values()) for run in self.seeds]
        return stdev(means) if len(means) > 1 else None

    def cost(self, name: str, unit: float = 1) -> float | None:
        """Return a cost of the first seed in a unit; None if it is not known.

        A training after an untrained run finds costly weights of the same texts, so the time of the latter counts.
        """
        runs = self.untrained if self.untrained and name == "seconds_per_document" else self.seeds
        value = runs[0].get(name)
        return None if value is None else value / unit

    @property
    def length(self) -> int | None:
        """Word pieces of a document that its model reads; None for a first stage."""
        return self.seeds[0]["config"]["recipe"]["document_length"] if self.seeds[0]["parameters"] is not None else None


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


def lines_of(runs: Iterable[Run], untrained: Iterable[Run] = ()) -> list[Line]:
    """Return the lines of the rows that are finished, in the order in which they are first named."""
    before = by_row(untrained)
    lines = [
        Line(row, [value for run in some if (value := run.result())],
             [value for run in before.get(row, []) if (value := run.result())])
        for row, some in by_row(runs).items()
    ]  # fmt: skip
    if left_out := [line.row.name for line in lines if not line.seeds]:
        log.info("not finished under this configuration, so not in the table: %s", ", ".join(left_out))
    return [line for line in lines if line.seeds]


class Comparison:
    """Lines, with every line tested against one.

    Args:
        config: ``measures`` and ``report`` of a command.
        lines: those that are finished.
        to: name of the row that the others are tested against; None: the first of ``report.significance.to`` there.
    """

    def __init__(self, config: DictConfig, lines: Sequence[Line], to: str | None = None) -> None:
        self.config, self.lines, self.measures = config, list(lines), list(config.measures)
        self.by_name = {line.row.name: line for line in lines}
        wanted = [to] if to else list(config.report.significance.to)
        self.to = next((name for name in wanted if name in self.by_name), wanted[0])
        self._p_values = cache(self._adjusted)

    @property
    def clusters(self) -> dict[str, str] | None:
        """Query -> what makes it dependent on others, where the runs say so."""
        return self.lines[0].seeds[0].get("clusters") if self.lines else None

    def gain(self, line: Line, measure: str | None = None, kind: str = "all", mixed: bool = False) -> TTest | None:
        """Return a line's difference from the reference in a measure, the first one for None.

        None for the reference, where there is no such run, or where nothing can be tested.
        """
        name, mine, theirs = measure or self.measures[0], line.measures(kind, mixed), self.by_name.get(self.to)
        if theirs is None or theirs is line or not mine:
            return None
        return tested(mine[name], theirs.measures()[name], self.clusters)

    def label(self, name: str) -> str:
        """Return what a row is called."""
        return self.by_name[name].label if name in self.by_name else name

    def p_value(self, line: Line, measure: str, kind: str = "all", mixed: bool = False) -> float | None:
        """Return how likely a line's difference from the reference is by chance: paired t-test, Holm over the lines."""
        return self._p_values(measure, kind, mixed).get(line.row.name)

    def _adjusted(self, measure: str, kind: str, mixed: bool) -> dict[str, float]:
        gains = {name: self.gain(line, measure, kind, mixed) for name, line in self.by_name.items()}
        p_values = {name: gain.p_value for name, gain in gains.items() if gain is not None}
        return dict(zip(p_values, holm(list(p_values.values())), strict=True))

    def is_marked(self, line: Line, measure: str, kind: str = "all", mixed: bool = False) -> bool:
        """Return whether a line differs from the reference by more than chance, in a measure that is tested."""
        test = self.config.report.significance
        p_value = self.p_value(line, measure, kind, mixed) if measure in test.measures else None
        return p_value is not None and p_value < test.level


# --- columns ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column: what stands in it, and how."""

    heading: str
    value: Callable[[Line], Any]  # in the CSV; None: not there, or not known
    form: str | Callable[[Line], str] = ""  # in Markdown and LaTeX
    is_marked: Callable[[Line], bool] = lambda line: False
    note: str = ""  # what one must know to read it
    on_page: bool = True  # False: in the CSV alone

    def text(self, line: Line) -> str:
        """Return what stands on a page."""
        value = self.value(line)
        if value is None:
            return "-"
        shown = self.form(line) if callable(self.form) else format(value, self.form)
        return shown.replace("|", "/") + " †" * self.is_marked(line)  # what a user typed does not end a cell


def measure_columns(of: Comparison) -> list[Column]:
    """Return each measure; the CSV also has its deviation over seeds and its p value."""

    def shown(line: Line, name: str) -> str:
        deviation = line.deviation(name)
        return f"{line.mean(name):.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")

    columns = []
    for name in of.measures:
        mean, deviation, p_value = (partial(one, measure=name) for one in (Line.mean, Line.deviation, of.p_value))
        columns += [
            Column(name, mean, partial(shown, name=name), partial(of.is_marked, measure=name)),
            Column(f"sd of {name}", deviation, on_page=False),
            Column(f"p of {name}", p_value, on_page=False),
        ]
    return columns


MIXED = (
    "+ BM25: the scores mixed with the candidates' own, each scaled to [0, 1], with the weight of theirs that is best "
    "on dev (a half where no query of dev is ranked)."
)


def kind_columns(of: Comparison, kind: str, mixed: bool = False) -> list[Column]:
    """Return the first measure of untrained or trained runs, alone or mixed; nothing while there are none.

    Where the weight of a mixture was chosen on dev, it stands beside it.
    """
    kept = {"measure": of.measures[0], "kind": kind, "mixed": mixed}
    if all(line.mean(**kept) is None for line in of.lines):
        return []
    heading = "+ BM25" if mixed else f"{of.measures[0]} {kind}"
    columns = [
        Column(heading, partial(Line.mean, **kept), ".4f", partial(of.is_marked, **kept), MIXED if mixed else "")
    ]
    if mixed and of.config.data.queries.dev != 0:
        columns.append(Column("weight", lambda line: weights(line.runs(kind))))
    return columns


def weights(runs: Sequence[dict[str, Any]]) -> str | None:
    """Return the weights of the first stage in the mixtures."""
    return ", ".join(f"{run['interpolated']['weight']:g}" for run in runs if run.get("interpolated")) or None


def difference_columns(of: Comparison) -> list[Column]:
    """Return the differences from other rows, in % of theirs."""

    def difference(line: Line, measure: str, to: str) -> float | None:
        mine, theirs = (one and one.mean(measure) for one in (line, of.by_name.get(to)))
        return 100 * (mine - theirs) / theirs if mine is not None and theirs else None

    wanted = [(one.measure, one.to) for one in of.config.report.differences] or [(of.measures[0], of.to)]
    return [
        Column(f"Δ {measure} vs {of.label(to)} %", partial(difference, measure=measure, to=to), "+.2f")
        for measure, to in wanted
    ]


def gain_columns(of: Comparison) -> list[Column]:
    """Return the first measure's difference from the reference, in its own units, with its interval."""

    def value(line: Line, read: Callable[[TTest], float]) -> float | None:
        test = of.gain(line)
        return None if test is None else read(test)

    def shown(line: Line) -> str:
        return "{0.difference:+.3f} ({0.interval[0]:+.3f} to {0.interval[1]:+.3f})".format(of.gain(line))

    note = "Δ: the difference, in the measure's own units, with its 95 % interval, not adjusted for the number of rows."
    name = f"Δ {of.measures[0]}"
    return [
        Column(f"{name} (95 %)", partial(value, read=lambda test: test.difference), shown, note=note),
        Column(f"Low of {name}", partial(value, read=lambda test: test.interval[0]), on_page=False),
        Column(f"High of {name}", partial(value, read=lambda test: test.interval[1]), on_page=False),
    ]


def power_columns(of: Comparison) -> list[Column]:
    """Return the minimum detectable difference of the first measure, and how many queries 0.05 would take."""

    def detectable(line: Line) -> float | None:
        # half an interval away it is told from 0; another 0.84 standard errors make it seen in four cases of five
        test = of.gain(line)
        return test and (test.interval[1] - test.interval[0]) / 2 + float(scipy.stats.norm.ppf(POWER)) * test.error

    def needed(line: Line) -> int | None:
        test, smallest = of.gain(line), detectable(line)
        return math.ceil(test.queries * (smallest / WANTED) ** 2) if test and smallest and smallest > WANTED else None

    note = (
        f"Minimum detectable difference: of the first measure, with a chance of {POWER:.0%}, in one two-sided "
        f"comparison at 5 %; and how many queries {WANTED} would take, if more."
    )
    return [
        Column("Minimum detectable difference", detectable, ".3f", note=note),
        Column(f"Queries for {WANTED}", needed),
    ]


def own_interval_columns(of: Comparison) -> list[Column]:
    """Return the first measure's interval around the line's own mean."""

    def interval(line: Line) -> str | None:
        values = line.measures()[of.measures[0]]
        test = tested(values, dict.fromkeys(values, 0.0), of.clusters)
        return test and "{:+.3f} to {:+.3f}".format(*test.interval)

    return [Column(f"95 % of {of.measures[0]}", interval)]


def p_columns(of: Comparison) -> list[Column]:
    """Return the p values of the measures that are tested; none of them is 0 where it is not."""

    def shown(line: Line, measure: str) -> str:
        p = of.p_value(line, measure) or 0.0
        return "<0.001" if p < 0.0005 else f"{p:.3f}"

    names = of.config.report.significance.measures
    return [Column(f"p of {name}", partial(of.p_value, measure=name), partial(shown, measure=name)) for name in names]


def beside(of: Comparison, name: str, form: str = "", note: str = "", before: str = "") -> list[Column]:
    """Return the columns of what stands beside rows under a name, such as the figures that a paper prints."""
    keys = dict.fromkeys(key for line in of.lines for key in line.row.beside.get(name, {}))
    return [
        Column(before + key, lambda line, k=key: line.row.beside.get(name, {}).get(k), form, note=note) for key in keys
    ]


def cost(heading: str, name: str, form: str, note: str = "", unit: float = 1) -> Callable[[Comparison], list[Column]]:
    """Return what makes the column of a cost."""
    return lambda of: [Column(heading, lambda line: line.cost(name, unit), form, note=note)]


PRINTED = "The columns of the paper are its own printed figures, on other data and with other models."

COLUMNS: dict[str, Callable[[Comparison], list[Column]]] = {
    "model": lambda of: [Column("Model", lambda line: line.label)],
    "options": lambda of: beside(of, "options"),
    "length": lambda of: [Column("Doc. length", lambda line: line.length)],
    "window": lambda of: [Column("Window", lambda line: line.row.beside.get("window"))],
    "measures": measure_columns,
    "differences": difference_columns,
    "gain": gain_columns,
    "own_interval": own_interval_columns,
    "power": power_columns,
    "p": p_columns,
    "untrained": lambda of: kind_columns(of, "untrained"),
    "untrained_mixed": lambda of: kind_columns(of, "untrained", mixed=True),
    "trained": lambda of: kind_columns(of, "trained"),
    "trained_mixed": lambda of: kind_columns(of, "trained", mixed=True),
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
    "paper": lambda of: beside(of, "paper", ".4f", PRINTED, before="paper: "),
}  # fmt: skip


def check_columns(config: DictConfig) -> None:
    """Refuse a column that does not exist, or is of a measure that is not measured.

    Raises:
        OptionError: there is one.
    """
    report, measures = config.report, list(config.measures)
    for name in report.columns:
        if "." in name:
            imported(name, option="report.columns=")
        elif name not in COLUMNS:
            raise OptionError(f"report.columns: there is no column {name!r}; there are: {', '.join(COLUMNS)}")
    compared = [one.measure for one in report.differences] if "differences" in report.columns else []
    for name in [
        *compared,
        *([] if set(report.significance.measures) & set(measures) else report.significance.measures),
    ]:
        if name not in measures:
            raise OptionError(f"report compares {name}, and what is measured is {', '.join(measures)} (measures=[...])")


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
    named = [Column("Row", lambda line: line.row.name), Column("Group", lambda line: line.row.group), *columns]
    cells = [[column.value(line) for column in named] for line in of.lines]
    return pd.DataFrame(cells, columns=[column.heading for column in named], dtype=object)


def page_of(of: Comparison, columns: Sequence[Column]) -> pd.DataFrame:
    """Return a table as it is shown: texts, with a row for each group of lines."""
    shown = [column for column in columns if column.on_page]
    cells = []
    for group, lines in groupby(of.lines, lambda line: line.row.group):
        cells += [[f"**{group}**", *[""] * (len(shown) - 1)]] if group else []
        cells += [[column.text(line) for column in shown] for line in lines]
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
    data, runs = run.data, list(chain.from_iterable(line.seeds for line in of.lines))
    seeds = sorted({seed["config"]["seed"] for seed in runs})
    splits = dict.fromkeys(seed["config"]["data"]["splits"]["test"] for seed in runs)
    answerable = ", the relevant one among them" if data.queries.get("found", False) else ""
    about = (
        f"{data.label}, split {', '.join(splits)}: {len(next(iter(of.lines[0].measures().values())))} queries, their "
        f"first {data.depth} candidates at most{answerable}, the same for all rows. Backbone {run.backbone}, "
        f"{'mean ± standard deviation of the seeds' if len(seeds) > 1 else 'seed'} {', '.join(map(str, seeds))}."
    )
    test = of.config.report.significance
    daggers = (
        f"†: differs from {of.label(of.to)} in {' or '.join(test.measures)} (paired t-test over queries, seeds "
        f"averaged, two-sided, Holm over the rows, p < {test.level})."
        if of.to in of.by_name
        else f"Nothing is tested: the table has no row {of.to} (report.significance.to)."
    )
    return " ".join(dict.fromkeys([about, daggers, *(column.note for column in columns if column.note)]))
