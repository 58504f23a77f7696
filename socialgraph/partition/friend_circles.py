"""Greedy friend circles: again and again the node with most friends gathers them around itself."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from socialgraph.errors import check_choice
from socialgraph.partition.partition import Partition, check_graph, check_sizes
from socialgraph.partition.remaining_graph import RemainingEdges, RemainingGraph
from socialgraph.partition.remaining_matrix import RemainingMatrix
from socialgraph.partition.remaining_rows import RemainingRows
from socialgraph.partition.sampled import SampledGraph

RULES = ("strongest", "first")


class FriendCircles(Partition):
    """The greedy algorithm of the paper's section 3.2, over sparse edges, all documents at once.

    k times: the node of highest remaining degree (of equals, the lowest) becomes the leader; the leader and
    the friends it has left are the circle; then a subclass removes what the next circles may not share.
    A node without friends left leads no circle, so a document may get fewer than k.

    Args:
        k: number of circles of a document at most.
        max_size: members of a circle at most, the leader included.
        keep: which friends stay when there are more. "strongest": those of highest edge weight; of equals,
            and without weights all are, a coin of the pair decides (:mod:`socialgraph.partition.ties`), so that no
            place in the document is favoured. "first": the lowest, as in the released code, which pulls every circle
            to the start of a long document.

    Raises:
        OptionError: k < 1, max_size < 2, or an unknown rule.
    """

    def __init__(self, k: int = 16, max_size: int = 128, keep: str = "strongest") -> None:
        super().__init__()
        check_sizes(k, max_size)
        check_choice("keep", keep, RULES)
        self.k = k
        self.max_size = max_size
        self.keep = keep
        self.by_place = keep == "first"

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the circles of every document; see :meth:`Partition.forward`.

        Raises:
            InputError: edges out of order, see :func:`~socialgraph.partition.partition.check_graph`.
        """
        check_graph(edge_index, batch, batch_size, edge_weight)
        return self._gather([RemainingEdges(edge_index, batch, batch_size, edge_weight)], batch)

    def from_sampled(self, graph: SampledGraph) -> tuple[Tensor, Tensor]:
        """Return the same circles; of long documents few rows are drawn. See :meth:`Partition.from_sampled`."""
        groups = (RemainingMatrix(rows) if rows.as_matrix else RemainingRows(rows) for rows in graph.groups())
        return self._gather(groups, graph.batch)

    def _gather(self, graphs: Iterable[RemainingGraph], batch: Tensor) -> tuple[Tensor, Tensor]:
        """Take circles out of graphs, which hold some documents of the batch each."""
        none = batch.new_empty(0)
        nodes, names, leads = [none], [none], [none.bool()]
        for graph in graphs:
            circles: list[Tensor] = []
            while len(circles) < self.k:
                circle = graph.circle(graph.most_connected(), self.max_size - 1, self.keep == "strongest")
                if circle.size(1) == 1:
                    break
                self.remove(graph, circle)
                circles.append(circle)
            if circles:
                node, turn, leading = graph.members(circles)
                nodes.append(node)
                names.append(batch[node] * self.k + turn)
                leads.append(leading)
        # Gathered turn by turn over all documents, numbered document by document.
        node, name, leading = torch.cat(nodes), torch.cat(names), torch.cat(leads)
        leader, order = node[leading], torch.argsort(name[leading])
        number = torch.searchsorted(name[leading][order], name)
        place = torch.argsort(number * max(batch.numel(), 1) + node)
        return torch.stack([node, number]).index_select(1, place), leader[order]

    def remove(self, graph: RemainingGraph, circle: Tensor) -> None:
        """Take what the circles do not share out of ``graph``: one circle of each document that has one."""
        raise NotImplementedError
