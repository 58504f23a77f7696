"""Greedy friend circles: again and again the node with most friends gathers them around itself."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import scatter
from torch_geometric.utils.sparse import index2ptr

from socialgraph.errors import OptionError
from socialgraph.partition.partition import Partition

RULES = ("strongest", "first")


class FriendCircles(Partition):
    """The greedy algorithm of the paper's section 3.2, over sparse edges, all documents at once.

    k times: the node of highest remaining degree (of equals, the lowest) becomes the leader; the leader and
    the friends it has left are the circle; then a subclass removes what the next circles may not share.
    A node without friends left leads no circle, so a document may get fewer than k.

    Args:
        k: number of circles of a document at most.
        max_size: members of a circle at most, the leader included.
        keep: which friends stay when there are more. "strongest": those of highest edge weight (of equals,
            the lowest); without weights all count as equal. "first": the lowest, as in the released code,
            which pulls every circle to the start of a long document.

    Raises:
        OptionError: k < 1, max_size < 2, or an unknown rule.
    """

    def __init__(self, k: int = 16, max_size: int = 128, keep: str = "strongest") -> None:
        super().__init__()
        if k < 1:
            raise OptionError(f"k, the number of circles, must be at least 1, got {k}")
        if max_size < 2:
            raise OptionError(f"max_size must be at least 2 (a leader and a friend), got {max_size}")
        if keep not in RULES:
            raise OptionError(f"keep must be one of {', '.join(RULES)}, got {keep!r}")
        self.k = k
        self.max_size = max_size
        self.keep = keep

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the circles of every document; see :meth:`Partition.forward`."""
        graph = RemainingGraph(edge_index, batch.numel())
        weight = edge_weight if self.keep == "strongest" else None
        none = batch.new_empty(0)
        leaders, names, nodes, homes = [none], [none], [none], [none]
        for turn in range(self.k):
            leader = graph.most_connected(batch, batch_size)
            if leader.numel() == 0:
                break
            edge, owner = graph.edges_of(leader)
            member = torch.cat([leader, graph.col[strongest(edge, owner, weight, self.max_size - 1)]])
            self.remove(graph, member)
            leaders.append(leader)
            names.append(batch[leader] * self.k + turn)
            nodes.append(member)
            homes.append(batch[member] * self.k + turn)
        # Found turn by turn over all documents, numbered document by document.
        name, order = torch.sort(torch.cat(names))
        node, circle = torch.cat(nodes), torch.searchsorted(name, torch.cat(homes))
        place = torch.argsort(circle * max(batch.numel(), 1) + node)
        return torch.stack([node, circle])[:, place], torch.cat(leaders)[order]

    def remove(self, graph: RemainingGraph, member: Tensor) -> None:
        """Take what the circles do not share out of ``graph``. ``member`` holds one circle a document."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(k={self.k}, max_size={self.max_size}, keep={self.keep!r})"


class RemainingGraph:
    """A graph in compressed rows from which nodes and edges are taken away."""

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        self.row, self.col = edge_index[0], edge_index[1]
        self.ptr = index2ptr(self.row, num_nodes)
        self.degree = self.ptr.diff()
        self.has_edge = torch.ones_like(self.row, dtype=torch.bool)
        self.has_node = torch.ones_like(self.degree, dtype=torch.bool)

    def most_connected(self, batch: Tensor, batch_size: int) -> Tensor:
        """Return the node of highest degree of each document that has an edge left; ties to the lowest."""
        size = batch.numel()
        if size == 0:
            return batch
        # Degree and node in one whole number: no float, no tie left open.
        rank = self.degree * size + torch.arange(size - 1, -1, -1, device=batch.device)
        best = scatter(rank, batch, dim_size=batch_size, reduce="max")
        return (size - 1 - best % size)[best >= size]

    def edges_of(self, node: Tensor) -> tuple[Tensor, Tensor]:
        """Return the remaining edges that leave the nodes, and for each the index into ``node``."""
        count = self.ptr[node + 1] - self.ptr[node]
        owner = torch.repeat_interleave(count)
        first = self.ptr[node] - (count.cumsum(0) - count)
        edge = torch.arange(owner.numel(), device=node.device) + first[owner]
        left = self.has_edge[edge] & self.has_node[self.col[edge]]
        return edge[left], owner[left]

    def remove_nodes(self, node: Tensor) -> None:
        """Take nodes away, with all their edges."""
        edge, _ = self.edges_of(node)
        self.degree.index_add_(0, self.col[edge], torch.full_like(edge, -1))
        self.degree[node] = 0
        self.has_node[node] = False

    def remove_edges_among(self, node: Tensor) -> None:
        """Take the edges between two of the nodes away."""
        inside = torch.zeros_like(self.has_node)
        inside[node] = True
        edge, _ = self.edges_of(node)
        edge = edge[inside[self.col[edge]]]
        self.has_edge[edge] = False
        self.degree.index_add_(0, self.row[edge], torch.full_like(edge, -1))


def strongest(edge: Tensor, owner: Tensor, weight: Tensor | None, amount: int) -> Tensor:
    """Keep at most ``amount`` edges of each owner, those of highest weight; of equals the first.

    ``owner`` is sorted, and so is ``edge`` for each owner. Without weights the first ones stay.
    """
    if weight is not None:
        order = torch.argsort(weight[edge], descending=True, stable=True)
        order = order[torch.argsort(owner[order], stable=True)]
        edge, owner = edge[order], owner[order]
    place = torch.arange(owner.numel(), device=owner.device) - torch.searchsorted(owner, owner)
    return edge[place < amount]
