"""Random circles: as many and as large as other circles, of anybody."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import cumsum

from socialgraph.partition.friend_circles import EdgeCircles
from socialgraph.partition.partition import Partition, SampledGraph
from socialgraph.partition.ties import mix


class RandomCircles(Partition):
    """Circles of the same number and sizes as those of another partition, with random members and leaders.

    What a model gains from other circles over these is due to who meets, not to how many meet. The n-th circle of a
    document takes as many of its tokens as the n-th circle of ``like``, every set of so many with the same chance,
    whether they have friends or not; the first one drawn leads. (A leader with most friends inside would still say
    something about the graph.)

    The draw is a function of the seed, the document's length, the number of the circle and the places in the document:
    the same alone and in any batch, on any device. Documents of the same length get the same draw.

    Args:
        like: the partition whose sizes are copied; None: ``EdgeCircles(k, max_size)``.
        seed: of the draw.
        k: see ``like``.
        max_size: see ``like``.

    Raises:
        OptionError: k < 1 or max_size < 2.
    """

    def __init__(self, like: Partition | None = None, seed: int = 0, k: int = 16, max_size: int = 128) -> None:
        super().__init__()
        self.k = k
        self.max_size = max_size
        self.like = EdgeCircles(k, max_size) if like is None else like
        self.seed = seed

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None,
        graph: Data | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Return the circles of every document; see :meth:`Partition.forward`. ``like`` may need the graph."""
        like = self.like.gathered(edge_index, batch, batch_size, edge_weight, graph)
        return self._draw(like, batch, batch_size)

    def from_sampled(self, graph: SampledGraph) -> tuple[Tensor, Tensor]:
        """Return the same; ``like`` draws what it needs. See :meth:`Partition.from_sampled`."""
        return self._draw(self.like.from_sampled(graph), graph.batch, graph.batch_size)

    def _draw(self, like: tuple[Tensor, Tensor], batch: Tensor, batch_size: int) -> tuple[Tensor, Tensor]:
        """Return random circles of the number and sizes of these."""
        model, leader = like
        size = torch.bincount(model[1], minlength=leader.numel())
        ptr = cumsum(torch.bincount(batch, minlength=batch_size))
        document = batch[leader]
        number = torch.arange(leader.numel(), device=batch.device)
        number = number - cumsum(torch.bincount(document, minlength=batch_size))[document]
        # For each circle all nodes of its document, shuffled.
        length = ptr.diff()[document]
        circle = torch.repeat_interleave(length)
        place = torch.arange(circle.numel(), device=batch.device) - cumsum(length)[circle]
        key = torch.full_like(place, self.seed)
        for part in (length[circle], number[circle], place):
            key = mix(key + part)
        order = torch.argsort(key, stable=True)
        order = order[torch.argsort(circle[order], stable=True)]
        node = ptr[document[circle]] + place[order]
        drawn = place < size[circle]
        member = circle[drawn] * max(batch.numel(), 1) + node[drawn]
        return torch.stack([node[drawn], circle[drawn]])[:, torch.argsort(member)], node[place == 0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(like={self.like!r}, seed={self.seed})"
