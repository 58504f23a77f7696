"""The columns that a configuration may declare (``report.columns``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import scipy.stats

from lab.comparison import Comparison, Line, tested
from socialgraph.ranking import TTest
from socialgraph.recipes.stages import steps_taken

#: chance with which a difference that is there should be seen
POWER = 0.8
#: a difference that one cares about
CARED = 0.05


@dataclass(frozen=True)
class Column:
    """A column: what stands in it, and how."""

    heading: str
    value: Callable[[Line], Any]  # in the CSV; None: not there, or not known
    form: str | Callable[[Any], str] = ""  # of a value in Markdown and LaTeX
    mark: Callable[[Line], bool] = lambda line: False
    where: str = "both"  # "page" and "csv": only there

    def text(self, line: Line, dagger: str) -> str:
        """Return what stands on a page."""
        value = self.value(line)
        if value is None:
            return "-"
        shown = self.form(value) if callable(self.form) else format(value, self.form)
        return shown.replace("|", "/") + dagger * self.mark(line)  # what a user typed does not end a cell


def measure_columns(of: Comparison, name: str) -> list[Column]:
    """Return a measure with its deviation over seeds; the CSV has deviation and p value in columns of their own."""

    def shown(line: Line) -> str:
        spread = line.spread(name)
        return f"{line.mean(name):.4f}" + ("" if spread is None else f" ± {spread:.4f}")

    return [
        Column(name, shown, mark=lambda line: of.is_marked(line, name), where="page"),
        Column(name, lambda line: line.mean(name), where="csv"),
        Column(f"sd of {name}", lambda line: line.spread(name), where="csv"),
        Column(f"p of {name}", lambda line: of.p_value(line, name), where="csv"),
    ]


def kind_columns(of: Comparison, kind: str, heading: str) -> list[Column]:
    """Return the first measure of a kind of run, see :meth:`Line.measures`; nothing while there are none."""
    first = of.measures[0]
    if all(line.mean(first, kind) is None for line in of.lines):
        return []
    return [Column(heading, lambda line: line.mean(first, kind), ".4f", lambda line: of.is_marked(line, first, kind))]


def mixed_columns(of: Comparison, kind: str) -> list[Column]:
    """Return the first measure of the mixtures of a kind of run with the first stage, and weights chosen on dev."""
    columns = kind_columns(of, f"{kind}_mixed", "+ BM25")
    if not columns or of.config.data.queries.dev == 0:  # half and half
        return columns
    return [*columns, Column("weight", lambda line: weights(line.runs(kind)))]


def difference_columns(of: Comparison) -> list[Column]:
    """Return the differences from other rows, in % of theirs."""

    def difference(line: Line, measure: str, to: str) -> float | None:
        mine, theirs = (one and one.mean(measure) for one in (line, of.by_name.get(to)))
        return 100 * (mine - theirs) / theirs if mine is not None and theirs else None

    wanted = [(one.measure, one.to) for one in of.config.report.differences or ()]
    return [
        Column(
            f"Δ {measure} vs {of.label(to)} %",
            lambda line, measure=measure, to=to: difference(line, measure, to), "+.2f",
        )
        for measure, to in wanted or [(of.measures[0], of.to)]
    ]  # fmt: skip


def gain_column(of: Comparison, heading: str, value: Callable[[TTest], Any], **options: Any) -> Column:
    """Return a column about the first measure's difference from the reference: a value of its test, if there is one."""
    return Column(heading, lambda line: None if (test := of.gain(line)) is None else value(test), **options)


def interval_columns(of: Comparison) -> list[Column]:
    """Return the interval of the first measure's difference from the reference."""
    return [
        gain_column(of, "95 % interval of Δ", lambda test: test.interval, form=from_to, where="page"),
        gain_column(of, "Low of Δ", lambda test: test.interval[0], where="csv"),
        gain_column(of, "High of Δ", lambda test: test.interval[1], where="csv"),
    ]


