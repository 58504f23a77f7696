"""What is left of a graph while circles are taken out of it: three ways to know, one result.

All documents take a circle at the same time, and tables have the same form whatever is found, because a GPU is told
what to do faster than it is asked what came: the number of friends of the best connected is all that it is asked for.

An edge list (:class:`StoredGraph`) serves every graph. A graph that draws its own rows is kept as a matrix of bytes
where documents are short (:class:`DenseGraph`) and drawn row by row where they are long (:class:`DrawnGraph`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.utils import cumsum, scatter
from torch_geometric.utils.sparse import index2ptr

from socialgraph.partition.ties import pair_coin, strongest, strongest_first


class Group(Protocol):
    """Documents of similar length whose edges can be drawn, such as :class:`socialgraph.edges.LazyGroup`.

    A node is named by its document's row d in tables ``[D, W]`` and its place w; the last place is nobody's.
    """

    node: Tensor
    inside: Tensor
    short: bool
    block_size: int  #: pairs to ask for at once

    def dense(self) -> Tensor:
        """Return the whole matrix of each document, ``[D, W, W]`` uint8, 1 for friends; the caller owns it."""
        ...

    def degree_bound(self) -> Tensor:
        """Return what no node's degree exceeds, ``[D, W]`` int64."""
        ...

    def hits(self, document: Tensor, place: Tensor, column: Tensor | None = None) -> Tensor:
        """Return the friends of nodes ``[R]`` among all, or among ``column [D, n]``: int32, 1 for friends."""
        ...

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the weights of edges between a place ``i [D]`` of each document and others ``j [D, n]``, float32."""
        ...


class Drawable(Protocol):
    """A graph that draws its own rows, such as :class:`socialgraph.edges.LazyGraph`."""

    def groups(self) -> Iterator[Group]:
        """Walk over the documents that may have edges, in groups of similar length."""
        ...


class RemainingGraph:
    """Base of the three, all documents at once.

    The circles that documents take at the same time are a table ``[B, m]``: each one's leader, its other members, and
    :attr:`nobody` where there are no more.
    """

    #: what stands where there is no node
    nobody: int

    def most_connected(self) -> Tensor:
        """Return the node of highest degree of each document, ``[B]``; ties to the lowest; nobody without an edge."""
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
        document, column = (table != self.nobody).nonzero(as_tuple=True)
        return self.node_id(document, table[document, column]), number[column], leads.to(device)[column]


class StoredGraph(RemainingGraph):
    """An edge list in compressed rows."""

    def __init__(self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None) -> None:
        self.nobody = batch.numel()
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
            return self.batch.new_full((self.batch_size,), self.nobody)
        # Degree and node in one whole number: no float, no tie left open.
        rank = self.degree * size + torch.arange(size - 1, -1, -1, device=self.batch.device)
        best = scatter(rank, self.batch, dim_size=self.batch_size, reduce="max")
        return torch.where(best >= size, size - 1 - best % size, self.nobody)

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
        document = (leader != self.nobody).nonzero().flatten()
        edge, owner = self.edges_of(leader[document])
        # Without strength the order of edges decides: it is the nodes'.
        weight = self.edge_weight[edge] if weighted and self.edge_weight is not None else None
        coin = pair_coin(self.place[self.row[edge]], self.place[self.col[edge]]) if weighted else edge
        chosen, number = strongest(owner, weight, coin, amount)
        width = int(number.max()) + 2 if number.numel() else 1
        circle = leader.new_full((leader.numel(), width), self.nobody)
        circle[:, 0] = leader
        circle[document[owner[chosen]], number + 1] = self.col[edge[chosen]]
        return circle

    def remove_nodes(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_nodes`."""
        circle = circle[circle != self.nobody]
        edge, _ = self.edges_of(circle)
        self.degree.index_add_(0, self.col[edge], torch.full_like(edge, -1))
        self.degree[circle] = 0
        self.has_node[circle] = False

    def remove_edges_among(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_edges_among`."""
        circle = circle[circle != self.nobody]
        inside = torch.zeros_like(self.has_node)
        inside[circle] = True
        edge, _ = self.edges_of(circle)
        edge = edge[inside[self.col[edge]]]
        self.has_edge[edge] = False
        self.degree.index_add_(0, self.row[edge], torch.full_like(edge, -1))

    def node_id(self, document: Tensor, node: Tensor) -> Tensor:
        """See :meth:`RemainingGraph.node_id`."""
        return node


class PaddedGraph(RemainingGraph):
    """Base of the graphs that stand in tables: a node is its place, and the last place is nobody's."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.size, self.width = group.node.shape
        self.nobody = self.width - 1
        self.place = torch.arange(self.width, device=group.node.device)
        self.backwards = self.nobody - self.place
        self.document = torch.arange(self.size, device=group.node.device)
        self.nodes_left: Tensor | None = None  # 1 for nodes that are left, [D, W]; None as long as all are

    def node_id(self, document: Tensor, node: Tensor) -> Tensor:
        """See :meth:`RemainingGraph.node_id`."""
        return self.group.node[document, node]

    def first_of(self, rank: Tensor) -> Tensor:
        """Return the node of each document whose ``rank [D]``, degree * W + W - 1 - place, is highest."""
        return torch.where(rank >= self.width, self.nobody - rank % self.width, self.nobody)

    def take(self, circle: Tensor, dtype: torch.dtype) -> None:
        """Mark the members as no longer there."""
        if self.nodes_left is None:
            self.nodes_left = self.group.inside.to(dtype)
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
        circle = torch.full((self.size, 1 + friends), self.nobody, device=leader.device)
        circle.scatter_(1, column, self.place.expand_as(column))
        circle[:, 0] = leader
        if friends > amount:
            if weighted:
                weight = self.group.weight(leader, circle[:, 1:])
                weight.masked_fill_(circle[:, 1:] == self.nobody, -1.0)
                best = strongest_first(weight, pair_coin(leader[:, None], circle[:, 1:]))[:, :amount]
                return torch.cat([leader[:, None], circle.gather(1, best + 1)], 1)
            circle = circle[:, : 1 + amount]
        return circle

    def rows(self, node: Tensor) -> Tensor:
        """Return with whom a node of each document has edges left, ``[D, W]``, 1 for friends.

        Removed nodes are not left out. The caller owns what is returned.
        """
        raise NotImplementedError


class DenseGraph(PaddedGraph):
    """A matrix of bytes for each document."""

    def __init__(self, group: Group) -> None:
        super().__init__(group)
        matrix = group.dense()
        self.matrix = matrix.flatten(0, 1)
        self.rank = self.backwards.expand_as(group.node).clone()  # degree * W + W - 1 - place
        self.first = self.width * self.document[:, None]
        self.subtract(-1, matrix)

    def subtract(self, sign: int, rows: Tensor) -> None:
        """Lower degrees by the friends in ``rows [D, m, W]``; friendship is mutual, so columns are summed."""
        for part in torch.split(rows, 255, 1):  # so many zeros and ones can be added up as bytes, which is fast
            self.rank.sub_(part.sum(1, dtype=torch.uint8), alpha=sign * self.width)

    def most_connected(self) -> Tensor:
        """See :meth:`RemainingGraph.most_connected`."""
        return self.first_of(self.rank.amax(1))

    def rows(self, node: Tensor) -> Tensor:
        """See :meth:`PaddedGraph.rows`."""
        return self.matrix.index_select(0, self.first[:, 0] + node)

    def remove_edges_among(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_edges_among`."""
        place = self.width * (self.first + circle)[:, :, None] + circle[:, None, :]
        cells = self.matrix.view(-1)
        lost = cells.index_select(0, place.flatten()).view_as(place)
        self.rank.scatter_add_(1, circle, lost.sum(2) * -self.width)
        cells.index_fill_(0, place.flatten(), 0)

    def remove_nodes(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_nodes`."""
        rows = self.matrix.index_select(0, (self.first + circle).flatten())
        self.subtract(1, rows.view(*circle.shape, self.width))
        self.rank.scatter_(1, circle, 0)
        self.take(circle, torch.uint8)


class DrawnGraph(PaddedGraph):
    """Rows drawn on demand: few nodes can have the highest degree, and only these are counted.

    Every node has a number that its degree does not exceed: first a bound on what coins can do (wrong with a chance
    below 1e-12 in a document), then the degree as it was when the node was last looked at. Degrees only fall, so both
    stay valid. Before a leader is named, all nodes whose number may beat the best known degree are looked at.

    Nodes stand in the order of their first bound, highest first, so that those that matter are a prefix.
    """

    #: rows drawn for a document at first; twice as many each time that they were not enough
    first_rows = 32

    def __init__(self, group: Group) -> None:
        super().__init__(group)
        self.degree, self.standing = torch.sort(group.degree_bound(), dim=1, descending=True, stable=True)
        self.bound = -self.degree  # ascending, for searchsorted
        number = self.place.expand_as(self.standing)
        self.order = torch.empty_like(self.standing).scatter_(1, self.standing, number)  # where a place stands
        self.exact = torch.zeros_like(self.standing, dtype=torch.bool)
        self.seen = torch.zeros_like(self.standing)  # the removals of nodes that the degree accounts for
        self.lost = torch.zeros_like(self.standing)  # the edges that are gone among members
        self.removed: list[Tensor] = []  # places of each removal, [D, m]
        self.shared: list[Tensor] = []  # the circles whose edges are gone: a bit for each of a node's, 62 a word
        self.turn = 0

    def most_connected(self) -> Tensor:
        """See :meth:`RemainingGraph.most_connected`."""
        rows, active = self.first_rows, min(self.width, 4 * self.first_rows)
        while True:
            degree, now = self.degree[:, :active], self.seen[:, :active] == len(self.removed)
            rank = degree * self.width + self.backwards[self.standing[:, :active]]
            known = self.exact[:, :active] & now
            best = torch.where(known, rank, 0).amax(1)
            hopeful = (rank > best[:, None]) & (degree > 0) & ~known
            stale, unknown = hopeful & ~now, hopeful & now
            old = (stale & (stale.cumsum(1) <= 16 * rows)).nonzero(as_tuple=True)
            new = (unknown & (unknown.cumsum(1) <= rows)).nonzero(as_tuple=True)
            if old[0].numel():
                self.update(*old)
            if new[0].numel():
                self.draw(*new)
                rows *= 2
            if old[0].numel() + new[0].numel() == 0:
                reach = torch.searchsorted(self.bound, -(best // self.width).clamp(min=1)[:, None], right=True)
                if int(reach.max()) <= active:
                    return self.first_of(best)
                active = int(reach.max())

    def draw(self, document: Tensor, number: Tensor) -> None:
        """Count the friends of nodes."""
        place = self.standing[document, number]
        for part in self.parts(document, self.width):
            friend = self.group.hits(document[part], place[part])
            if self.nodes_left is not None:
                friend &= self.nodes_left if self.size == 1 else self.nodes_left.index_select(0, document[part])
            self.degree[document[part], number[part]] = friend.sum(1, dtype=torch.int32).long()
        self.degree[document, number] -= self.lost[document, number]
        self.exact[document, number] = True

    def update(self, document: Tensor, number: Tensor) -> None:
        """Subtract the friends that left since the nodes were last looked at."""
        place, seen = self.standing[document, number], self.seen[document, number]
        first = int(seen.min())
        gone = torch.cat(self.removed[first:], 1)
        turn = [torch.full((places.size(1),), first + i) for i, places in enumerate(self.removed[first:])]
        turns = torch.cat(turn).to(place.device)
        for part in self.parts(document, gone.size(1)):
            friend = self.group.hits(document[part], place[part], gone) * (turns >= seen[part, None])
            self.degree[document[part], number[part]] -= friend.sum(1, dtype=torch.int32)
        self.seen[document, number] = len(self.removed)

    def parts(self, document: Tensor, width: int) -> tuple[Tensor, ...]:
        """Cut the numbers of rows of that width in blocks."""
        number = torch.arange(document.numel(), device=document.device)
        return torch.split(number, max(1, self.group.block_size // width))

    def rows(self, node: Tensor) -> Tensor:
        """See :meth:`PaddedGraph.rows`."""
        friend = self.group.hits(self.document, node)
        for word in self.shared:
            friend &= (word.gather(1, node[:, None]) & word) == 0
        return friend

    def remove_edges_among(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_edges_among`."""
        document = self.document.repeat_interleave(circle.size(1))
        lost = self.group.hits(document, circle.flatten(), circle).view(*circle.shape, -1)
        for word in self.shared:
            own = word.gather(1, circle)
            lost &= (own[:, :, None] & own[:, None, :]) == 0
        count = lost.sum(2, dtype=torch.int32).long()
        number = self.order.gather(1, circle)
        self.lost.scatter_add_(1, number, count)
        self.degree.scatter_add_(1, number, -count)
        if self.turn % 62 == 0:
            self.shared.append(torch.zeros_like(self.group.node))
        word, bit = self.shared[-1], 1 << (self.turn % 62)
        word.scatter_(1, circle, word.gather(1, circle) | bit)  # nobody's place gets the bit, too, and has no edge
        self.turn += 1

    def remove_nodes(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_nodes`."""
        self.removed.append(circle)
        self.take(circle, torch.int32)
        self.degree.scatter_(1, self.order.gather(1, circle), 0)
