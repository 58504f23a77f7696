"""What a level says of a partition, stored as every run is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from omegaconf import DictConfig

from lab.task import Task
from socialgraph.data import GraphBuilder
from socialgraph.data.collection import Run as Ranking
from socialgraph.ranking.rerank import batches

#: a query's id and text, and a document's id
Pair = tuple[str, str, str]


@dataclass
class Measured:
    """The outcome of a run that trains nothing."""

    name: str  # of the system
    measures: dict[str, dict[str, float]]  # measure -> question -> value
    seconds: float
    documents: int
    clusters: dict[str, str] | None = None  # question -> what makes it dependent on others
    ranked: Ranking = field(default_factory=dict)

    def ranking(self, split: str) -> Ranking:
        """Return the candidates in its order; a level that ranks nothing has none."""
        return self.ranked

    def value(self, split: str, task: Task, config: DictConfig) -> dict[str, Any]:
        """Return what is stored, but for what it depends on."""
        return {
            "name": self.name,
            "collection": task.collection.name,
            "measures": self.measures,
            "clusters": self.clusters,
            "interpolated": None,
            "parameters": None,
            "training_seconds": None,
            "seconds_per_document": self.seconds / max(1, self.documents),
            "seconds": self.seconds,
        }

    def summary(self) -> str:
        """Return it in a line."""
        means = (f"{name} {fmean(values.values()):.3f}" for name, values in self.measures.items())
        return f"{', '.join(means)}; {self.seconds:.0f} s"


def in_batches(builder: GraphBuilder, pairs: Sequence[Pair], token_budget: int) -> Iterator[list[Pair]]:
    """Yield all pairs, the longest documents first, as many at once as the budget of word pieces allows."""
    documents = [document for _, _, document in pairs]
    length = dict(zip(documents, builder.tokens.lengths(documents, builder.documents), strict=True))
    ordered = sorted(pairs, key=lambda pair: -length[pair[2]])
    for part in batches([length[document] for _, _, document in ordered], token_budget):
        yield ordered[part.start : part.stop]
