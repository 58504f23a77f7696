"""Coins behave like coins: as often as said, independent of one another, other ones for another key.

All seeds are fixed, so a bound of z standard errors either always holds or never. The bounds are wide: with
other seeds a right sampler would break one of them about once in a hundred times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from drawing import DOCUMENTS, MIXTURES, copies, drawn, probabilities_of
from graphs import document
from torch_geometric.data import Data

from socialgraph.edges import DynamicDistance, SocialEdges, draw_key

KEYS = 3000
KEY_SERIES = {
    "0, 1, 2, ...": lambda: list(range(KEYS)),
    "high bits only": lambda: [key << 50 for key in range(KEYS)],
    "hashes": lambda: np.random.default_rng(6).integers(0, 2**63 - 1, KEYS).tolist(),
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
    (adjacency, _), *_ = drawn(SocialEdges([DynamicDistance()], sparsity=0.5), [document([9] * n, [7], draw_key=11)])
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
    (adjacency, _), *_ = drawn(SocialEdges([DynamicDistance()], sparsity=0.999), [document([9] * n, [7], draw_key=3)])
    pairs = n * (n - 1) / 2
    assert abs(adjacency.sum() / 2 - 0.001 * pairs) < 4 * np.sqrt(0.001 * 0.999 * pairs)


def test_another_key_is_another_graph() -> None:
    sampler = SocialEdges(MIXTURES["three"])
    data = DOCUMENTS["random"]
    keys = [0, 1, 2, 1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, 12345678901234]
    graphs = [frozenset(zip(*adjacency.nonzero(), strict=True)) for adjacency, _ in drawn(sampler, copies(data, keys))]
    assert len(set(graphs)) == len(keys)
    probability = probabilities_of("random", "three", 0.93)
    shared = (probability**2).sum()  # what two independent graphs have in common, on average
    for one in range(len(keys)):
        for other in range(one):
            assert len(graphs[one] & graphs[other]) < shared + 6 * np.sqrt(2 * shared)


def test_a_key_is_that_of_the_seed_and_of_both_texts() -> None:
    texts = [(0, [1, 2], [3]), (0, [1], [2, 3]), (1, [1], [2, 3]), (0, [3], [1, 2]), (0, [], [1, 2, 3]), (0, [0], [])]
    keys = [draw_key(seed, torch.tensor(query), torch.tensor(text)) for seed, query, text in texts]
    assert len(set(keys)) == len(texts)
    assert all(0 <= key < 1 << 63 for key in keys)
    assert draw_key(0, torch.tensor([1, 2], dtype=torch.int32), torch.tensor([3])) == keys[0], "whatever the type is"
