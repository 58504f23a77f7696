"""Expected circles: friend circles of those who may expect most friends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from socialgraph.partition.partition import Partition, check_sizes
from socialgraph.partition.remaining import Drawable, Group, PaddedGraph, StoredGraph


class Expectant(Drawable, Protocol):
    """A graph that draws its own rows and knows how many friends to expect, such as a ``LazyGraph``."""

    @property
    def expected(self) -> Tensor:
        """Each node's expected degree, ``[N]``."""
        ...


class ExpectedCircles(Partition):
    """Friend circles whose leaders are named before the graph is drawn, so that only ``k`` of its rows are.

    k times: of the nodes in no circle yet, the one of highest expected degree (of equals, the lowest) becomes the
    leader; the leader and its strongest ``max_size - 1`` friends (of equals, a coin of the pair decides, see
    :mod:`socialgraph.partition.ties`) are the circle. Members may meet again in later circles, but leaders are always
    new faces: without this rule circles would pile up around a few neighbouring words. A leader that the coins leave
    without friends leads no circle, so a document may get fewer than k.

    Different from the paper's friend circles (Section 3.2): expected instead of drawn degrees, and nothing is removed
    from the graph.

    Expected degrees are known of a graph that draws its own edges, see :attr:`socialgraph.edges.LazyGraph.expected`.
    Given a list of edges, the sum of the weights of a node's edges (their number where there are none) stands for it:
    a worse guess, because edges that were not drawn are missing, with other leaders. Nodes without an edge then lead
    no circle.

    Args:
        k: number of circles of a document at most.
        max_size: members of a circle at most, the leader included.

    Raises:
        OptionError: k < 1 or max_size < 2.
    """

    takes_lazy = True
    needs_lazy = True

    def __init__(self, k: int = 16, max_size: int = 128) -> None:
        super().__init__()
        check_sizes(k, max_size)
        self.k = k
        self.max_size = max_size

    def forward(
        self, edge_index: Tensor | Expectant, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the circles of every document; see :meth:`Partition.forward`.

        Args:
            edge_index: a graph that draws its own edges, or the edges.
            batch: document of each node, sorted, ``[N]``.
            batch_size: number of documents.
            edge_weight: strength of each edge, ``[E]``; a graph that draws its own knows it.
        """
        graphs: Iterator[StoredHopes | DrawnHopes]
        if isinstance(edge_index, Tensor):
            graphs = iter([StoredHopes(edge_index, batch, batch_size, edge_weight)])
        else:
            hope = ranks(edge_index.expected)
            graphs = (DrawnHopes(group, hope) for group in edge_index.groups())
        # A circle's name is document * k + turn: found turn by turn, numbered document by document.
        k = min(self.k, max(batch.numel(), 1))  # a document has no more circles than nodes
        chief = batch.new_full((batch_size * k,), -1)
        nodes, homes = [batch.new_empty(0)], [batch.new_empty(0)]
        for graph in graphs:
            circles: list[Tensor] = []
            while len(circles) < k:
                leader = graph.most_connected()
                circle = graph.circle(leader, self.max_size - 1, True)
                if circle.size(1) == 1 and bool((leader == graph.nobody).all()):  # without friends one may still lead
                    break
                graph.lose_hope(circle)
                circles.append(circle)
            if circles:
                node, turn, leads = graph.members(circles)
                nodes.append(node)
                homes.append(batch[node] * k + turn)
                chief[homes[-1][leads]] = node[leads]
        node, home = torch.cat(nodes), torch.cat(homes)
        real = torch.bincount(home, minlength=chief.numel()) > 1
        node, home = node[real[home]], home[real[home]]
        order = torch.argsort(home * max(batch.numel(), 1) + node)
        return torch.stack([node, (real.cumsum(0) - 1)[home]])[:, order], chief[real]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(k={self.k}, max_size={self.max_size})"


class StoredHopes(StoredGraph):
    """An edge list in which ranks by expected degree stand where degrees stood."""

    def __init__(self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None) -> None:
        super().__init__(edge_index, batch, batch_size, edge_weight)
        weight = torch.ones_like(self.row) if edge_weight is None else edge_weight
        # whole numbers, so that the order of the sum does not matter
        expected = scatter((weight.double() * 2.0**30).round().long(), self.row, dim_size=batch.numel())
        self.degree = torch.where(self.degree > 0, ranks(expected), 0)

    def lose_hope(self, circle: Tensor) -> None:
        """Let no member lead a later circle."""
        self.degree[circle[circle != self.nobody]] = 0


class DrawnHopes(PaddedGraph):
    """Rows drawn when somebody asks; ranks by expected degree are known from the start."""

    def __init__(self, group: Group, hope: Tensor) -> None:
        super().__init__(group)
        self.rank = torch.where(group.inside, hope[group.node], 0) * self.width + self.backwards

    def most_connected(self) -> Tensor:
        """See :meth:`RemainingGraph.most_connected`."""
        return self.first_of(self.rank.amax(1))

    def rows(self, node: Tensor) -> Tensor:
        """See :meth:`PaddedGraph.rows`."""
        return self.group.hits(self.document, node)

    def lose_hope(self, circle: Tensor) -> None:
        """Let no member lead a later circle."""
        self.rank.scatter_(1, circle, 0)


def ranks(expected: Tensor) -> Tensor:
    """Return a whole number from 1 for each node: the higher, the more it expects; of equals the first has most."""
    rank = torch.empty_like(expected, dtype=torch.long)
    order = torch.argsort(expected, descending=True, stable=True)
    rank[order] = torch.arange(expected.numel(), 0, -1, device=expected.device)
    return rank
