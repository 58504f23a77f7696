"""SocialEdges: probabilities against the reference, and coins that behave like coins.

All seeds are fixed, so a bound of z standard errors either always holds or never. The bounds are wide: with
other seeds a right sampler would break one of them about once in a hundred times.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import reference
import torch
from graphs import document, random_document
from torch_geometric.data import Batch, Data

from socialgraph.edges import (
    Affinity,
    DynamicDistance,
    LowRank,
    Pattern,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
)
from socialgraph.errors import OptionError

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")),
]

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
        one.coin_key = torch.tensor([key])
        out.append(one)
    return out


# --- the reference itself -------------------------------------------------------------------------


def test_reference_scale_by_hand() -> None:
    # The ordered pairs have P 1, 1, 0.5, 0.5, 0.1, 0.1. Of 3 * 2 = 6 pairs 4 are wanted:
    # the first two are clipped at 1, so (2 * 0.5 + 2 * 0.1) / mu = 2.
    probability = np.array([[0, 1, 0.5], [1, 0, 0.1], [0.5, 0.1, 0]])
    assert reference.scale(probability, 1 / 3) == pytest.approx(0.6)
    # 3 are wanted: mu = 3.2 / 3 clips nothing.
    assert reference.scale(probability, 0.5) == pytest.approx(3.2 / 3)
    assert reference.scale(probability, 0.9) == pytest.approx(3.2 / 0.6)
    assert reference.probabilities(np.zeros((3, 3)), 0.9) == pytest.approx(0.1 * (1 - np.eye(3)))


# --- probabilities --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MIXTURES)
def test_what_is_clipped_in_closed_form_is_what_a_walk_over_all_pairs_finds(name: str) -> None:
    affinity = SocialEdges(MIXTURES[name]).probabilities(Batch.from_data_list(list(DOCUMENTS.values())))
    assert isinstance(affinity, LowRank)
    some = 0
    for factor in (0.5, 1.0, 2.0, 5.0, 30.0, 1e4):
        factors = torch.full((len(DOCUMENTS),), factor, dtype=torch.float64)
        (count, rest), (want, plain) = affinity.clipped(factors), Affinity.clipped(affinity, factors)
        assert torch.equal(count, want)
        assert torch.allclose(rest, plain, atol=1e-3)  # the walk rounds each of up to 7,140 pairs to 2^-24
        some += int(want.sum())
    assert some > 1000


def test_few_pairs_of_a_long_document_are_asked_whether_they_are_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    affinity = SocialEdges(MIXTURES["three"]).probabilities(random_document(6000, 5, vocabulary=3000))
    assert isinstance(affinity, LowRank)
    asked, pair = [0], LowRank.pair
    monkeypatch.setattr(LowRank, "pair", lambda self, i, j: asked.append((i + j).numel()) or pair(self, i, j))
    factor = torch.tensor([1.02], dtype=torch.float64) / max(p.max() for p in affinity.dense())
    asked.clear()
    monkeypatch.delattr(LowRank, "block")  # what walks over all pairs
    count, _ = affinity.clipped(factor)
    assert 0 < int(count) < 100
    assert 0 < sum(asked) < 20 * 6000


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("sparsity", ROOM)
def test_edge_weight_is_the_probability(name: str, sparsity: float) -> None:
    sampler = SocialEdges(MIXTURES[name], sparsity=sparsity)
    data = list(DOCUMENTS.values())
    compared = 0
    for which, (adjacency, weight) in zip(DOCUMENTS, drawn(sampler, data), strict=True):
        if not reachable(which, name, sparsity):
            continue
        want = probabilities_of(which, name, sparsity)
        error = np.abs(weight - want)[adjacency].max(initial=0.0)
        assert error < 1e-4, which
        compared += adjacency.sum()
    assert compared > 100


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("sparsity", ROOM)
def test_expected_density_is_the_target(name: str, sparsity: float) -> None:
    sampler = SocialEdges(MIXTURES[name], sparsity=sparsity)
    data = list(DOCUMENTS.values())
    clipped = 0
    for which, found in zip(DOCUMENTS, scaled(sampler, Batch.from_data_list(data)), strict=True):
        if len(found) < 2 or not reachable(which, name, sparsity):
            continue
        length = len(found)
        clipped += (found == 1).sum()
        assert found.sum() == pytest.approx(length * (length - 1) * (1 - sparsity), rel=1e-4), which
        assert np.abs(found - probabilities_of(which, name, sparsity)).max() < 1e-4, which
    if sparsity <= 0.3:
        assert clipped > 0, "this case is meant to clip"


def test_a_long_steep_document() -> None:
    # Far steeper than the density asked for: a broad band is clipped, and the rest is scaled up by much.
    (found,) = scaled(SocialEdges([StaticDistance(p=2.0)], sparsity=0.7), document([5] * 500))
    want = reference.probabilities(reference.static_distance(500, p=2.0), 0.7)
    assert (want == 1).sum() > 10_000
    assert found.sum() == pytest.approx(500 * 499 * 0.3, rel=1e-4)
    assert np.abs(found - want).max() < 1e-4


def test_weights_of_the_patterns() -> None:
    data = DOCUMENTS["random"]
    patterns = MIXTURES["three"]
    lambdas = {"static_distance": 0.6, "static_centrality": 0.1, "dynamic_distance": 2.3}
    (found,) = scaled(SocialEdges(patterns, weights=lambdas), data)
    want = reference.probabilities(reference.mean(matrices("random", "three"), list(lambdas.values())), 0.93)
    assert found == pytest.approx(want, abs=1e-4)
    # twice the weights, the same mixture; and a weight of 0 leaves a pattern out
    (same,) = scaled(SocialEdges(patterns, weights={name: 2 * value for name, value in lambdas.items()}), data)
    assert found == pytest.approx(same, abs=1e-5)
    (two,) = scaled(SocialEdges(patterns, weights={"static_centrality": 0.0}), data)
    assert two == pytest.approx(scaled(SocialEdges([patterns[0], patterns[2]]), data)[0], abs=1e-5)


class OwnAffinity(Affinity):
    """The static distance as a user would write it who knows nothing of closed forms."""

    def pair(self, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        return 1 / (1 + (i - j).abs().double() / 9) ** 2


class OwnPattern(Pattern):
    def forward(self, graph: Data) -> Affinity:
        if isinstance(graph, Batch):
            return OwnAffinity(graph.batch, graph.ptr)
        size = int(graph.num_nodes)
        return OwnAffinity(torch.zeros(size, dtype=torch.int64), torch.tensor([0, size]))


@pytest.mark.parametrize(
    "patterns",
    [
        {"own": OwnPattern()},
        {"own": OwnPattern(), "words": StaticCentrality()},
        {"near": StaticDistance(p=9.0), "words": StaticCentrality()},
        {"near": StaticDistance(p=9.0), "far": StaticDistance(p=200.0)},
        {"own": OwnPattern(), "far": StaticDistance(p=200.0), "words": StaticCentrality()},
    ],
    ids=" + ".join,
)
@pytest.mark.parametrize("sparsity", [0.93, 0.3])
def test_patterns_without_a_closed_form(patterns: dict[str, Pattern], sparsity: float) -> None:
    laws = {"own": 9.0, "near": 9.0, "far": 200.0}
    sampler = SocialEdges(patterns, sparsity=sparsity)
    data = [one for one in DOCUMENTS.values() if one.num_nodes > 10]
    batch = Batch.from_data_list(data)
    graphs = drawn(sampler, data)
    for one, found, (adjacency, weight) in zip(data, scaled(sampler, batch), graphs, strict=True):
        mean = reference.mean(
            [
                reference.static_distance(int(one.num_nodes), laws[name])
                if name in laws
                else reference.static_centrality(one.tfidf.tolist())
                for name in patterns
            ]
        )
        want = reference.probabilities(mean, sparsity)
        assert np.abs(found - want).max() < 1e-4
        assert np.abs(weight - want)[adjacency].max() < 1e-4
    alone = [edges_of(sampler, one)[0].size(1) for one in data]
    assert alone == [adjacency.sum() for adjacency, _ in graphs]


def test_where_all_patterns_abstain_everybody_is_equal() -> None:
    sampler = SocialEdges([StaticCentrality(), DynamicDistance()], sparsity=0.8)
    data = [document([9] * 30, [7]), random_document(30, 1), document([9, 9], [7]), document([8], [8])]
    found = scaled(sampler, Batch.from_data_list(data))
    for matrix in (found[0], found[2], found[3]):
        assert matrix == pytest.approx(0.2 * (1 - np.eye(len(matrix))), abs=1e-6)
    assert found[1].std() > 0.05


def test_one_pattern_abstains_and_the_other_speaks() -> None:
    (found,) = scaled(SocialEdges([StaticDistance(), DynamicDistance()]), document([9] * 60, [7]))
    assert found == pytest.approx(reference.probabilities(reference.static_distance(60), 0.93), abs=1e-4)


def test_more_density_than_pairs_that_are_possible() -> None:
    # One pair has P = 1, all others 0: no mu reaches the density. The pair is certain, the rest impossible.
    data = document(range(20), [], [0.0] * 18 + [1.0, 1.0])
    (found,) = scaled(SocialEdges([StaticCentrality()], sparsity=0.3), data)
    assert found[18, 19] == found[19, 18] == pytest.approx(1.0, abs=1e-4)
    found[18, 19] = found[19, 18] = 0
    assert np.abs(found).max() < 1e-4


# --- coins ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["three", "steep distance"])
@pytest.mark.parametrize("sparsity", [0.93, 0.3])
def test_observed_density(name: str, sparsity: float) -> None:
    data = DOCUMENTS["random"]
    seeds = 300
    probability = np.triu(probabilities_of("random", name, sparsity), 1)
    sampler = SocialEdges(MIXTURES[name], sparsity=sparsity)
    edges = np.array([adjacency.sum() / 2 for adjacency, _ in drawn(sampler, copies(data, range(seeds)))])
    variance = (probability * (1 - probability)).sum()  # of the number of edges, were the coins independent
    assert probability.sum() == pytest.approx(80 * 79 / 2 * (1 - sparsity), rel=1e-6)
    assert abs(edges.mean() - probability.sum()) < 4 * np.sqrt(variance / seeds)
    # Its variance is that of independent coins, too: (s - 1) S^2 / sigma^2 is chi-square with mean s - 1.
    assert abs(edges.var(ddof=1) / variance - 1) < 4 * np.sqrt(2 / (seeds - 1))


KEYS = 3000
KEY_SERIES = {
    "0, 1, 2, ...": lambda: list(range(KEYS)),
    "high bits only": lambda: [key << 50 for key in range(KEYS)],
    "hashes": lambda: np.random.default_rng(6).integers(0, 2**63 - 1, KEYS).tolist(),
    "negative": lambda: [-1 - 7 * key for key in range(KEYS)],
}


def coins(data: Data, sampler: SocialEdges, keys: Sequence[int]) -> np.ndarray:
    """One row for each key, one column for each pair i < j: edge or not."""
    upper = np.triu_indices(int(data.num_nodes), 1)
    return np.stack([adjacency[upper] for adjacency, _ in drawn(sampler, copies(data, keys))]).astype(float)


@pytest.mark.parametrize("series", KEY_SERIES)
def test_every_pair_is_drawn_as_often_as_its_probability_says(series: str) -> None:
    data = DOCUMENTS["random, shorter"]
    sampler = SocialEdges(MIXTURES["three"], sparsity=0.6)
    probability = probabilities_of("random, shorter", "three", 0.6)[np.triu_indices(12, 1)]
    frequency = coins(data, sampler, KEY_SERIES[series]()).mean(0)
    certain = (probability < 1e-5) | (probability == 1)  # one pair at least is never drawn: f's minimum is 0
    assert frequency[certain] == pytest.approx(probability[certain], abs=1e-5)
    z = (frequency - probability)[~certain] / np.sqrt((probability * (1 - probability))[~certain] / KEYS)
    assert len(z) > 50
    assert np.abs(z).max() < 4.5  # 66 normal deviates: one above 4.5 once in 2,000 times
    assert abs((z**2).sum() - len(z)) < 4 * np.sqrt(2 * len(z))  # chi-square


@pytest.mark.parametrize("series", KEY_SERIES)
def test_coins_of_different_pairs_are_independent(series: str) -> None:
    n = 12
    data = document([9] * n, [7])  # every pattern abstains: all pairs have the same probability
    tosses = coins(data, SocialEdges([DynamicDistance()], sparsity=0.5), KEY_SERIES[series]())
    assert abs(tosses.mean() - 0.5) < 4 * np.sqrt(0.25 / tosses.size)
    correlation = np.corrcoef(tosses.T)
    # 66 * 65 / 2 = 2,145 correlations, standard error 1 / sqrt(keys): one above 5 of them once in 800 times.
    others = correlation[np.triu_indices(len(correlation), 1)]
    assert np.abs(others).max() < 5 / np.sqrt(KEYS)
    assert abs((others**2).mean() * KEYS - 1) < 0.2
    # The four pairs of a square, and the three of a triangle: no parity between them.
    signs = np.zeros((KEYS, n, n))
    row, col = np.triu_indices(n, 1)
    signs[:, row, col] = signs[:, col, row] = 1 - 2 * tosses
    for i in range(0, n - 4):
        square = signs[:, i, i + 2] * signs[:, i, i + 3] * signs[:, i + 1, i + 2] * signs[:, i + 1, i + 3]
        triangle = signs[:, i, i + 1] * signs[:, i + 1, i + 2] * signs[:, i, i + 2]
        assert abs(square.mean()) < 5 / np.sqrt(KEYS)
        assert abs(triangle.mean()) < 5 / np.sqrt(KEYS)
    # Neither does one key tell about the next.
    for lag in (1, 2, 3, 16, 64, 256):
        same = ((tosses[lag:] - 0.5) * (tosses[:-lag] - 0.5)).mean() * 4
        assert abs(same) < 5 / np.sqrt(tosses[lag:].size)


def test_neighbouring_pairs_of_one_long_document_are_independent() -> None:
    n = 900
    (adjacency, _), *_ = drawn(SocialEdges([DynamicDistance()], sparsity=0.5), [document([9] * n, [7], coin_key=11)])
    signs = 1.0 - 2.0 * adjacency
    i, j = np.triu_indices(n, 40)  # pairs whose neighbours (up to 32 away) are pairs as well
    for step in (1, 2, 3, 4, 8, 16, 32):
        for di, dj in ((0, 1), (1, 0), (1, 1), (1, -1)):
            inside = (j + step * dj < n) & (i + step * di < j + step * dj)
            here, there = (i[inside], j[inside]), (i[inside] + step * di, j[inside] + step * dj)
            both = (signs[here] * signs[there]).mean()
            assert abs(both) < 5 / np.sqrt(inside.sum()), (step, di, dj)
    degree = adjacency.sum(1)
    assert abs(degree.mean() - (n - 1) / 2) < 5 * np.sqrt((n - 1) / 4 * 2 / n)
    assert abs(degree.var(ddof=1) / ((n - 1) / 4) - 1) < 5 * np.sqrt(2 / (n - 1))


def test_a_rare_edge_is_as_rare_as_said() -> None:
    n = 1500
    (adjacency, _), *_ = drawn(SocialEdges([DynamicDistance()], sparsity=0.999), [document([9] * n, [7], coin_key=3)])
    pairs = n * (n - 1) / 2
    assert abs(adjacency.sum() / 2 - 0.001 * pairs) < 4 * np.sqrt(0.001 * 0.999 * pairs)


# --- the same pair, the same graph ----------------------------------------------------------------


def edges_of(sampler: SocialEdges, graph: Data) -> tuple[torch.Tensor, torch.Tensor]:
    edge_index, edge_weight = sampler(graph)
    return edge_index.cpu(), edge_weight.cpu()


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("sparsity", [0.93, 0.3])
def test_alone_in_a_batch_in_any_order(name: str, sparsity: float) -> None:
    sampler = SocialEdges(MIXTURES[name], sparsity=sparsity)
    data = [one.clone() for one in (*DOCUMENTS.values(), document([]), random_document(400, 8), document([], [4]))]
    for key, one in enumerate(data):
        one.coin_key = torch.tensor([1000 + key])
    alone = [edges_of(sampler, one) for one in data]
    assert sum(edge_index.size(1) for edge_index, _ in alone) > 1000
    for order in (
        np.arange(len(data)),
        np.arange(len(data))[::-1],
        np.random.default_rng(9).permutation(len(data)),
    ):
        edge_index, edge_weight = sampler(Batch.from_data_list([data[i] for i in order]))
        start, want = 0, []
        for i in order:
            want.append(alone[i][0] + start)
            start += int(data[i].num_nodes)
        assert torch.equal(edge_index, torch.cat(want, 1))
        assert torch.equal(edge_weight, torch.cat([alone[i][1] for i in order]))


def test_nothing_else_decides() -> None:
    sampler = SocialEdges(MIXTURES["three"])
    data = random_document(200, 10, coin_key=5)
    first = edges_of(sampler, data)
    torch.manual_seed(123)
    np.random.seed(123)
    for again in (edges_of(sampler, data), edges_of(SocialEdges(MIXTURES["three"]).train(), data.clone())):
        assert torch.equal(first[0], again[0])
        assert torch.equal(first[1], again[1])


def test_another_key_is_another_graph() -> None:
    sampler = SocialEdges(MIXTURES["three"])
    data = DOCUMENTS["random"]
    keys = [0, 1, 2, -1, 1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, 12345678901234]
    graphs = [frozenset(zip(*adjacency.nonzero(), strict=True)) for adjacency, _ in drawn(sampler, copies(data, keys))]
    assert len(set(graphs)) == len(keys)
    probability = probabilities_of("random", "three", 0.93)
    shared = (probability**2).sum()  # what two independent graphs have in common, on average
    for one in range(len(keys)):
        for other in range(one):
            assert len(graphs[one] & graphs[other]) < shared + 6 * np.sqrt(2 * shared)


@pytest.mark.parametrize("device", DEVICES)
def test_every_device_draws_the_same(device: str) -> None:
    sampler = SocialEdges(MIXTURES["three"], sparsity=0.8)
    data = [random_document(length, 20 + length, coin_key=length) for length in (0, 1, 2, 50, 300, 700)]
    batch = Batch.from_data_list(data)
    want, got = edges_of(sampler, batch), edges_of(sampler.to(device), batch.to(device))
    assert torch.equal(want[0], got[0])
    assert torch.equal(want[1], got[1])


def test_the_coin_does_not_depend_on_the_probability() -> None:
    # A pair's coin is fixed, so a denser graph of the same document holds every edge of a sparser one.
    data = random_document(150, 12, coin_key=77)
    sparse, middle, dense = (
        drawn(SocialEdges(MIXTURES["three"], sparsity=sparsity), [data])[0][0] for sparsity in (0.97, 0.8, 0.2)
    )
    assert (sparse <= middle).all()
    assert (middle <= dense).all()
    assert 0 < sparse.sum() < middle.sum() < dense.sum()


# --- degenerate documents and options -------------------------------------------------------------


@pytest.mark.parametrize("name", MIXTURES)
def test_one_token_or_none_has_no_edge(name: str) -> None:
    sampler = SocialEdges(MIXTURES[name], sparsity=0.05)
    for graph in (
        document([]),
        document([7], [7]),
        Batch.from_data_list([document([]), document([]), document([7], [7])]),
        Batch.from_data_list([document([])]),
    ):
        edge_index, edge_weight = sampler(graph)
        assert edge_index.shape == (2, 0)
        assert edge_index.dtype == torch.int64
        assert edge_weight.shape == (0,)
        assert edge_weight.dtype == torch.float32


def test_nothing_given_is_changed() -> None:
    data = random_document(60, 13)
    before = {key: value.clone() for key, value in data.items() if isinstance(value, torch.Tensor)}
    SocialEdges(MIXTURES["three"])(data)
    assert set(data.keys()) == {*before, "num_nodes"}
    assert all(torch.equal(data[key], value) for key, value in before.items())


@pytest.mark.parametrize("sparsity", [-0.1, 1.1, float("nan")])
def test_sparsity_out_of_range(sparsity: float) -> None:
    with pytest.raises(OptionError, match=f"sparsity.*{sparsity}"):
        SocialEdges([StaticDistance()], sparsity=sparsity)


def test_weights_that_cannot_be() -> None:
    for weights in ({"static_distance": -1.0}, {"static_distance": 0.0}, {"nobody": 1.0}):
        with pytest.raises(OptionError):
            SocialEdges([StaticDistance()], weights=weights)
    with pytest.raises(OptionError):
        SocialEdges([])
    for value in (float("nan"), float("inf")):
        with pytest.raises(OptionError):
            SocialEdges(MIXTURES["three"], weights={"static_distance": value})


def test_repr_tells_every_option() -> None:
    said = repr(SocialEdges([StaticDistance(p=31.0), StaticCentrality()], {"static_distance": 3.0}, sparsity=0.87))
    assert all(part in said for part in ("0.87", "31.0", "0.75", "0.25", "StaticDistance", "StaticCentrality"))