def gain_columns(of: Comparison) -> list[Column]:
    """Return the first measure's difference from the reference, in its own units, with its interval."""
    shown = "{0.difference:+.3f} ({0.interval[0]:+.3f} to {0.interval[1]:+.3f})".format
    page = Column(f"Δ {of.measures[0]} (95 %)", of.gain, shown, where="page")
    difference = gain_column(of, f"Δ {of.measures[0]}", lambda test: test.difference, where="csv")
    return [page, difference, *interval_columns(of)[1:]]


def power_columns(of: Comparison) -> list[Column]:
    """Return the smallest difference of the first measure that would be seen, and how many queries 0.05 would take."""

    def least(test: TTest) -> float:
        # half an interval away it is told from 0; another 0.84 standard errors make it seen in four cases of five
        return (test.interval[1] - test.interval[0]) / 2 + scipy.stats.norm.ppf(POWER) * test.error

    def needed(test: TTest) -> int | None:
        smallest = least(test)
        return math.ceil(test.queries * (smallest / CARED) ** 2) if smallest > CARED else None

    return [gain_column(of, "Could show", least, form=".3f"), gain_column(of, f"Queries for {CARED}", needed)]


def own_interval_columns(of: Comparison) -> list[Column]:
    """Return the first measure's interval around the line's own mean."""

    def interval(line: Line) -> tuple[float, float] | None:
        values = line.measures()[of.measures[0]]
        test = tested(values, dict.fromkeys(values, 0.0), of.clusters)
        return test and test.interval

    return [Column(f"95 % of {of.measures[0]}", interval, from_to)]


def statistics_columns(of: Comparison) -> list[Column]:
    """Return what circles look like: medians over the described documents of all seeds; the CSV has all of them."""

    def middle(line: Line, name: str) -> float | None:
        values = [value for run in line.seeds for value in run.get("statistics", {}).get(name, ()) if value is not None]
        return median(values) if values else None

    names = dict.fromkeys(name for line in of.lines for run in line.seeds for name in run.get("statistics", {}))
    shown = {name: heading for name, heading in of.config.get("statistics", {}).items() if names}
    return [
        Column(heading, lambda line, name=name: middle(line, name), three_digits, where="page")
        for name, heading in shown.items()
    ] + [Column(f"median {name}", lambda line, name=name: middle(line, name), where="csv") for name in names]


def budget_columns(of: Comparison) -> list[Column]:
    """Return the training steps, and the word pieces of documents that they read at most; nothing without training."""

    def steps(line: Line) -> int | None:
        return steps_taken(line.seeds[0]["training"]) or None

    def pieces(line: Line) -> float | None:
        trainer, length = line.config["trainer"], line.config["recipe"]["document_length"]
        epochs = max((entry.get("epoch", 0.0) for entry in line.seeds[0]["training"]), default=0.0)
        return epochs * trainer["groups"] * (1 + trainer["negatives"]) * length / 1e6 or None

    return [Column("Steps", steps, where="csv"), Column("Training pieces (M)", pieces, ".2f")]


def weights(runs: Sequence[dict[str, Any]]) -> str | None:
    """Return the weights of the first stage in the mixtures."""
    return ", ".join(f"{run['interpolated']['weight']:g}" for run in runs if run.get("interpolated")) or None


def from_to(bounds: tuple[float, float]) -> str:
    """Return an interval."""
    return "{:+.3f} to {:+.3f}".format(*bounds)


def three_digits(value: float) -> str:
    """Return a statistic with three digits."""
    return format(value, ".0f" if abs(value) >= 100 else ".3g")


def p_text(value: float) -> str:
    """Return three digits of a p value; none of them is 0 where it is not."""
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def beside(of: Comparison, name: str, form: str = "") -> list[Column]:
    """Return the columns of what stands beside rows under a name, such as the figures that a paper prints."""
    keys = dict.fromkeys(key for line in of.lines for key in line.row.beside.get(name, {}))
    return [
        Column(key if name != "paper" else f"paper: {key}", lambda line, key=key: line.row.beside[name].get(key), form)
        for key in keys
    ]


