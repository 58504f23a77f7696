"""Friend circles against the literal reading of Section 3.2. What is asked of any: testing/test_partition.py."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import torch
from cases import TIMES
from circles import LEVELS, circles_of
from graphs import HARD, Graph, from_pairs, random_graph

KEEPS = ["strongest", "first"]
CUTS = [(16, 128), (16, 2), (3, 4), (1, 5), (60, 6)]  # k, max_size
levels = pytest.mark.parametrize("level", LEVELS)
keeps = pytest.mark.parametrize("keep", KEEPS)
cuts = pytest.mark.parametrize(("k", "max_size"), CUTS)


def expected(
    level: str, graph: Graph, k: int, max_size: int, keep: str, weighted: bool = True
) -> list[reference.Circle]:
    adjacency, weight = graph.dense()
    return LEVELS[level][1](adjacency, k, max_size, keep, weight if weighted else None)


def assert_as_reference(
    level: str,
    graphs: list[Graph],
    k: int,
    max_size: int,
    keep: str,
    weighted: bool = True,
    device: str = "cpu",
) -> None:
    found = circles_of(LEVELS[level][0](k=k, max_size=max_size, keep=keep), graphs, weighted, device)
    for number, (graph, circles) in enumerate(zip(graphs, found, strict=True)):
        want = expected(level, graph, k, max_size, keep, weighted)
        assert circles == want, f"graph {number}: {graph.num_nodes} nodes, {graph.edge_index.t().tolist()}"


# --- by hand: the reference itself, and the rules one by one --------------------------------------


@pytest.mark.parametrize("side", ["reference", "package"])
@pytest.mark.parametrize(
    ("level", "keep", "max_size", "want"),
    [
        # 0 - 1, 0 - 2, 0 - 3, 1 - 2, 3 - 4, 4 - 5; node 0 leads with three friends
        ("node", "first", 128, [(0, [0, 1, 2, 3]), (4, [4, 5])]),
        # 1 - 2 is between two members, so it is gone too; 3 - 4, 4 - 5 are left
        ("edge", "first", 128, [(0, [0, 1, 2, 3]), (4, [3, 4, 5])]),
        # 2 and 3 stay behind; then 4 has two friends and takes one
        ("node", "first", 2, [(0, [0, 1]), (4, [3, 4])]),
        # 0 - 3 is the strongest edge of 0, then 0 - 2
        ("node", "strongest", 2, [(0, [0, 3]), (1, [1, 2]), (4, [4, 5])]),
        ("edge", "strongest", 3, [(0, [0, 2, 3]), (1, [0, 1, 2]), (4, [3, 4, 5])]),
        ("edge", "first", 3, [(0, [0, 1, 2]), (3, [0, 3, 4]), (4, [4, 5])]),
    ],
)
def test_by_hand(side: str, level: str, keep: str, max_size: int, want: list[reference.Circle]) -> None:
    graph = from_pairs(6, [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4), (4, 5)])
    strength = {(0, 1): 0.1, (0, 2): 0.5, (0, 3): 0.9, (1, 2): 0.5, (3, 4): 0.5, (4, 5): 0.5}
    weight = torch.tensor([strength[min(i, j), max(i, j)] for i, j in graph.edge_index.t().tolist()])
    graph = graph._replace(edge_weight=weight)
    if side == "reference":
        assert expected(level, graph, 16, max_size, keep) == want
    else:
        assert circles_of(LEVELS[level][0](k=16, max_size=max_size, keep=keep), [graph]) == [want]


# --- against the reference ------------------------------------------------------------------------


@levels
@keeps
@cuts
def test_hard_graphs_as_the_reference(level: str, keep: str, k: int, max_size: int) -> None:
    for name, graph in HARD.items():
        partition = LEVELS[level][0](k=k, max_size=max_size, keep=keep)
        assert circles_of(partition, [graph]) == [expected(level, graph, k, max_size, keep)], name
    assert_as_reference(level, list(HARD.values()), k, max_size, keep)


@levels
@keeps
@cuts
def test_many_random_graphs_as_the_reference(level: str, keep: str, k: int, max_size: int) -> None:
    rng = np.random.default_rng([k, max_size])
    graphs = [
        random_graph(int(rng.integers(0, 13)), float(rng.choice([0.1, 0.3, 0.6, 0.9])), [seed, k, max_size], kind)
        for seed in range(20 * TIMES)
        for kind in ("real", "equal", "levels", "close", "any")
    ]
    assert_as_reference(level, graphs, k, max_size, keep)


@levels
@keeps
def test_without_weights_all_friends_are_equal(level: str, keep: str) -> None:
    graphs = [random_graph(12, 0.4, [seed, 7]) for seed in range(100)] + list(HARD.values())
    assert_as_reference(level, graphs, 16, 4, keep, weighted=False)


@levels
@keeps
def test_a_long_document_as_the_reference(level: str, keep: str) -> None:
    assert_as_reference(level, [random_graph(800, 0.2, 5)], 16, 128, keep)  # about 160 friends: the cap cuts
