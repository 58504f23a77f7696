"""Circles as lists, and what clusterings of the shelf share: their rules, written out, and graphs to try them on."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import reference
import torch
from graphs import HARD, Graph, collate, random_graph
from torch import Tensor

from socialgraph.partition import EdgeCircles, NodeCircles, Partition

LEVELS = {"node": (NodeCircles, reference.node_circles), "edge": (EdgeCircles, reference.edge_circles)}


def circles_of(
    partition: Partition, graphs: list[Graph], weighted: bool = True, device: str = "cpu"
) -> list[list[reference.Circle]]:
    """For each graph its circles as (leader, members), in the graph's own ids, in the order they came."""
    edge_index, batch, batch_size, edge_weight = collate(graphs)
    circle_index, leader_index = partition(
        edge_index.to(device), batch.to(device), batch_size, edge_weight.to(device) if weighted else None
    )
    assert circle_index.device.type == leader_index.device.type == device
    return unpack(circle_index.cpu(), leader_index.cpu(), [graph.num_nodes for graph in graphs])


def unpack(circle_index: Tensor, leader_index: Tensor, sizes: list[int]) -> list[list[reference.Circle]]:
    """The inverse of a batch; on the way, everything that the form of the answer promises."""
    assert circle_index.dtype == leader_index.dtype == torch.int64
    assert circle_index.dim() == 2
    assert circle_index.size(0) == 2
    assert leader_index.dim() == 1
    memberships = [(circle, node) for node, circle in circle_index.t().tolist()]
    assert all(one < next_one for one, next_one in pairwise(memberships)), "sorted by (circle, node), no doubles"
    assert sorted({circle for circle, _ in memberships}) == list(range(len(leader_index))), "0 .. C-1, none empty"

    members: list[list[int]] = [[] for _ in leader_index]
    for circle, node in memberships:
        members[circle].append(node)
    starts = np.cumsum([0, *sizes])
    owners = np.searchsorted(starts, leader_index.numpy(), side="right") - 1
    assert (np.diff(owners) >= 0).all(), "document by document"
    found: list[list[reference.Circle]] = [[] for _ in sizes]
    for leader, owner, nodes in zip(leader_index.tolist(), owners.tolist(), members, strict=True):
        assert all(starts[owner] <= node < starts[owner + 1] for node in nodes), "a circle lies in one document"
        found[owner].append((leader - int(starts[owner]), [node - int(starts[owner]) for node in nodes]))
    return found


def ruled(graph: Graph, groups: list[list[int]], k: int, max_size: int) -> list[reference.Circle]:
    """The rules of Communities, as its docstring says them."""
    adjacency, _ = graph.dense()
    found = []
    for name, group in enumerate(groups):
        friends = {node: int(adjacency[node, group].sum()) for node in group}
        members = sorted(node for node in group if friends[node] > 0)
        if members:
            leader = min(members, key=lambda node: (-friends[node], node))
            others = reference.strongest([node for node in members if node != leader], leader, friends)
            found.append((-len(members), members[0], name, leader, sorted([leader, *others[: max_size - 1]])))
    return [(leader, members) for *_, leader, members in sorted(found)[:k]]


def compact(graph: Graph) -> tuple[list[int], nx.Graph]:
    """The nodes with a friend, and the graph of these, numbered from 0."""
    nodes, ends = torch.unique(graph.edge_index, return_inverse=True)
    g = nx.empty_graph(nodes.numel())
    g.add_weighted_edges_from(zip(*ends.tolist(), graph.edge_weight.tolist(), strict=True))
    return nodes.tolist(), g


def grouped(nodes: list[int], labels) -> list[list[int]]:
    """Labels as lists of nodes, in the graph's own ids."""
    return [[node for node, own in zip(nodes, labels, strict=True) if own == label] for label in sorted(set(labels))]


some_graphs = pytest.mark.parametrize(
    "graph", [HARD["random, as in the paper"], HARD["random, with ties"], HARD["windmill"], random_graph(120, 0.15, 8)]
)
