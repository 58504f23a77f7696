"""What is left of a graph while circles are taken out of it: three ways to know, one result.

All documents take a circle at the same time, and tables have the same form whatever comes, because a GPU is told what
to do faster than it is asked what came: the number of friends of the best connected is all that it is asked for.

An edge list (:class:`RemainingEdges`) serves every graph. A graph that draws its own rows is kept as a matrix of bytes
where documents are short (:class:`~socialgraph.partition.remaining_matrix.RemainingMatrix`) and drawn row by row where
they are long (:class:`~socialgraph.partition.remaining_rows.RemainingRows`).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import cumsum, scatter
from torch_geometric.utils.sparse import index2ptr

from socialgraph.partition.sampled import SampledRows
from socialgraph.partition.ties import coin_of_mixed, mix, pair_coin, strongest, strongest_first


class RemainingGraph:
    """Base of the three, all documents at once.

    The circles that documents take at the same time are a table ``[B, m]``: each one's leader, its other members, and
    :attr:`pad` where there are no more.

    Args:
        pad: what stands where there is no node.
    """

    def __init__(self, pad: int) -> None:
        self.pad = pad

    def most_connected(self) -> Tensor:
        """Return the node of highest degree of each document, ``[B]``; ties to the lowest; pad without an edge."""
        raise NotImplementedError

    def circle(self, leader: Tensor, amount: int, weighted: bool) -> Tensor:
        """Return leaders with the friends that they have left, at most ``amount`` each, ``[B, m]``: see class.

        Of more friends those with the strongest edges stay (of equals, those whose pair has the lower coin, see
        :mod:`socialgraph.partition.ties`), or the lowest if not ``weighted``. m is 1 where no leader has a friend.
        """
        raise NotImplementedError

    def remove_nodes(self, circle: Tensor) -> None:
        """Take the members away, with all their edges."""
        raise NotImplementedError

    def remove_edges_among(self, circle: Tensor) -> None:
        """Take the edges between two members away."""
        raise NotImplementedError

    def node_id(self, document: Tensor, node: Tensor) -> Tensor:
        """Return the ids of the documents' nodes as the caller knows them."""
        raise NotImplementedError

    def members(self, circles: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return all members' ids, which of the circles each one is in, and whether it leads: ``[M]`` each."""
        table, device = torch.cat(circles, 1), circles[0].device
        sizes = torch.tensor([circle.size(1) for circle in circles])
        number = torch.repeat_interleave(sizes).to(device)
        leads = torch.zeros(table.size(1), dtype=torch.bool)
        leads[cumsum(sizes)[:-1]] = True
        document, column = (table != self.pad).nonzero(as_tuple=True)
        return self.node_id(document, table[document, column]), number[column], leads.to(device)[column]


class RemainingEdges(RemainingGraph):
    """An edge list in compressed rows."""

    def __init__(self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None) -> None:
        super().__init__(pad=batch.numel())
        self.row, self.col = edge_index[0], edge_index[1]
        self.batch, self.batch_size = batch, batch_size
        self.edge_weight = edge_weight
        self.ptr = index2ptr(self.row, batch.numel())
        self.degree = self.ptr.diff()
        place = torch.arange(batch.numel(), device=batch.device)
        self.place = place - index2ptr(batch, batch_size)[batch]
        self.has_edge = torch.ones_like(self.row, dtype=torch.bool)
        self.has_node = torch.ones_like(self.degree, dtype=torch.bool)

    def most_connected(self) -> Tensor:
        """See :meth:`RemainingGraph.most_connected`."""
        size = self.batch.numel()
        if size == 0:
            return self.batch.new_full((self.batch_size,), self.pad)
        # Degree and node in one whole number: no float, no tie left open.
        rank = self.degree * size + torch.arange(size - 1, -1, -1, device=self.batch.device)
        best = scatter(rank, self.batch, dim_size=self.batch_size, reduce="max")
        return torch.where(best >= size, size - 1 - best % size, self.pad)

    def edges_of(self, node: Tensor) -> tuple[Tensor, Tensor]:
        """Return the remaining edges that leave the nodes, and for each the index into ``node``."""
        count = self.ptr[node + 1] - self.ptr[node]
        owner = torch.repeat_interleave(count)
        first = self.ptr[node] - (count.cumsum(0) - count)
        edge = torch.arange(owner.numel(), device=node.device) + first[owner]
        left = self.has_edge[edge] & self.has_node[self.col[edge]]
        return edge[left], owner[left]

    def circle(self, leader: Tensor, amount: int, weighted: bool) -> Tensor:
        """See :meth:`RemainingGraph.circle`."""
        document = (leader != self.pad).nonzero().flatten()
        edge, owner = self.edges_of(leader[document])
        # Unless strength counts, the order of edges decides: it is that of their nodes.
        weight = self.edge_weight[edge] if weighted and self.edge_weight is not None else None
        coin = pair_coin(self.place[self.row[edge]], self.place[self.col[edge]]) if weighted else edge
        chosen, number = strongest(owner, weight, coin, amount)
        width = int(number.max()) + 2 if number.numel() else 1
        circle = leader.new_full((leader.numel(), width), self.pad)
        circle[:, 0] = leader
        circle[document[owner[chosen]], number + 1] = self.col[edge[chosen]]
        return circle

    def remove_nodes(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_nodes`."""
        circle = circle[circle != self.pad]
        edge, _ = self.edges_of(circle)
        self.degree.index_add_(0, self.col[edge], torch.full_like(edge, -1))
        self.degree[circle] = 0
        self.has_node[circle] = False

    def remove_edges_among(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_edges_among`."""
        circle = circle[circle != self.pad]
        inside = torch.zeros_like(self.has_node)
        inside[circle] = True
        edge, _ = self.edges_of(circle)
        edge = edge[inside[self.col[edge]]]
        self.has_edge[edge] = False
        self.degree.index_add_(0, self.row[edge], torch.full_like(edge, -1))

    def node_id(self, document: Tensor, node: Tensor) -> Tensor:
        """See :meth:`RemainingGraph.node_id`."""
        return node


class RemainingTable(RemainingGraph):
    """Base of the graphs whose documents stand side by side in tables: a node is its place.

    Attributes:
        place: 0 ... W - 1; the last one is the pad.
        backwards: W - 1 ... 0. ``degree * W + backwards`` is highest for the node of highest degree, of equals the
            lowest: no float, no tie left open.
        mixed: of each place, see :func:`~socialgraph.partition.ties.coin_of_mixed`.
        nodes_left: 1 for nodes that were not removed, ``[D, W]``; None as long as none was.
    """

    def __init__(self, sampled: SampledRows) -> None:
        self.size, self.width = sampled.node.shape
        super().__init__(pad=self.width - 1)
        self.sampled = sampled
        self.place = torch.arange(self.width, device=sampled.node.device)
        self.backwards = self.pad - self.place
        self.mixed = mix(self.place)
        self.document = torch.arange(self.size, device=sampled.node.device)
        self.nodes_left: Tensor | None = None

    def node_id(self, document: Tensor, node: Tensor) -> Tensor:
        """See :meth:`RemainingGraph.node_id`."""
        return self.sampled.node[document, node]

    def first_of(self, rank: Tensor) -> Tensor:
        """Return the node of each document whose ``rank [D]``, degree * W + backwards, is highest."""
        return (self.pad - rank % self.width).masked_fill_(rank < self.width, self.pad)

    def mark_removed(self, circle: Tensor, dtype: torch.dtype) -> None:
        """Note that the members are no longer there."""
        if self.nodes_left is None:
            self.nodes_left = self.sampled.inside.to(dtype)
        self.nodes_left.scatter_(1, circle, 0)

    def circle(self, leader: Tensor, amount: int, weighted: bool) -> Tensor:
        """See :meth:`RemainingGraph.circle`."""
        friend = self.rows(leader)
        if self.nodes_left is not None:
            friend &= self.nodes_left
        # Friends move to columns 1, 2, ... in order; all others fall on column 0, where the leader stands.
        column = friend.cumsum(1, dtype=torch.long)
        friends = int(column[:, -1].amax())
        column *= friend
        circle = torch.full((self.size, 1 + friends), self.pad, device=leader.device)
        circle.scatter_(1, column, self.place.expand_as(column))
        circle[:, 0] = leader
        if friends > amount:
            if weighted:
                weight = self.sampled.weight(leader, circle[:, 1:])
                weight.masked_fill_(circle[:, 1:] == self.pad, -1.0)
                coin = coin_of_mixed(self.mixed[leader][:, None], self.mixed[circle[:, 1:]])
                best = strongest_first(weight, coin)[:, :amount]
                return torch.cat([leader[:, None], circle.gather(1, best + 1)], 1)
            circle = circle[:, : 1 + amount]
        return circle

    def rows(self, node: Tensor) -> Tensor:
        """Return with whom a node of each document has edges left, ``[D, W]``, 1 for friends.

        Removed nodes are not left out. The caller owns what is returned.
        """
        raise NotImplementedError
