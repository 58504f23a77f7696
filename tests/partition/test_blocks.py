"""Blocks against all ways to cut (short texts) and a literal dynamic programme (long ones)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from graphs import HARD, Graph, collate, from_dense, from_pairs

from socialgraph.errors import OptionError
from socialgraph.partition.blocks import Blocks


def chain(weights: list[float]) -> Graph:
    """A text whose i-th tie, behind token i, has the i-th weight."""
    length = len(weights) + 1
    adjacency, weight = np.zeros((length, length), dtype=bool), np.zeros((length, length))
    for i, w in enumerate(weights):
        adjacency[i, i + 1], weight[i, i + 1] = True, w
    return from_dense(adjacency, weight)


def possible_ends(weights: list[float], size: int, forced: float) -> list[tuple[int, float]]:
    """(last token of a block, weight of the tie behind it), in order; the end of the text is the last."""
    ends: list[tuple[int, float]] = []
    former = -1
    for token, weight in enumerate([*weights, 0.0]):
        at_end = token == len(weights)
        if weight < forced or at_end:
            ends.append((token, weight))
            former = token
        elif (token - former) % size == 0:
            ends.append((token, weight))
    return ends


def programme(weights: list[float], size: int, segment: float, forced: float) -> list[int]:
    """The last token of each block, by a literal dynamic programme from left to right, near ends first."""
    ends = [(-1, 0.0), *possible_ends(weights, size, forced)]
    total, former = [0.0], [0]
    for i in range(1, len(ends)):
        total.append(float("inf"))
        former.append(-1)
        for j in range(i - 1, -1, -1):
            if ends[i][0] - ends[j][0] <= size and total[j] + ends[i][1] + segment < total[i]:
                total[i], former[i] = total[j] + ends[i][1] + segment, j
    last, i = [], len(ends) - 1
    while i > 0:
        last.append(ends[i][0])
        i = former[i]
    return last[::-1]


def cheapest(weights: list[float], size: int, segment: float, forced: float) -> tuple[float, list[list[int]]]:
    """The lowest cost over all ways to cut, and all ways that have it."""
    *inner, (final, _) = possible_ends(weights, size, forced)
    cost_of = dict(inner)
    found: list[tuple[float, list[int]]] = []
    for amount in range(len(inner) + 1):
        for chosen in combinations(cost_of, amount):
            last = [*chosen, final]
            if all(b - a <= size for a, b in zip([-1, *last], last, strict=False)):
                found.append((sum(cost_of.get(end, 0.0) + segment for end in last), last))
    least = min(cost for cost, _ in found)
    return least, [last for cost, last in found if cost == least]


def cut(graphs: list[Graph], *, weighted: bool = True, **options: float) -> list[list[int]]:
    """The last token of each block of each graph; checks the form on the way."""
    edge_index, batch, batch_size, edge_weight = collate(graphs)
    blocks = Blocks(**options)  # type: ignore[arg-type]
    circle_index, leader_index = blocks(edge_index, batch, batch_size, edge_weight if weighted else None)
    assert circle_index.dtype == leader_index.dtype == torch.int64
    assert circle_index[0].tolist() == list(range(batch.numel())), "every token once, in order"
    circle = circle_index[1]
    assert set(circle.diff().tolist()) <= {0, 1}
    first = torch.ones_like(circle, dtype=torch.bool)
    first[1:] = circle.diff() == 1
    assert leader_index.tolist() == first.nonzero().squeeze(-1).tolist()
    found: list[list[int]] = [[] for _ in graphs]
    last = [*(leader_index[1:] - 1).tolist(), batch.numel() - 1] if batch.numel() else []
    starts = np.cumsum([0, *(graph.num_nodes for graph in graphs)])
    for node in last:
        owner = int(batch[node])
        found[owner].append(node - int(starts[owner]))
    return found


def test_by_hand() -> None:
    # "a b . c d , e" with blocks of 4: after the full stop costs 1, after the comma 2, elsewhere 8
    weights = [8.0, 8.0, 1.0, 8.0, 8.0, 2.0]
    assert cut([chain(weights)], size=4) == [[2, 6]]
    assert cut([chain(weights)], size=3) == [[2, 5, 6]]
    # eleven words without punctuation: forced, at multiples of the size
    assert cut([chain([8.0] * 10)], size=4) == [[3, 7, 10]]
    # ".", then nine words: forced ends are counted from it
    assert cut([chain([8.0, 1.0, *[8.0] * 8])], size=4) == [[1, 5, 9, 10]]
    # a segment of its own costs, so sentences share a block while they fit
    assert cut([chain([8.0, 1.0, 8.0, 1.0, 8.0])], size=6) == [[5]]
    # full stops are cheaper than commas, and among equals the last block is the shortest
    assert cut([chain([8.0, 1.0, 2.0, 8.0, 8.0])], size=4) == [[1, 5]]
    assert cut([chain([8.0, 1.0, 1.0, 8.0, 8.0])], size=4) == [[2, 5]]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_no_way_is_cheaper(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(30):
        weights = rng.choice([1.0, 2.0, 8.0, 8.0], int(rng.integers(0, 11))).tolist()
        least, ways = cheapest(weights, size, 4.0, 8.0)
        (last,) = cut([chain(weights)], size=size)
        assert last in ways, (weights, least)
        # the last block is the shortest, then the one before it, ...
        assert last[::-1] == max(way[::-1] for way in ways)


@pytest.mark.parametrize(
    ("size", "segment", "forced"), [(63, 4.0, 8.0), (7, 4.0, 8.0), (7, 0.0, 1.5), (1, 1.0, 8.0), (20, 0.25, 100.0)]
)
def test_as_the_programme_in_a_batch(size: int, segment: float, forced: float) -> None:
    rng = np.random.default_rng(0)
    lengths = [0, 300, 1, 2, 0, 64, 63, 150, 0]
    texts = [rng.choice([1.0, 2.0, 8.0], max(n - 1, 0), p=[0.05, 0.05, 0.9]).tolist() for n in lengths]
    graphs = [chain(text) if n else from_pairs(0, []) for n, text in zip(lengths, texts, strict=True)]
    options = {"size": size, "segment": segment, "forced": forced}
    expected = [programme(text, **options) if n else [] for n, text in zip(lengths, texts, strict=True)]
    assert cut(graphs, **options) == expected
    assert [cut([graph], **options)[0] for graph in graphs] == expected
    assert any(len(last) > 5 for last in expected)


@pytest.mark.parametrize("weighted", [True, False])
def test_any_graph_can_be_cut(weighted: bool) -> None:
    graphs = list(HARD.values())
    expected = []
    for graph in graphs:
        adjacency, weight = graph.dense()
        strength = weight if weighted else adjacency
        ties = [float(strength[i, i + 1]) for i in range(graph.num_nodes - 1)]  # 0 where strangers meet
        expected.append(programme(ties, 5, 0.5, 0.9) if graph.num_nodes else [])
    assert cut(graphs, weighted=weighted, size=5, segment=0.5, forced=0.9) == expected


def test_options() -> None:
    assert repr(Blocks()) == "Blocks(size=63, segment=4.0, forced=8.0)"
    with pytest.raises(OptionError, match="at least 1, got 0"):
        Blocks(size=0)
    empty = Blocks()(torch.empty(2, 0, dtype=torch.long), torch.empty(0, dtype=torch.long), 0)
    assert (empty[0].shape, empty[1].shape) == ((2, 0), (0,))
