"""What is left of a graph while circles are taken out of it: three ways to know, one result.

An edge list (:class:`StoredGraph`) serves every graph. A graph that draws its own rows is kept as a matrix of bytes
where documents are short (:class:`DenseGraph`) and drawn row by row where they are long (:class:`DrawnGraph`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.utils import scatter
from torch_geometric.utils.sparse import index2ptr


class Group(Protocol):
    """Documents of similar length whose edges can be drawn, such as :class:`socialgraph.edges.LazyGroup`.

    A node is named by its document's row d in tables ``[D, W]`` and its place w; the last place is nobody's.
    """

    node: Tensor
    inside: Tensor
    short: bool

    def dense(self) -> Tensor:
        """Return the whole matrix of each document, ``[D, W, W]`` int8, 1 for friends."""
        ...

    def degree_bound(self) -> Tensor:
        """Return what no node's degree exceeds, ``[D, W]`` int64."""
        ...

    def hits(self, document: Tensor, place: Tensor, column: Tensor | None = None) -> Tensor:
        """Return the friends of nodes ``[R]`` among all, or among ``column [D, n]``: int32, 1 for friends."""
        ...

    def count(self, document: Tensor, place: Tensor, among: Tensor) -> Tensor:
        """Return the number of friends of nodes ``[R]`` among a mask ``[D, W]`` int32: ``[R]`` int64."""
        ...

    def weight(self, document: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """Return the weights of edges between places i and j, float32."""
        ...


class Drawable(Protocol):
    """A graph that draws its own rows, such as :class:`socialgraph.edges.LazyGraph`."""

    def groups(self) -> Iterator[Group]:
        """Walk over the documents that may have edges, in groups of similar length."""
        ...


class RemainingGraph:
    """Base of the three. All documents at once; ``leader`` and ``member`` hold nodes of at most one circle each."""

    def most_connected(self) -> Tensor:
        """Return the node of highest degree of each document that has an edge left; ties to the lowest."""
        raise NotImplementedError

    def friends(self, leader: Tensor, amount: int, weighted: bool) -> Tensor:
        """Return the friends that the leaders have left, at most ``amount`` each; see :func:`strongest`."""
        raise NotImplementedError

    def remove_nodes(self, member: Tensor) -> None:
        """Take nodes away, with all their edges."""
        raise NotImplementedError

    def remove_edges_among(self, member: Tensor) -> None:
        """Take the edges between two members of a circle away."""
        raise NotImplementedError

    def node_id(self, node: Tensor) -> Tensor:
        """Return the ids of nodes as the caller knows them."""
        return node


class StoredGraph(RemainingGraph):
    """An edge list in compressed rows."""

    def __init__(self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None) -> None:
        self.row, self.col = edge_index[0], edge_index[1]
        self.batch, self.batch_size = batch, batch_size
        self.edge_weight = edge_weight
        self.ptr = index2ptr(self.row, batch.numel())
        self.degree = self.ptr.diff()
        self.has_edge = torch.ones_like(self.row, dtype=torch.bool)
        self.has_node = torch.ones_like(self.degree, dtype=torch.bool)

    def most_connected(self) -> Tensor:
        """See :meth:`RemainingGraph.most_connected`."""
        size = self.batch.numel()
        if size == 0:
            return self.batch
        # Degree and node in one whole number: no float, no tie left open.
        rank = self.degree * size + torch.arange(size - 1, -1, -1, device=self.batch.device)
        best = scatter(rank, self.batch, dim_size=self.batch_size, reduce="max")
        return (size - 1 - best % size)[best >= size]

    def edges_of(self, node: Tensor) -> tuple[Tensor, Tensor]:
        """Return the remaining edges that leave the nodes, and for each the index into ``node``."""
        count = self.ptr[node + 1] - self.ptr[node]
        owner = torch.repeat_interleave(count)
        first = self.ptr[node] - (count.cumsum(0) - count)
        edge = torch.arange(owner.numel(), device=node.device) + first[owner]
        left = self.has_edge[edge] & self.has_node[self.col[edge]]
        return edge[left], owner[left]

    def friends(self, leader: Tensor, amount: int, weighted: bool) -> Tensor:
        """See :meth:`RemainingGraph.friends`."""
        edge, owner = self.edges_of(leader)
        weight = self.edge_weight[edge] if weighted and self.edge_weight is not None else None
        return self.col[edge[strongest(owner, weight, amount)]]

    def remove_nodes(self, member: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_nodes`."""
        edge, _ = self.edges_of(member)
        self.degree.index_add_(0, self.col[edge], torch.full_like(edge, -1))
        self.degree[member] = 0
        self.has_node[member] = False

    def remove_edges_among(self, member: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_edges_among`."""
        inside = torch.zeros_like(self.has_node)
        inside[member] = True
        edge, _ = self.edges_of(member)
        edge = edge[inside[self.col[edge]]]
        self.has_edge[edge] = False
        self.degree.index_add_(0, self.row[edge], torch.full_like(edge, -1))


class PaddedGraph(RemainingGraph):
    """Base of the graphs that stand in tables; node w of document d is number ``d * W + w``."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.size, self.width = group.node.shape
        self.device = group.node.device
        self.backwards = torch.arange(self.width - 1, -1, -1, device=self.device)

    def node_id(self, node: Tensor) -> Tensor:
        """See :meth:`RemainingGraph.node_id`."""
        return self.group.node.flatten()[node]

    def leaders(self, rank: Tensor) -> Tensor:
        """Return the node of each document with the highest ``rank`` (of the document), which has an edge."""
        document = (rank >= self.width).nonzero().flatten()
        return document * self.width + self.width - 1 - rank[document] % self.width

    def friends(self, leader: Tensor, amount: int, weighted: bool) -> Tensor:
        """See :meth:`RemainingGraph.friends`."""
        document, place = leader // self.width, leader % self.width
        owner, friend = self.friends_left(document, place).nonzero(as_tuple=True)
        weight = self.group.weight(document[owner], place[owner], friend) if weighted else None
        chosen = strongest(owner, weight, amount)
        return document[owner[chosen]] * self.width + friend[chosen]

    def friends_left(self, document: Tensor, place: Tensor) -> Tensor:
        """Return whom the nodes still have as friends: ``[R, W]``, not zero for friends."""
        raise NotImplementedError

    def circles(self, member: Tensor) -> Tensor:
        """Return the members' places in each document, ``[D, m]``; nobody's place where there are no more."""
        member = member.sort().values
        document = member // self.width
        count = torch.bincount(document, minlength=self.size)
        number = torch.arange(member.numel(), device=self.device) - (count.cumsum(0) - count)[document]
        place = torch.full((self.size, int(count.max())), self.width - 1, device=self.device)
        place[document, number] = member % self.width
        return place


class DenseGraph(PaddedGraph):
    """A matrix of bytes for each document."""

    def __init__(self, group: Group) -> None:
        super().__init__(group)
        self.matrix = group.dense()
        self.degree = self.matrix.sum(2, dtype=torch.int32)
        self.has_node = group.inside.to(torch.int8)
        self.first = self.width * torch.arange(self.size, device=self.device)[:, None]

    def most_connected(self) -> Tensor:
        """See :meth:`RemainingGraph.most_connected`."""
        return self.leaders((self.degree.long() * self.width + self.backwards).amax(1))

    def friends_left(self, document: Tensor, place: Tensor) -> Tensor:
        """See :meth:`PaddedGraph.friends_left`."""
        return self.rows(document * self.width + place) & self.has_node[document]

    def rows(self, node: Tensor) -> Tensor:
        """Return rows of the matrices, ``[R, W]``."""
        return self.matrix.flatten(0, 1).index_select(0, node)

    def remove_nodes(self, member: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_nodes`."""
        node = self.first + self.circles(member)
        self.degree -= self.rows(node.flatten()).view(*node.shape, self.width).sum(1, dtype=torch.int32)
        self.degree.view(-1)[member] = 0
        self.has_node.view(-1)[member] = 0

    def remove_edges_among(self, member: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_edges_among`."""
        place = self.circles(member)
        node = self.first + place
        pair = (node * self.width)[:, :, None] + place[:, None, :]
        lost = self.matrix.view(-1)[pair].sum(2, dtype=torch.int32)
        self.degree.view(-1).index_add_(0, node.flatten(), lost.flatten(), alpha=-1)
        self.matrix.view(-1)[pair] = 0


class DrawnGraph(PaddedGraph):
    """Rows drawn on demand: few nodes can have the highest degree, and only these are counted.

    Every node has a number that its degree does not exceed: first a bound on what coins can do (wrong with a chance
    below 1e-12 in a document), then the degree as it was when the node was last looked at. Degrees only fall, so both
    stay valid. Before a leader is named, all nodes whose number may beat the best known degree are looked at.

    Nodes stand in the order of their first bound, highest first, so that those that matter are a prefix.
    """

    #: rows drawn for a document at first; twice as many each time that they were not enough
    rows = 32

    def __init__(self, group: Group) -> None:
        super().__init__(group)
        self.degree, self.place = torch.sort(group.degree_bound(), dim=1, descending=True, stable=True)
        self.bound = -self.degree  # ascending, for searchsorted
        number = torch.arange(self.width, device=self.device).expand_as(self.place)
        self.order = torch.empty_like(self.place).scatter_(1, self.place, number)  # where a place stands
        self.exact = torch.zeros_like(self.place, dtype=torch.bool)
        self.seen = torch.zeros_like(self.place)  # removals of nodes that the degree accounts for
        self.has_node = group.inside.int()
        self.removed: list[Tensor] = []  # places of each removal, [D, m]
        self.lost = torch.zeros_like(self.place)  # edges that are gone among members, by place
        self.shared: list[Tensor] = []  # the circles that a node was in as bits, 62 a word, [D, W] each
        self.turn = 0

    def most_connected(self) -> Tensor:
        """See :meth:`RemainingGraph.most_connected`."""
        rows, active = self.rows, min(self.width, 4 * self.rows)
        while True:
            degree, now = self.degree[:, :active], self.seen[:, :active] == len(self.removed)
            rank = degree * self.width + self.backwards[self.place[:, :active]]
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
            reach = torch.searchsorted(self.bound, -(best // self.width).clamp(min=1)[:, None], right=True)
            if old[0].numel() + new[0].numel() == 0:
                if int(reach.max()) <= active:
                    return self.leaders(best)
                active = int(reach.max())

    def draw(self, document: Tensor, number: Tensor) -> None:
        """Count the friends of nodes."""
        place = self.place[document, number]
        self.degree[document, number] = self.group.count(document, place, self.has_node) - self.lost[document, place]
        self.exact[document, number] = True

    def update(self, document: Tensor, number: Tensor) -> None:
        """Subtract the friends that left since the nodes were last looked at."""
        place, seen = self.place[document, number], self.seen[document, number]
        first = int(seen.min())
        gone = torch.cat(self.removed[first:], 1)
        turn = torch.repeat_interleave(
            torch.arange(first, len(self.removed), device=self.device),
            torch.tensor([part.size(1) for part in self.removed[first:]], device=self.device),
        )
        step = max(1, (1 << 17) // gone.size(1))
        for part in torch.arange(document.numel(), device=self.device).split(step):
            hit = self.group.hits(document[part], place[part], gone)
            lost = (hit * (turn >= seen[part, None])).sum(1)
            self.degree[document[part], number[part]] -= lost
        self.seen[document, number] = len(self.removed)

    def friends_left(self, document: Tensor, place: Tensor) -> Tensor:
        """See :meth:`PaddedGraph.friends_left`."""
        friend = self.group.hits(document, place) & self.has_node[document]
        for word in self.shared:
            friend *= (word[document, place][:, None] & word[document]) == 0
        return friend

    def remove_nodes(self, member: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_nodes`."""
        self.removed.append(self.circles(member))
        self.has_node.view(-1)[member] = 0
        document = member // self.width
        self.degree[document, self.order.view(-1)[member]] = 0

    def remove_edges_among(self, member: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_edges_among`."""
        place = self.circles(member)
        size, width = place.shape
        document = torch.arange(size, device=self.device)
        lost = self.group.hits(document.repeat_interleave(width), place.flatten(), place).view(size, width, width)
        for word in self.shared:
            own = word.gather(1, place)
            lost *= (own[:, :, None] & own[:, None, :]) == 0
        lost = lost.sum(2)
        self.lost.scatter_add_(1, place, lost)
        self.degree.scatter_add_(1, self.order.gather(1, place), -lost)
        if self.turn % 62 == 0:
            self.shared.append(torch.zeros_like(self.place))
        self.shared[-1].view(-1)[member] |= 1 << (self.turn % 62)
        self.turn += 1


def strongest(owner: Tensor, weight: Tensor | None, amount: int) -> Tensor:
    """Return the numbers of at most ``amount`` edges of each owner: those of highest weight, of equals the first.

    ``owner`` is sorted. Without weights the first ones are chosen.
    """
    order = torch.arange(owner.numel(), device=owner.device)
    if weight is not None:
        order = torch.argsort(weight, descending=True, stable=True)
        order = order[torch.argsort(owner[order], stable=True)]
        owner = owner[order]
    place = torch.arange(owner.numel(), device=owner.device) - torch.searchsorted(owner, owner)
    return order[place < amount]
