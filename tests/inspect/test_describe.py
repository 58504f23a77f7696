"""Statistics: by hand on small graphs, and against networkx."""

from __future__ import annotations

import math
import sys

import networkx as nx
import numpy as np
import pytest
import torch
from conftest import document_batch
from torch_geometric.data import Batch

from socialgraph.data import document_graph
from socialgraph.data.graph import connect, gather
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import InputError
from socialgraph.inspect.describe import (
    MEANINGS,
    clustering_of,
    describe,
    path_length_of,
)


def by_hand(size, pairs, circles=(), passages=(), words=None, query=(1,)):
    """A graph with these edges; a circle is (leader, members)."""
    graph = document_graph(torch.tensor(words or [0] * size, dtype=torch.long), torch.tensor(query), 0, "q", "d")
    both = sorted(pairs + [(j, i) for i, j in pairs])
    batch = Batch.from_data_list([graph])
    connect(batch, torch.tensor(both, dtype=torch.long).reshape(-1, 2).T, torch.full((len(both),), 0.5))
    everyone = [*passages, *circles]
    members = [(node, number) for number, (_, nodes) in enumerate(everyone) for node in nodes]
    leaders = torch.tensor([leader for leader, _ in everyone], dtype=torch.long)
    is_passage = torch.tensor([True] * len(passages) + [False] * len(circles), dtype=torch.bool)
    gather(batch, torch.tensor(members, dtype=torch.long).reshape(-1, 2).T, leaders, is_passage)
    return batch[0]


def matrix(graph):
    return nx.to_scipy_sparse_array(graph, dtype=np.float32, format="csr")


def test_a_network_by_hand():
    # a triangle with a tail, and a stranger:  0 - 1 - 2 - 0, 2 - 3, and 4
    found = describe(by_hand(5, [(0, 1), (1, 2), (0, 2), (2, 3)]))
    assert (found["nodes"], found["edges"], found["density"]) == (5, 4, pytest.approx(0.4))
    assert found["degree_mean"] == pytest.approx(8 / 5)
    assert found["degree_max"] == 3
    assert found["degree_sd"] == pytest.approx(math.sqrt((2 * 0.4**2 + 1.4**2 + 0.6**2 + 1.6**2) / 5))
    assert found["clustering"] == pytest.approx((1 + 1 + 1 / 3) / 5)
    # paths of pairs: 01 02 12 23 are 1, 03 13 are 2; the four pairs with 4 have none
    assert found["path_length"] == pytest.approx(8 / 6)
    assert found["unreachable"] == pytest.approx(4 / 10)
    ratio = (found["clustering"] / 0.4) / (found["path_length"] / found["random_path_length"])
    assert found["small_world"] == pytest.approx(ratio)


@pytest.mark.parametrize("density", [0.02, 0.6])
def test_against_networkx(density, monkeypatch):
    graph = nx.gnp_random_graph(90, density, seed=3)
    adjacency = matrix(graph)
    monkeypatch.setattr(sys.modules["socialgraph.inspect.describe"], "CELLS", 1000)  # blocks of 11 rows
    clusters = [value for _, value in sorted(nx.clustering(graph).items())]
    assert clustering_of(adjacency) == pytest.approx(np.array(clusters))
    lengths = [hops for _, row in nx.all_pairs_shortest_path_length(graph) for hops in row.values() if hops > 0]
    mean, unreachable = path_length_of(adjacency)
    assert mean == pytest.approx(np.mean(lengths))
    assert unreachable == pytest.approx(1 - len(lengths) / (90 * 89))


def test_circles_by_hand():
    pairs = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5)]
    passages = [(0, range(5)), (5, range(5, 10))]
    found = describe(by_hand(10, pairs, [(1, [0, 1, 2]), (3, [2, 3, 6])], passages))
    assert (found["circles"], found["circle_size_mean"]) == (2, 3)
    assert found["nodes_kept"] == 5 / 10  # 0 1 2 3 6
    assert found["edges_kept"] == pytest.approx(4 / 6)  # 01 12 02 and 23
    assert found["overlap"] == pytest.approx(6 / 5)
    assert found["reach_mean"] == pytest.approx((0.3 + 0.7) / 2)
    assert found["reach_max"] == pytest.approx(0.7)
    assert found["leaders_spread"] == pytest.approx(1 / 10)  # places 1 and 3
    assert found["readout"] == 1
    assert describe(by_hand(10, pairs, [(1, [0, 1, 2]), (3, [2, 3, 6])]))["readout"] == 5 / 10


def test_news_of_evidence_by_hand():
    # 8 nodes; 0 and 7 are words of the query. A passage of 0 1, a circle of 1 2 3 led by 2, a circle of 3 7 led by 3.
    # 4 5 6 meet nobody. 0 - 4 - 5 is a path of edges, 6 has no edge.
    words = [9, 0, 0, 0, 0, 0, 0, 8]
    found = describe(by_hand(8, [(0, 4), (4, 5)], [(2, [1, 2, 3]), (3, [3, 7])], [(0, [0, 1])], words, query=(8, 9)))
    assert found["query_matches"] == 2
    assert found["query_kept"] == 1 / 2  # 7; the passage of 0 is no friend circle
    assert found["query_by_circle"] == pytest.approx((0 + 1 / 2) / 2)
    assert found["hops_to_query"] == pytest.approx((1 + 2) / 2)  # of 4 and 5; the others have no path
    # 0 and 1 hear of 0, 3 and 7 of 7; the leaders 2 and 3 hear of both
    assert found["heard_query"] == pytest.approx((1 + 1 + 2 + 2 + 1) / 2 / 8)
    assert found["readout"] == 5 / 8


def test_expected_friends_that_are_met():
    batch = document_batch(lengths=(70, 33))
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()], sparsity=0.8)
    for graph in (batch[0], batch[1]):
        probable = edges.probabilities(graph).dense()[0]
        assert float(probable.max()) <= 1
        met = torch.zeros_like(probable, dtype=torch.bool)
        for number in (~graph.passage_mask).nonzero().flatten().tolist():
            member = graph.circle_index[0, graph.circle_index[1] == number]
            met[member[:, None], member] = True
        expected = (probable * met).sum(1) / probable.sum(1)
        assert 0 < float(expected.mean()) < 1
        assert describe(graph, edges=edges)["friends_met"] == pytest.approx(float(expected.mean()), rel=1e-5)
    assert set(describe(batch[0], edges=edges)) == set(MEANINGS)
    assert set(describe(batch[0])) == set(MEANINGS) - {"friends_met"}


def test_what_is_not_defined_is_nan():
    found = describe(by_hand(0, []))
    assert found["nodes"] == found["edges"] == found["circles"] == 0
    assert all(math.isnan(found[name]) for name in ("density", "degree_max", "path_length", "overlap", "readout"))
    found = describe(by_hand(3, []))  # nobody knows anybody, and no word of the query
    assert (found["density"], found["clustering"], found["unreachable"]) == (0, 0, 1)
    assert found["query_matches"] == 0
    for name in ("path_length", "small_world", "edges_kept", "reach_max", "query_kept", "heard_query"):
        assert math.isnan(found[name]), name
    batch = document_batch()
    for place in range(4):
        assert all(isinstance(value, float) for value in describe(batch[place]).values())
    assert list(describe(batch[0])) == list(describe(batch[1]))


def test_refusals():
    batch = document_batch()
    with pytest.raises(InputError, match="batch of 4"):
        describe(batch)
    graph = batch[0]
    del graph.edge_index, graph.edge_weight
    with pytest.raises(InputError, match="build it with GraphBuilder"):
        describe(graph)
