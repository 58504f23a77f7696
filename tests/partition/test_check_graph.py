"""Graphs that are made by hand: right ones as PyG makes them, wrong ones in one line, before anything is written."""

import pytest
import torch
from torch_geometric.utils import to_undirected

from socialgraph.errors import InputError
from socialgraph.partition import EdgeCircles, KCore

#: two documents: 0-1, 0-2, 0-3, 1-2 and 4-5, 4-6
EDGES = to_undirected(torch.tensor([[0, 0, 0, 1, 4, 4], [1, 2, 3, 2, 5, 6]]))
BATCH = torch.tensor([0, 0, 0, 0, 1, 1, 1])
WRONG = {
    "int32": (EDGES.int(), BATCH, "edge_index must be int64 [2, E], got torch.int32 [2, 12]"),
    "no batch": (EDGES, None, "batch must be int64 [N], got NoneType"),
    "batch of three documents": (EDGES, BATCH + 1, "batch must rise, from 0 at least to 1 at most"),
    "nobody's node": (torch.tensor([[0, 99], [99, 0]]), BATCH, "of 7 nodes breaks the contract 'edges join nodes"),
    "self-loop": (torch.tensor([[0, 0, 1], [0, 1, 0]]), BATCH, "'no self-loops': edge 0 joins node 0"),
    "across": (torch.tensor([[3, 4], [4, 3]]), BATCH, "breaks the contract 'an edge lies in one document'"),
    "unsorted": (EDGES.flip(1), BATCH, "breaks the contract 'edges are sorted, none is there twice'"),
    "twice": (
        torch.tensor([[0, 0, 1, 1], [1, 1, 0, 0]]),
        BATCH,
        "'edges are sorted, none is there twice'",
    ),
    "one way": (torch.tensor([[0, 0], [1, 2]]), BATCH, "breaks the contract 'edges are undirected'"),
}


def test_a_graph_of_pyg_has_circles():
    partition = EdgeCircles(k=2)
    circle_index, leader_index = partition(EDGES, BATCH, 2)
    assert leader_index.tolist() == [0, 4]
    weighted = partition(EDGES, BATCH, 2, torch.full((12,), 0.5))
    assert torch.equal(weighted[0], circle_index)
    assert [x.numel() for x in partition(EDGES[:, :0], BATCH[:0], 3)] == [0, 0]


@pytest.mark.parametrize("partition", [EdgeCircles(k=2), KCore(k=2)], ids=repr)
@pytest.mark.parametrize("case", WRONG)
def test_a_graph_out_of_order_is_refused(partition, case):
    edge_index, batch, told = WRONG[case]
    with pytest.raises(InputError) as refused:
        partition(edge_index, batch, 2)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        (torch.ones(3), "there are 12 edges, and weights [3]"),
        (torch.full((12,), torch.nan), "edge_weight must be finite numbers"),
    ],
)
def test_weights_that_cannot_be_are_refused(weights, told):
    with pytest.raises(InputError) as refused:
        EdgeCircles(k=2)(EDGES, BATCH, 2, weights)
    assert told in str(refused.value)
