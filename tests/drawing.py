"""Documents and mixtures of patterns, their probabilities by the reference, and graphs that are drawn of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import reference
import torch
from graphs import document, random_document
from torch_geometric.data import Batch, Data

from socialgraph.edges import (
    Affinity,
    DynamicDistance,
    Pattern,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
    Uniform,
    layout,
)
from socialgraph.partition import Partition

MIXTURES: dict[str, list[Pattern]] = {
    "three": [StaticDistance(), StaticCentrality(), DynamicDistance()],
    "static distance": [StaticDistance()],
    "static centrality": [StaticCentrality()],
    "dynamic distance": [DynamicDistance()],
    "steep distance": [StaticDistance(p=2.0)],
    "steep, mixed": [StaticDistance(p=1.0), DynamicDistance(p=1.0)],
}
FORMULAS: dict[str, Callable[[Data, Pattern], np.ndarray]] = {
    "StaticDistance": lambda data, pattern: reference.static_distance(len(data.input_ids), pattern.p),
    "StaticCentrality": lambda data, _: reference.static_centrality(data.tfidf.tolist()),
    "DynamicDistance": lambda data, pattern: reference.dynamic_distance(
        data.input_ids.tolist(), data.query_ids.tolist(), pattern.p
    ),
}
ROOM = [0.98, 0.93, 0.7, 0.3, 0.05]  # sparsity; low ones clip many probabilities at 1

DOCUMENTS: dict[str, Data] = {
    "no token": document([], [7]),
    "one token": document([7], [7]),
    "two tokens": document([7, 8], [7], [1.0, 2.0]),
    "three tokens": document([7, 8, 9], [7], [1.0, 2.0, 3.0]),
    "no match": document(range(20, 45), [7], np.linspace(1, 3, 25).tolist()),
    "everything equal": document([9] * 25, [7]),
    "random, shorter": random_document(12, 7),
    "random, short": random_document(17, 1),
    "random": random_document(80, 2),
    "random, many matches": random_document(120, 3, vocabulary=5),
    "random, rare match": random_document(120, 4, vocabulary=200, query_length=3),
}


def matrices(which: str, name: str) -> list[np.ndarray]:
    return [FORMULAS[type(pattern).__name__](DOCUMENTS[which], pattern) for pattern in MIXTURES[name]]


@functools.cache
def mean_of(which: str, name: str) -> np.ndarray:
    return reference.mean(matrices(which, name))


@functools.cache
def probabilities_of(which: str, name: str, sparsity: float) -> np.ndarray:
    return reference.probabilities(mean_of(which, name), sparsity)


def reachable(which: str, name: str, sparsity: float) -> bool:
    """Whether enough pairs have P > 0 (or none has) for the density that is asked for."""
    mean = mean_of(which, name)
    length = len(mean)
    return not mean.any() or (mean > 1e-3).sum() > length * (length - 1) * (1 - sparsity)


def scaled(sampler: SocialEdges, graph: Data) -> list[np.ndarray]:
    """The sampler's own min(1, P / mu) of each document."""
    return [np.minimum(1.0, matrix.numpy()) for matrix in sampler.probabilities(graph).dense()]


def drawn(sampler: SocialEdges, data: Sequence[Data]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each document's adjacency matrix and weights, drawn as one batch; checks the form on the way."""
    batch = Batch.from_data_list(list(data))
    edge_index, edge_weight = sampler(batch)
    assert edge_index.dtype == torch.int64
    assert edge_weight.dtype == torch.float32
    assert edge_index.shape == (2, len(edge_weight))
    row, col = edge_index.numpy()
    size = int(batch.num_nodes)
    assert row.size == 0 or 0 <= min(row.min(), col.min()) <= max(row.max(), col.max()) < size
    assert (row != col).all(), "no loops"
    keys = row * max(1, size) + col
    assert (np.diff(keys) > 0).all(), "sorted by row, then column; no doubles"
    assert np.array_equal(np.sort(col * max(1, size) + row), keys), "both directions"
    owner = batch.batch.numpy()
    assert (owner[row] == owner[col]).all(), "friends live in one document"

    starts = np.cumsum([0, *(one.num_nodes for one in data)])
    out = []
    cuts = np.searchsorted(row, starts)
    for number, start in enumerate(starts[:-1]):
        shape, inside = (int(data[number].num_nodes),) * 2, slice(cuts[number], cuts[number + 1])
        adjacency, weight = np.zeros(shape, dtype=bool), np.zeros(shape)
        adjacency[row[inside] - start, col[inside] - start] = True
        weight[row[inside] - start, col[inside] - start] = edge_weight.numpy()[inside]
        assert np.array_equal(weight, weight.T), "the same weight in both directions"
        out.append((adjacency, weight))
    return out


def copies(data: Data, keys: Sequence[int]) -> list[Data]:
    """The same document under many coin keys."""
    out = []
    for key in keys:
        one = data.clone()
        one.draw_key = torch.tensor([key])
        out.append(one)
    return out


class Rule(Affinity):
    """Somebody's P(i, j), a function of node ids that knows nothing of closed forms."""

    def __init__(self, batch: torch.Tensor, ptr: torch.Tensor, rule: Callable[..., Any]) -> None:
        super().__init__(batch, ptr)
        self.rule = rule

    def pair(self, i: torch.Tensor, j: torch.Tensor) -> Any:
        return self.rule(i, j)


def near(i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    return 1 / (1 + (i - j).abs().double())


class OwnPattern(Pattern):
    """The static distance as a user would write it."""

    def forward(self, graph: Data) -> Affinity:
        return Rule(*layout.documents(graph), lambda i, j: 1 / (1 + (i - j).abs().double() / 9) ** 2)


#: mixtures whose circles are found: with and without a closed form, of equal weights, and of a few strong ones
PATTERNS: dict[str, Any] = {
    "three": MIXTURES["three"],
    "words": MIXTURES["static centrality"],
    "steep": MIXTURES["steep distance"],
    "uniform": [Uniform()],
    "without a closed form": {"own": OwnPattern(), "words": StaticCentrality()},
}


def documents(amount: int, seed: int, longest: int = 400) -> list[Data]:
    """Random documents, some of them empty or of one word only, some with equal weights everywhere."""
    rng = np.random.default_rng(seed)
    data = []
    for number in range(amount):
        length = int(rng.integers(0, 4) if number % 5 == 0 else rng.integers(0, longest + 1))
        key = int(rng.integers(0, 2**62))
        equal = number % 11 == 0
        data.append(document([9] * length, [7], draw_key=key) if equal else random_document(length, key, 40, 4, key))
    return data


def assert_same_circles(partition: Partition, sampler: SocialEdges, batch: Batch) -> int:
    """Compare circles of an undrawn graph with those of its edge list; return how many there are."""
    edge_index, edge_weight = sampler(batch)
    want = partition(edge_index, batch.batch, batch.num_graphs, edge_weight)
    for one, other in zip(partition.from_sampled(sampler.sampled(batch)), want, strict=True):
        assert torch.equal(one, other), (partition, sampler)
    return want[1].numel()
