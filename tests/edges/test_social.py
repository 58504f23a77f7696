"""SocialEdges: probabilities against the reference.

Edges are the coins below them, with them as weights, alone and in any batch: tests/trust/test_same_graph.py.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference
import torch
from drawing import DOCUMENTS, MIXTURES, ROOM, OwnPattern, matrices, probabilities_of, reachable, scaled
from graphs import document, random_document
from torch_geometric.data import Batch

from socialgraph.edges import Pattern, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import OptionError


def test_reference_scale_by_hand() -> None:
    # The ordered pairs have P 1, 1, 0.5, 0.5, 0.1, 0.1. Of 3 * 2 = 6 pairs 4 are wanted:
    # the first two are clipped at 1, so (2 * 0.5 + 2 * 0.1) / mu = 2.
    probability = np.array([[0, 1, 0.5], [1, 0, 0.1], [0.5, 0.1, 0]])
    assert reference.scale(probability, 1 / 3) == pytest.approx(0.6)
    # 3 are wanted: mu = 3.2 / 3 clips nothing.
    assert reference.scale(probability, 0.5) == pytest.approx(3.2 / 3)
    assert reference.scale(probability, 0.9) == pytest.approx(3.2 / 0.6)
    assert reference.probabilities(np.zeros((3, 3)), 0.9) == pytest.approx(0.1 * (1 - np.eye(3)))


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
    for one, found in zip(data, scaled(sampler, Batch.from_data_list(data)), strict=True):
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


def test_more_density_than_pairs_that_are_possible() -> None:
    # One pair has P = 1, all others 0: no mu reaches the density. The pair is certain, the rest impossible.
    data = document(range(20), [], [0.0] * 18 + [1.0, 1.0])
    (found,) = scaled(SocialEdges([StaticCentrality()], sparsity=0.3), data)
    assert found[18, 19] == found[19, 18] == pytest.approx(1.0, abs=1e-4)
    found[18, 19] = found[19, 18] = 0
    assert np.abs(found).max() < 1e-4


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


def test_no_pattern_takes_the_place_of_another() -> None:
    with pytest.raises(OptionError, match="one name: static_distance, static_distance; name them"):
        SocialEdges([StaticDistance(5.0), StaticDistance(500.0)])
    assert len(SocialEdges({"near": StaticDistance(5.0), "far": StaticDistance(500.0)}).patterns) == 2


def test_repr_tells_every_option() -> None:
    said = repr(SocialEdges([StaticDistance(p=31.0), StaticCentrality()], {"static_distance": 3.0}, sparsity=0.87))
    assert all(part in said for part in ("0.87", "31.0", "0.75", "0.25", "StaticDistance", "StaticCentrality"))
