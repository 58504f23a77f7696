"""What is left of long documents: rows are drawn on demand, and few are."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.partition.remaining_graph import RemainingTable
from socialgraph.partition.sampled import SampledRows

#: rows drawn for a document at first; twice as many each time that they were not enough
FIRST_ROWS = 32
#: bits of an int64 that are used as flags
WORD = 62


class RemainingRows(RemainingTable):
    """Few nodes can have the highest degree, and only these are counted.

    Every node has a number that its degree does not exceed: first a bound on what coins can do (wrong with a chance
    below 1e-12 in a document), then the degree as it was when the node was last looked at. Degrees only fall, so both
    stay valid. Before a leader is named, all nodes whose number may beat the best known degree are looked at.

    Nodes stand in the order of their first bound, highest first, so that those that matter are a prefix: a *standing*
    names a node's number in this order.

    Removed nodes are a list of places, and what a node loses by them is subtracted when it is looked at. Removed edges
    are those between two members of a circle: a node's circles are the bits of a few whole numbers, and two nodes have
    lost their edge where they share a bit.

    Attributes:
        node_at: the node at each standing, ``[D, W]``; ``standing`` is its inverse.
        degree: at each standing, what the degree does not exceed, ``[D, W]``; as the next three, by standing.
        exact: whether the row was drawn: the degree is then that after ``seen`` removals, not a bound.
        seen: the removals of nodes that the degree accounts for.
        lost: the edges that are gone among members.
        first_bound: minus the first bounds, ascending, for searchsorted.
        removed: places of each removal of nodes, ``[D, m]``.
        shared: a bit for each circle of a node whose edges are gone, :data:`WORD` circles in each table ``[D, W]``.
    """

    def __init__(self, sampled: SampledRows) -> None:
        super().__init__(sampled)
        self.degree, self.node_at = torch.sort(sampled.degree_bound(), dim=1, descending=True, stable=True)
        self.first_bound = -self.degree
        number = self.place.expand_as(self.node_at)
        self.standing = torch.empty_like(self.node_at).scatter_(1, self.node_at, number)
        self.exact = torch.zeros_like(self.node_at, dtype=torch.bool)
        self.seen = torch.zeros_like(self.node_at)
        self.lost = torch.zeros_like(self.node_at)
        self.removed: list[Tensor] = []
        self.shared: list[Tensor] = []
        self.circles = 0  # whose edges are gone

    def most_connected(self) -> Tensor:
        """See :meth:`RemainingGraph.most_connected`."""
        rows, active = FIRST_ROWS, min(self.width, 4 * FIRST_ROWS)
        while True:
            # Of the first `active` standings, in degree * W + backwards: the best that is known for sure, and all that
            # might beat it.
            degree, current = self.degree[:, :active], self.seen[:, :active] == len(self.removed)
            rank = degree * self.width + self.backwards[self.node_at[:, :active]]
            known = self.exact[:, :active] & current
            best = torch.where(known, rank, 0).amax(1)
            hopeful = (rank > best[:, None]) & (degree > 0) & ~known
            # They are looked at, some at a time, the highest bounds first: the best may rise and settle the rest.
            outdated, unknown = hopeful & ~current, hopeful & current
            old = (outdated & (outdated.cumsum(1) <= 16 * rows)).nonzero(as_tuple=True)
            new = (unknown & (unknown.cumsum(1) <= rows)).nonzero(as_tuple=True)
            if old[0].numel():
                self._update(*old)
            if new[0].numel():
                self._draw(*new)
                rows *= 2
            if old[0].numel() + new[0].numel() == 0:
                # Nobody here can beat the best. Behind `active` somebody may whose first bound reaches it.
                reach = torch.searchsorted(self.first_bound, -(best // self.width).clamp(min=1)[:, None], right=True)
                if int(reach.max()) <= active:
                    return self.first_of(best)
                active = int(reach.max())

    def _draw(self, document: Tensor, standing: Tensor) -> None:
        """Count the friends that nodes have left."""
        place = self.node_at[document, standing]
        for part in self._blocks(document, self.width):
            friend = self.sampled.friends(document[part], place[part])
            if self.nodes_left is not None:
                friend &= self.nodes_left if self.size == 1 else self.nodes_left.index_select(0, document[part])
            self.degree[document[part], standing[part]] = friend.sum(1, dtype=torch.int32).long()
        self.degree[document, standing] -= self.lost[document, standing]
        self.exact[document, standing] = True

    def _update(self, document: Tensor, standing: Tensor) -> None:
        """Subtract the friends that left since the nodes were last looked at, from a bound as from a known degree."""
        place, seen = self.node_at[document, standing], self.seen[document, standing]
        first = int(seen.min())
        gone = torch.cat(self.removed[first:], 1)
        turn = [torch.full((places.size(1),), first + i) for i, places in enumerate(self.removed[first:])]
        turns = torch.cat(turn).to(place.device)
        for part in self._blocks(document, gone.size(1)):
            friend = self.sampled.friends(document[part], place[part], gone) * (turns >= seen[part, None])
            self.degree[document[part], standing[part]] -= friend.sum(1, dtype=torch.int32)
        self.seen[document, standing] = len(self.removed)

    def _blocks(self, document: Tensor, width: int) -> tuple[Tensor, ...]:
        """Cut the numbers of rows of that width in blocks."""
        number = torch.arange(document.numel(), device=document.device)
        return torch.split(number, max(1, self.sampled.block_size // width))

    def rows(self, node: Tensor) -> Tensor:
        """See :meth:`RemainingTable.rows`."""
        friend = self.sampled.friends(self.document, node)
        for word in self.shared:
            friend &= (word.gather(1, node[:, None]) & word) == 0
        return friend

    def remove_edges_among(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_edges_among`."""
        document = self.document.repeat_interleave(circle.size(1))
        lost = self.sampled.friends(document, circle.flatten(), circle).view(*circle.shape, -1)
        for word in self.shared:  # what was lost before is not lost again
            own = word.gather(1, circle)
            lost &= (own[:, :, None] & own[:, None, :]) == 0
        count = lost.sum(2, dtype=torch.int32).long()
        standing = self.standing.gather(1, circle)
        self.lost.scatter_add_(1, standing, count)
        self.degree.scatter_add_(1, standing, -count)
        if self.circles % WORD == 0:
            self.shared.append(torch.zeros_like(self.sampled.node))
        word, bit = self.shared[-1], 1 << (self.circles % WORD)
        word.scatter_(1, circle, word.gather(1, circle) | bit)  # the pad gets the bit, too, and has no edge
        self.circles += 1

    def remove_nodes(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_nodes`."""
        self.removed.append(circle)
        self.mark_removed(circle, torch.int32)
        self.degree.scatter_(1, self.standing.gather(1, circle), 0)
