"""Greedy friend circles: again and again the node with most friends gathers them around itself."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import scatter
from torch_geometric.utils.sparse import index2ptr

from socialgraph.errors import check_choice
from socialgraph.kernels import greedy_circles
from socialgraph.partition.partition import Partition, SampledGraph, check_graph, check_sizes
from socialgraph.partition.ties import pair_hash, strongest

RULES = ("strongest", "first")


class FriendCircles(Partition):
    """The greedy algorithm of the paper's section 3.2, over sparse edges, all documents at once.

    k times: the node of highest remaining degree (of equals, the lowest) becomes the leader; the leader and
    the friends it has left are the circle; then what the next circles may not share is taken away: its nodes, or
    the edges among them. A node without friends left leads no circle, so a document may get fewer than k.

    There are two ways to the same circles. :meth:`forward` takes any edges. :meth:`from_sampled` takes a graph whose
    edges are not drawn yet; where their probabilities have a closed form, :mod:`socialgraph.kernels` finds the circles
    without them.

    A subclass that overrides :meth:`select` has a choice of friends of its own, and takes the first way always.

    Args:
        k: number of circles of a document at most.
        max_size: members of a circle at most, the leader included.
        keep: which friends stay when there are more. "strongest": those of highest edge weight; of equals,
            and without weights all are, a hash of the pair decides (:mod:`socialgraph.partition.ties`), so that no
            place in the document is favoured. "first": the lowest, as in the released code, which pulls every circle
            to the start of a long document.

    Raises:
        OptionError: k < 1, max_size < 2, or an unknown rule.
    """

    #: whether circles share no node; else they share no edge
    node_level: bool

    def __init__(self, k: int = 16, max_size: int = 128, keep: str = "strongest") -> None:
        super().__init__()
        check_sizes(k, max_size)
        check_choice("keep", keep, RULES)
        self.k = k
        self.max_size = max_size
        self.keep = keep
        self.by_place = self.by_place or keep == "first"

    def select(self, leader: Tensor, friend: Tensor, weight: Tensor | None, tie: Tensor) -> Tensor:
        """Return which friends of the leaders join them, as indices of edges: at most ``max_size - 1`` of each.

        Args:
            leader: node at one end of each edge, ``[E]``, sorted.
            friend: node at the other, ``[E]``, sorted for each leader.
            weight: of each edge, ``[E]``; None: all are equal.
            tie: a random-looking number of each edge's pair, ``[E]``; of equals the lower one goes first.
        """
        if self.keep == "first":
            weight, tie = None, friend
        return strongest(leader, weight, tie, self.max_size - 1)[0]

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the circles of every document; see :meth:`Partition.forward`.

        Raises:
            InputError: edges out of order, see :func:`~socialgraph.partition.partition.check_graph`.
        """
        check_graph(edge_index, batch, batch_size, edge_weight)
        left = RemainingEdges(edge_index, batch, batch_size)
        row, column = edge_index
        place = torch.arange(batch.numel(), device=batch.device) - index2ptr(batch, batch_size)[batch]
        none = batch.new_empty(0)
        nodes, names, leaders, leader_names = [none], [none], [none], [none]
        for turn in range(self.k):
            leader = left.most_connected()
            if leader.numel() == 0:
                break
            edge = left.edges_of(leader)
            weight = None if edge_weight is None else edge_weight[edge]
            chosen = self.select(row[edge], column[edge], weight, pair_hash(place[row[edge]], place[column[edge]]))
            member = torch.cat([leader, column[edge[chosen]]])
            if self.node_level:
                left.remove_nodes(member)
            else:
                left.remove_edges_among(member)
            nodes.append(member)
            names.append(batch[member] * self.k + turn)
            leaders.append(leader)
            leader_names.append(batch[leader] * self.k + turn)
        # Gathered turn by turn over all documents, numbered document by document.
        node, leader = torch.cat(nodes), torch.cat(leaders)
        name, order = torch.sort(torch.cat(leader_names))
        number = torch.searchsorted(name, torch.cat(names))
        by_circle = torch.argsort(number * max(batch.numel(), 1) + node)
        return torch.stack([node, number]).index_select(1, by_circle), leader[order]

    def from_sampled(self, graph: SampledGraph) -> tuple[Tensor, Tensor]:
        """Return the same circles without drawing all edges; see :meth:`Partition.from_sampled`."""
        form = graph.closed_form
        if form is None or type(self).select is not FriendCircles.select:
            return super().from_sampled(graph)
        members, leaders = greedy_circles(form, self.k, self.max_size, self.node_level, self.keep == "strongest")
        document, turn, member = (members >= 0).nonzero(as_tuple=True)
        leads = leaders >= 0
        number = leads.flatten().cumsum(0).view_as(leads) - 1
        node = graph.ptr[document] + members[document, turn, member]
        return torch.stack([node, number[document, turn]]), (graph.ptr[:-1, None] + leaders)[leads]


class EdgeCircles(FriendCircles):
    """Friend circles that share no edge (paper, section 3.2, edge-level partition).

    All edges between two members of a circle leave the graph; its nodes stay and may meet again elsewhere.
    """

    node_level = False


class NodeCircles(FriendCircles):
    """Friend circles that share no node (paper, section 3.2, node-level partition).

    All members of a circle leave the graph, the leader too. (The released code leaves the leader in, so that
    many leaders are swallowed by a later circle.)
    """

    node_level = True


class RemainingEdges:
    """What is left of an edge list while circles are taken out of it.

    Args:
        edge_index: see :meth:`Partition.forward`.
        batch: document of each node.
        batch_size: number of documents.
    """

    def __init__(self, edge_index: Tensor, batch: Tensor, batch_size: int) -> None:
        self.row, self.column = edge_index
        self.batch, self.batch_size = batch, batch_size
        self.ptr = index2ptr(self.row, batch.numel())
        self.degree = self.ptr.diff()
        self.has_edge = torch.ones_like(self.row, dtype=torch.bool)
        self.has_node = torch.ones_like(self.degree, dtype=torch.bool)

    def most_connected(self) -> Tensor:
        """Return the node of highest degree of each document that has an edge, sorted; of equals the lowest."""
        size = self.batch.numel()
        if size == 0:
            return self.batch
        # Degree and node in one whole number: no float, no tie left open.
        rank = self.degree * size + torch.arange(size - 1, -1, -1, device=self.batch.device)
        best = scatter(rank, self.batch, dim_size=self.batch_size, reduce="max")
        return size - 1 - best[best >= size] % size

    def edges_of(self, node: Tensor) -> Tensor:
        """Return the remaining edges that leave the nodes."""
        count = self.ptr[node + 1] - self.ptr[node]
        owner = torch.repeat_interleave(count)
        edge = torch.arange(owner.numel(), device=node.device) + (self.ptr[node + 1] - count.cumsum(0))[owner]
        return edge[self.has_edge[edge] & self.has_node[self.column[edge]]]

    def remove_nodes(self, node: Tensor) -> None:
        """Take nodes away, with all their edges."""
        lost = self.column[self.edges_of(node)]
        self.degree.index_add_(0, lost, torch.full_like(lost, -1))
        self.degree[node] = 0
        self.has_node[node] = False

    def remove_edges_among(self, node: Tensor) -> None:
        """Take the edges between two of the nodes away."""
        inside = torch.zeros_like(self.has_node)
        inside[node] = True
        edge = self.edges_of(node)
        edge = edge[inside[self.column[edge]]]
        self.has_edge[edge] = False
        self.degree.index_add_(0, self.row[edge], torch.full_like(edge, -1))
