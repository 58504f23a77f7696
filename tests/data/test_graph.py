"""A document's graph: circles follow its nodes."""

import pytest
import torch
from conftest import document_batch
from torch_geometric.transforms import LargestConnectedComponents

from socialgraph.errors import InputError


def circles_of(graph):
    """Return each circle as its leader and its members."""
    node, circle = graph.circle_index
    return [(int(leader), set(node[circle == c].tolist())) for c, leader in enumerate(graph.leader_index)]


@pytest.mark.parametrize("as_mask", [False, True])
def test_circles_follow_into_a_subgraph(as_mask):
    graph = document_batch()[0]
    kept = torch.arange(0, graph.num_nodes, 2)
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool).index_fill(0, kept, True)
    part = graph.subgraph(mask if as_mask else kept)
    assert part.validate()
    want = [
        (leader // 2, {node // 2 for node in members if node % 2 == 0})
        for leader, members in circles_of(graph)
        if leader % 2 == 0
    ]
    assert circles_of(part) == want
    assert 0 < part.num_circles < graph.num_circles
    assert part.passage_mask.numel() == part.num_circles
    assert torch.equal(part.input_ids, graph.input_ids[kept])


def test_what_is_the_querys_is_not_cut_with_the_nodes():
    graph = document_batch()[0]
    graph.query_ids = torch.arange(graph.num_nodes)  # as long as the document
    assert torch.equal(graph.subgraph(torch.tensor([0, 1])).query_ids, graph.query_ids)


def test_transforms_of_pyg_take_circles_along():
    graph = document_batch()[0]
    node = torch.arange(graph.num_nodes - 1)
    graph.edge_index = torch.cat([torch.stack([node, node + 1]), torch.stack([node + 1, node])], 1)
    graph.edge_index = graph.edge_index[:, (graph.edge_index != 0).all(0)]  # node 0 is alone
    part = LargestConnectedComponents()(graph)
    assert part.num_nodes == graph.num_nodes - 1
    assert part.leader_index.max() < part.num_nodes


def test_a_batch_has_no_subgraph():
    with pytest.raises(InputError, match=r"take batch\[i\]"):
        document_batch().subgraph(torch.tensor([0, 1]))
