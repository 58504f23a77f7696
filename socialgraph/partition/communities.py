"""Communities: circles from any way to say which nodes belong together."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import cumsum
from torch_geometric.utils.sparse import index2ptr

from socialgraph.errors import OptionError
from socialgraph.partition.partition import Partition, check_graph, check_sizes
from socialgraph.partition.ties import pair_hash, strongest_first


class Communities(Partition):
    """Base class of partitions that come from graph clustering: a subclass groups the nodes of one document.

    A subclass implements :meth:`communities`. Everything else is the same for all of them, so that they can be compared
    with friend circles of as many circles and members:

    * nodes without a friend in the document are not shown to the subclass;
    * members without a friend in their community leave it, and with them communities of one node;
    * the leader is the member with most friends inside (of equals, the lowest);
    * of a larger community the leader and the members with most friends inside stay, ``max_size`` together (of equals,
      a hash of the pair of leader and member decides, see :mod:`socialgraph.partition.ties`);
    * the ``k`` communities with most members before that cut stay (of equals, the one with the lowest node), numbered
      in this order.

    Friends are counted; their weights matter to the subclass only. Libraries take one graph at a time, on the CPU: this
    is a loop over documents, unlike friend circles.

    Args:
        k: number of circles of a document at most.
        max_size: members of a circle at most, the leader included.

    Raises:
        OptionError: k < 1 or max_size < 2.
    """

    def __init__(self, k: int = 16, max_size: int = 128) -> None:
        super().__init__()
        check_sizes(k, max_size)
        self.k = k
        self.max_size = max_size

    def communities(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        """Return who belongs to which community of one document.

        Args:
            edge_index: both directions of every edge, at least one edge, sorted by row and column, ``[2, E]``, on the
                CPU. Every node has an edge.
            edge_weight: strength of each edge, ``[E]``, or None: all count the same.
            num_nodes: n; the nodes are 0 ... n - 1.

        Returns:
            ``[2, M]`` int64: row 0 a node, row 1 the number of its community, in any order. A node may belong to many
            communities, or to none.
        """
        raise NotImplementedError

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the circles of every document; see :meth:`Partition.forward`.

        Raises:
            InputError: edges out of order, see :func:`~socialgraph.partition.partition.check_graph`.
        """
        check_graph(edge_index, batch, batch_size, edge_weight)
        device, edge_index, batch = batch.device, edge_index.cpu(), batch.cpu()
        weight = None if edge_weight is None else edge_weight.cpu()
        membership, names = [batch.new_empty(2, 0)], 0
        ptr = cumsum(torch.bincount(batch[edge_index[0]], minlength=batch_size)).tolist()
        for first, last in pairwise(ptr):
            if first < last:
                nodes, ends = torch.unique(edge_index[:, first:last], return_inverse=True)
                own = self.communities(ends, None if weight is None else weight[first:last], nodes.numel())
                membership.append(torch.stack([nodes[own[0]], own[1] + names]))
                names = int(membership[-1][1].max()) + 1 if own.numel() else names
        circle_index, leader_index = self._circles(torch.cat(membership, 1), edge_index, batch)
        return circle_index.to(device), leader_index.to(device)

    def _circles(self, membership: Tensor, edge_index: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Return the circles and leaders of the communities of all documents."""
        size = max(batch.numel(), 1)
        member = torch.unique(membership[1] * size + membership[0])  # by community, then by node; no doubles
        friends = friends_inside(member, edge_index, size)
        member, friends = member[friends > 0], friends[friends > 0]
        name, community, members = torch.unique(member // size, return_inverse=True, return_counts=True)
        node, first = member % size, cumsum(members)[:-1]
        # Which communities stay, and in which order. Sorts are stable: the last one counts most.
        home, order = batch[node[first]], torch.argsort(node[first], stable=True)
        for key in (-members, home):
            order = order[torch.argsort(key[order], stable=True)]
        amount = torch.bincount(home, minlength=1)
        order = order[torch.arange(name.numel()) - cumsum(amount)[home[order]] < self.k]
        number = torch.full_like(name, -1)
        number[order] = torch.arange(order.numel())
        # Who leads: the member with most friends inside; nodes ascend, so that of equals the lowest stands first.
        best = torch.argsort(friends, descending=True, stable=True)
        leader = node[best[torch.argsort(community[best], stable=True)][first]]
        # Which members stay: the leader first, then best first.
        start = cumsum(torch.bincount(batch))[batch]
        own = leader[community]
        tie = pair_hash(own - start[node], node - start[node])
        best = strongest_first(friends.masked_fill(node == own, size), tie)
        best = best[torch.argsort(community[best], stable=True)]
        rank = torch.empty_like(best)
        rank[best] = torch.arange(best.numel()) - first[community[best]]
        stays = (rank < self.max_size) & (number[community] >= 0)
        node, circle = node[stays], number[community[stays]]
        return torch.stack([node, circle])[:, torch.argsort(circle * size + node)], leader[order]


def friends_inside(member: Tensor, edge_index: Tensor, size: int) -> Tensor:
    """Return how many friends each member of a community has in it, ``[M]``.

    Args:
        member: ``community * size + node`` of each membership, sorted, ``[M]``.
        edge_index: both directions of every edge, sorted by row, ``[2, E]``.
        size: more than any node.
    """
    node = member % size
    ptr = index2ptr(edge_index[0], size)
    count = ptr[node + 1] - ptr[node]
    owner = torch.repeat_interleave(count)
    edge = torch.arange(owner.numel()) + (ptr[node] - cumsum(count)[:-1])[owner]
    other = member[owner] - node[owner] + edge_index[1, edge]
    place = torch.searchsorted(member, other).clamp(max=max(member.numel() - 1, 0))
    return torch.bincount(owner[member[place] == other], minlength=member.numel())


def disjoint(label: Tensor) -> Tensor:
    """Return the communities ``[2, n]`` of a graph each of whose nodes belongs to one: ``label [n]``."""
    return torch.stack([torch.arange(label.numel()), label.long()])


def library(name: str, user: Partition, package: str = "") -> Any:
    """Return an optional library.

    Args:
        name: of its module.
        user: who needs it.
        package: its name for pip, where it has another.

    Raises:
        OptionError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise OptionError(
            f"{type(user).__name__} needs {package or name}: pip install 'socialgraph-ir[partitions]'"
        ) from None


def friends_of(row: np.ndarray, column: np.ndarray, num_nodes: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return how many friends each node has, ``[n]``, and which, an array for each node.

    Args:
        row: one end of each edge in both directions, sorted, ``[E]``.
        column: the other end.
        num_nodes: number of nodes.
    """
    ptr = np.searchsorted(row, np.arange(num_nodes + 1))
    return np.diff(ptr), [column[first:last] for first, last in pairwise(ptr.tolist())]
