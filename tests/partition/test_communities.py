"""The rules that turn communities into circles, and what every clustering of the shelf promises."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import reference
import torch
from circles import circles_of, compact, ruled
from graphs import HARD, collate, from_pairs, random_graph
from torch import Tensor

from socialgraph.errors import OptionError
from socialgraph.partition import partition_resolver
from socialgraph.partition.communities import Communities
from socialgraph.partition.spectral import Spectral

LIBRARY = {"metis": "pymetis", "louvain": "igraph", "leiden": "igraph", "spectral": "sklearn"}
CLUSTERINGS = ["metis", "louvain", "leiden", "label-propagation", "k-core", "spectral"]
clusterings = pytest.mark.parametrize("name", CLUSTERINGS)
shelf = pytest.mark.parametrize("name", [*CLUSTERINGS, "node", "edge", "random", "sentences"])


def shelved(name: str, **options) -> Communities:
    """A partition of the shelf; its test is skipped where its library is not installed."""
    if name in LIBRARY:
        pytest.importorskip(LIBRARY[name])
    return partition_resolver(name, **options)


class Given(Communities):
    """Communities that the test names."""

    def __init__(self, pairs: list[tuple[int, int]], **options: int) -> None:
        super().__init__(**options)
        self.pairs = pairs

    def communities(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        return torch.tensor(self.pairs, dtype=torch.long).reshape(-1, 2).T


def test_rules_by_hand() -> None:
    # 0-1-2-3 is a clique but for 0-3; 4-5; 6 alone; 7-8-9 a path; 4 and 7 are friends
    graph = from_pairs(10, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (4, 5), (7, 8), (8, 9), (4, 7)])
    # nodes with a friend are 0 1 2 3 4 5 7 8 9, so 6, 7, 8 are called 6 -> 7, 7 -> 8, 8 -> 9
    disjoint = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 2), (7, 2), (8, 2)]
    want = [(1, [0, 1, 2, 3]), (8, [7, 8, 9]), (4, [4, 5])]
    assert circles_of(Given(disjoint), [graph]) == [want]
    assert circles_of(Given(disjoint[::-1]), [graph]) == [want]
    assert circles_of(Given(disjoint, k=2), [graph]) == [want[:2]]
    # 1 and 2 have most friends inside; of 0 and 3 one stays, as of 7 and 9 beside 8: that with the lower coin
    third, beside = (min(pair, key=lambda node: reference.coin(x, node)) for x, pair in ((1, (0, 3)), (8, (7, 9))))
    three = [(1, sorted([1, 2, third])), (8, [7, 8, 9]), (4, [4, 5])]
    assert circles_of(Given(disjoint, max_size=3), [graph]) == [three]
    two = [(1, [1, 2]), (8, sorted([8, beside])), (4, [4, 5])]
    assert circles_of(Given(disjoint, max_size=2), [graph]) == [two]
    # 3 knows nobody in the second community and leaves, so does all of the third; a pair said twice is one member
    overlapping = [(0, 5), (1, 5), (1, 5), (1, 2), (2, 2), (3, 2), (4, 2), (0, 9), (8, 9)]
    assert circles_of(Given(overlapping), [graph]) == [[(0, [0, 1]), (1, [1, 2, 3])][::-1]]
    assert circles_of(Given([]), [graph]) == [[]]


@pytest.mark.parametrize("seed", range(20))
def test_rules_over_random_overlapping_communities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(int(rng.integers(2, 40)), float(rng.random() * 0.4), seed)
    nodes, _ = compact(graph)
    pairs = [(int(rng.integers(len(nodes))), int(rng.integers(6))) for _ in range(60)] if nodes else []
    k, max_size = int(rng.integers(1, 8)), int(rng.integers(2, 9))
    groups = [sorted({nodes[node] for node, label in pairs if label == name}) for name in range(6)]
    assert circles_of(Given(pairs, k=k, max_size=max_size), [graph]) == [ruled(graph, groups, k, max_size)]


@shelf
def test_without_weights_alone_as_in_a_batch(name: str) -> None:
    """With weights it is asked of every partition, see tests/testing/test_partition.py."""
    graphs = [HARD["empty"], *HARD.values(), random_graph(90, 0.2, 9), HARD["no edges"]]
    partition = shelved(name)
    assert circles_of(partition, graphs, False) == [circles_of(partition, [graph], False)[0] for graph in graphs]


@clusterings
def test_communities_are_small_and_disjoint_and_nobody_leads_alone(name: str) -> None:
    graphs = [*HARD.values(), random_graph(200, 0.08, 1)]
    for graph, circles in zip(graphs, circles_of(shelved(name, k=3, max_size=5), graphs), strict=True):
        adjacency, _ = graph.dense()
        assert bool(circles) == bool(adjacency.any())
        assert len(circles) <= 3
        assert all(len(members) <= 5 for _, members in circles)
        assert all(adjacency[leader].any() for leader, _ in circles)
        seen = [node for _, members in circles for node in members]
        assert name == "k-core" or len(seen) == len(set(seen))


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(OptionError, match=r"Spectral needs scikit-learn: pip install 'socialgraph-ir\[partitions\]'"):
        circles_of(Spectral(), [HARD["one edge"]])


class Pairs(Communities):
    """Every edge of the first node is a community: all of one size and with one lowest node."""

    def communities(self, edge_index, edge_weight, num_nodes):
        name = torch.arange(num_nodes - 1)
        return torch.stack([torch.cat([torch.zeros_like(name), name + 1]), torch.cat([name, name])])


def test_communities_that_are_equal_come_in_the_order_of_their_names():
    star, copies = from_pairs(60, [(0, node) for node in range(1, 60)]), 8
    edge_index, batch, batch_size, edge_weight = collate([star] * copies)
    (node, circle), _ = Pairs(k=5)(edge_index, batch, batch_size, edge_weight)
    members = [(node[circle == number] % 60).tolist() for number in range(5 * copies)]
    assert members == [[0, other] for other in range(1, 6)] * copies
