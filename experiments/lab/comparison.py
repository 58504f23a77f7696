"""The lines of a table, and every line tested against one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean, stdev
from typing import Any

from omegaconf import DictConfig

from lab.plan import Row
from socialgraph.ranking import TTest, holm, paired_t_test

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
        """Return the runs of a kind: "alone", all that are there; "untrained"; "trained", those that learned."""
        if kind.startswith("untrained"):
            return self.untrained
        return [] if kind.startswith("trained") and self.seeds == self.untrained else self.seeds

    def measures(self, kind: str = "alone") -> dict[str, Values]:
        """Return measure -> query -> mean over the seeds; nothing where there is no such run.

        Args:
            kind: of the runs; with "_mixed" behind it their mixture with the first stage.
        """
        runs = self.runs(kind)
        return per_query([mixed(run) if kind.endswith("mixed") else run["measures"] for run in runs])

    def mean(self, measure: str, kind: str = "alone") -> float | None:
        """Return a measure's mean over queries and seeds; None where there is no such run."""
        values = self.measures(kind).get(measure)
        return fmean(values.values()) if values else None

    def spread(self, measure: str) -> float | None:
        """Return the standard deviation of the seeds' means."""
        means = [fmean(run["measures"][measure].values()) for run in self.seeds]
        return stdev(means) if len(means) > 1 else None

    def cost(self, name: str, unit: float = 1) -> float | None:
        """Return a cost of the first seed in a unit; None if it is not known.

        Later seeds may find costly weights of the same texts. So does a training after an untrained run, and then the
        time of the latter counts.
        """
        runs = self.untrained if self.untrained and name == "seconds_per_document" else self.seeds
        value = runs[0].get(name)
        return None if value is None else value / unit

    @property
    def config(self) -> dict[str, Any]:
        """What the first seed depends on."""
        return self.seeds[0]["config"]

    @property
    def is_model(self) -> bool:
        """Whether a model ranked, and not a first stage."""
        return self.seeds[0]["parameters"] is not None


def per_query(seeds: Sequence[dict[str, Values] | None]) -> dict[str, Values]:
    """Return measure -> query -> mean over the seeds; nothing if a seed has nothing."""
    if not seeds or None in seeds:
        return {}
    known = [seed for seed in seeds if seed is not None]
    return {
        name: {query: fmean(seed[name][query] for seed in known) for query in values}
        for name, values in known[0].items()
    }


def mixed(run: dict[str, Any]) -> dict[str, Values] | None:
    """Return the measures of a run's mixture with the first stage; None where it has none, as a first stage itself."""
    if not run.get("interpolated"):
        return None
    return run["interpolated"]["measures"][run["config"]["data"]["splits"]["test"]]


def tested(first: Values, second: Values, clusters: Mapping[str, str] | None) -> TTest | None:
    """Return a paired t-test over queries; None for fewer than two, or two clusters where they have some."""
    if len({clusters[query] if clusters else query for query in first}) < 2:
        return None
    return paired_t_test(first, second, clusters)


class Comparison:
    """Lines, with every line tested against one.

    Args:
        config: of a command: ``measures`` and ``report.significance``.
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

    def gain(self, line: Line, measure: str | None = None, kind: str = "alone") -> TTest | None:
        """Return a line's difference from the reference in a measure, the first one for None.

        None for the reference, where there is no such run, or where nothing can be tested.
        """
        name, mine, theirs = measure or self.measures[0], line.measures(kind), self.by_name.get(self.to)
        if theirs is None or theirs is line or not mine:
            return None
        return tested(mine[name], theirs.measures()[name], self.clusters)

    def label(self, name: str) -> str:
        """Return what a row is called."""
        return self.by_name[name].label if name in self.by_name else name

    def p_value(self, line: Line, measure: str, kind: str = "alone") -> float | None:
        """Return how likely a line's difference from the reference is by chance.

        A paired t-test over queries, Holm over the lines. None for the reference, or where nothing can be tested.
        """
        return self._p_values(measure, kind).get(line.row.name)

    def _adjusted(self, measure: str, kind: str) -> dict[str, float]:
        gains = {name: self.gain(line, measure, kind) for name, line in self.by_name.items()}
        p_values = {name: gain.p_value for name, gain in gains.items() if gain is not None}
        return dict(zip(p_values, holm(list(p_values.values())), strict=True))

    def is_marked(self, line: Line, measure: str, kind: str = "alone") -> bool:
        """Return whether a line differs from the reference by more than chance, in a measure that is tested."""
        test = self.config.report.significance
        p_value = self.p_value(line, measure, kind) if measure in test.measures else None
        return p_value is not None and p_value < test.level
