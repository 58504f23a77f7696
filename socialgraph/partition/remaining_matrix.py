"""What is left of short documents: a matrix of bytes for each."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.partition.remaining_graph import RemainingTable
from socialgraph.partition.sampled import SampledRows


class RemainingMatrix(RemainingTable):
    """All rows, drawn once, with the degree of every node kept up to date."""

    def __init__(self, sampled: SampledRows) -> None:
        super().__init__(sampled)
        matrix = sampled.matrix()
        self.matrix = matrix.flatten(0, 1)
        self.rank = self.backwards.expand_as(sampled.node).clone()  # degree * W + backwards
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
        """See :meth:`RemainingTable.rows`."""
        return self.matrix.index_select(0, self.first[:, 0] + node)

    def remove_edges_among(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_edges_among`."""
        place = torch.add(circle.unsqueeze(1), (self.first + circle).unsqueeze(2), alpha=self.width)
        cells, number = self.matrix.view(-1), place.flatten()
        lost = cells.index_select(0, number).view_as(place)
        self.rank.scatter_add_(1, circle, lost.sum(2) * -self.width)
        cells.index_fill_(0, number, 0)

    def remove_nodes(self, circle: Tensor) -> None:
        """See :meth:`RemainingGraph.remove_nodes`."""
        rows = self.matrix.index_select(0, (self.first + circle).flatten())
        self.subtract(1, rows.view(*circle.shape, self.width))
        self.rank.scatter_(1, circle, 0)
        self.mark_removed(circle, torch.uint8)
