"""Watts and Strogatz: neighbours know each other, and now and then somebody knows a stranger."""

from __future__ import annotations

import torch
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.layout import documents
from socialgraph.edges.pattern import Pattern
from socialgraph.errors import OptionError, is_whole


class WattsStrogatz(Pattern):
    r"""Each word knows its nearest neighbours; a share of these ties is rewired to anybody.

    .. math::
        P(i, j) = (1 - \beta) \, [|i - j| \le k / 2] + \beta \frac{m}{l (l - 1) / 2}

    with m, the number of ties before rewiring: the pairs at most k / 2 apart. The expected number of ties is m for any
    beta; 0 is a lattice, 1 is uniform.

    Duncan J. Watts and Steven H. Strogatz, "Collective dynamics of 'small-world' networks", Nature 393, 1998. Different
    here: a text is a line, not a ring; and this is the expected form, in which pairs are drawn independently of each
    other, where the original moves one end of each rewired tie and draws no tie twice.

    Args:
        neighbours: k, how many a word in the middle of the text knows before rewiring; half of them on each side.
        rewire: beta, the share of ties that are rewired.

    Raises:
        OptionError: neighbours odd or < 2, or rewire outside [0, 1].
    """

    def __init__(self, neighbours: int = 128, rewire: float = 0.1) -> None:
        super().__init__()
        if not is_whole(neighbours, 2) or neighbours % 2:
            raise OptionError(f"neighbours must be even and at least 2, got {neighbours}")
        if not 0.0 <= rewire <= 1.0:
            raise OptionError(f"rewire must lie between 0 and 1, got {rewire}")
        self.neighbours = neighbours
        self.rewire = rewire

    def forward(self, graph: Data) -> Affinity:
        """Return the probabilities of all pairs of every document of ``graph``."""
        batch, ptr = documents(graph)
        length, half = ptr.diff(), self.neighbours // 2
        width = int(length.max()) if length.numel() else 0
        near = torch.arange(width, device=ptr.device) <= half
        reach = torch.minimum(length - 1, torch.full_like(length, half))
        ties = reach * length - reach * (reach + 1) // 2  # l - d pairs at each distance d up to the reach
        share = ties / (length * (length - 1) / 2).clamp(min=1.0).double()
        return LowRank(batch, ptr, kernel=(1.0 - self.rewire) * near.double(), constant=self.rewire * share)