COLUMNS: dict[str, Callable[[Comparison], list[Column]]] = {
    "model": lambda of: [Column("Model", lambda line: line.label)],
    "options": lambda of: beside(of, "options"),
    "length": lambda of: [
        Column("Doc. length", lambda line: line.config["recipe"]["document_length"] if line.is_model else None)
    ],
    "window": lambda of: [Column("Window", lambda line: line.row.beside.get("window"))],
    "seeds": lambda of: [Column("Seeds", lambda line: len(line.seeds))],
    "measures": lambda of: [column for name in of.measures for column in measure_columns(of, name)],
    "differences": difference_columns,
    "interval": interval_columns,
    "gain": gain_columns,
    "own_interval": own_interval_columns,
    "power": power_columns,
    "p": lambda of: [
        Column(f"p of {name}", lambda line, name=name: of.p_value(line, name), p_text, where="page")
        for name in of.config.report.significance.measures
    ],
    "mixed": lambda of: kind_columns(of, "mixed", f"+ BM25: {of.measures[0]}"),
    "weight": lambda of: [Column("Weight of BM25", lambda line: weights(line.seeds))],
    "untrained": lambda of: kind_columns(of, "untrained", f"{of.measures[0]} untrained"),
    "untrained_mixed": lambda of: mixed_columns(of, "untrained"),
    "trained": lambda of: kind_columns(of, "trained", f"{of.measures[0]} trained"),
    "trained_mixed": lambda of: mixed_columns(of, "trained"),
    "statistics": statistics_columns,
    "budget": budget_columns,
    "parameters": lambda of: [Column("Parameters (M)", lambda line: line.cost("parameters", 1e6), ".1f")],
    "training": lambda of: [Column("Training (s)", lambda line: line.cost("training_seconds"), ".0f")],
    "seconds": lambda of: [Column("s / document", lambda line: line.cost("seconds_per_document"), ".4f")],
    "graph": lambda of: [Column("Graph (s)", lambda line: line.cost("graph_seconds_per_document"), ".4f")],
    "circles": lambda of: [Column("Circles (s)", lambda line: line.cost("graph_seconds_per_document"), ".4f")],
    "read": lambda of: [
        Column("Read anew", lambda line: line.cost("newly_read"), ".0f"),
        *(
            Column(f"{name} (s)", lambda line, name=name: line.cost(f"{name.lower()}_seconds"), where="csv")
            for name in ("Encoder", "Reader")
        ),
    ],
    "memory": lambda of: [Column("Memory (GB)", lambda line: line.cost("peak_memory_bytes", 1e9), ".2f")],
    "device": lambda of: [
        Column("Device", lambda line: line.seeds[0]["versions"].get("device") if line.is_model else None)
    ],
    "paper": lambda of: beside(of, "paper", ".4f"),
}

MIXED = (
    "+ BM25: the scores mixed with the candidates' own, each scaled to [0, 1], with the weight of theirs that is best "
    "on dev (a half where no query of dev is ranked)."
)
#: what one must know of a column
NOTES = {
    "interval": "95 % interval: of the difference, in the measure's own units, not adjusted for the number of rows.",
    "gain": "Δ: the difference, in the measure's own units, with its 95 % interval, not adjusted for the number "
    "of rows.",
    "power": "Could show: the smallest difference of the first measure that would be seen with a chance of "
    f"{POWER:.0%}, in one two-sided comparison at 5 %; and how many queries {CARED} would take, if more.",
    "mixed": MIXED,
    "untrained_mixed": MIXED,
    "statistics": "Circles: medians over test candidates, friend circles without passages, as "
    "socialgraph.inspect.describe() counts them.",
    "budget": "Training pieces: word pieces of documents that are read in training at most.",
    "seconds": "s / document: of re-ranking, in the first seed's run, whatever else the machine did.",
    "graph": "Graph: of building one, measured again on those candidates.",
    "circles": "Circles: seconds for a document's edges and circles, without what BERT reads for dynamic centrality, "
    "which is kept.",
    "read": "Read anew: sequences that no strategy before had, for the encoder and the reader each; others are kept.",
    "memory": "Memory: peak while the row was trained and ranked, of the GPU, or without one of the whole process.",
    "paper": "The columns of the paper are its own printed figures, on other data and with other models.",
}
