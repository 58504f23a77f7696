"""What became of a run, and what is stored of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Self

from lab.task import Task
from lab.unfinished import Training
from socialgraph import ranking
from socialgraph.data import Split
from socialgraph.data.collection import Run as Ranking


@dataclass
class Ranked:
    """A split's candidates in a system's order."""

    ranking: Ranking
    seconds: float | None = None  # for each document
    measures: dict[str, dict[str, float]] = field(default_factory=dict)  # measure -> query -> value

    @classmethod
    def of(cls, split: Split, ranked: Ranking, measures: Sequence[str], seconds: float | None = None) -> Self:
        """Return a split's ranking with its measures; a split without queries, as dev may be, has none."""
        found = ranking.evaluate(split.qrels, ranked, measures).per_query if split.queries else {}
        return cls(ranked, seconds, found)


@dataclass
class Outcome:
    """What became of a run."""

    name: str  # of the system
    tests: dict[str, Ranked]
    dev: Ranked | None = None  # None where nothing is chosen on it
    training: Training | None = None
    parameters: int | None = None
    memory: int | None = None  # bytes, at the worst moment of training and re-ranking
    seconds: float = 0.0  # in all
    also: dict[str, Any] = field(default_factory=dict)  # what else is stored

    def value(self, split: str, task: Task) -> dict[str, Any]:
        """Return what is stored of a test split, but for what it depends on."""
        test, training = self.tests[split], self.training or Training([], 0.0)
        mixes = self.dev is not None and self.parameters is not None  # a first stage is not mixed with itself
        return {
            "name": self.name,
            "collection": task.collection.name,
            "measures": test.measures,
            "dev_measures": means(self.dev.measures) if self.dev else {},
            "interpolated": self.interpolated(self.dev, split, task) if mixes else None,
            "seconds_per_document": test.seconds,
            "training_seconds": training.seconds if self.training else None,
            "parameters": self.parameters,
            "peak_memory_bytes": self.memory,
            "training": training.log,
            "seconds": self.seconds,
            **self.also,
        }

    def interpolated(self, dev: Ranked, split: str, task: Task) -> dict[str, Any]:
        """Return the mixture with the first stage: its weight and its measures.

        The weight is the one that is best on dev by the first measure, or a half where no query of dev is ranked.
        """
        measures, weight = list(self.tests[split].measures), 0.5
        if task.dev.queries:
            weight = ranking.choose_weight(task.dev.candidates or {}, dev.ranking, task.dev.qrels, measures[0])
        mixed = ranking.interpolate(task.tests[split].candidates or {}, self.tests[split].ranking, weight)
        return {
            "weight": weight,
            "measures": {split: ranking.evaluate(task.tests[split].qrels, mixed, measures).per_query},
        }

    def summary(self) -> str:
        """Return what it reached on the first test split, in a line."""
        test = next(iter(self.tests.values()))
        reached = ", ".join(f"{name} {mean:.3f}" for name, mean in means(test.measures).items())
        return f"{reached}; {self.seconds:.0f} s"


def means(measures: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return measure -> mean over the queries."""
    return {name: fmean(values.values()) for name, values in measures.items()}
