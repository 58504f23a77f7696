"""Static distance: neighbours know each other."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.layout import documents, longest
from socialgraph.edges.pattern import Pattern
from socialgraph.errors import OptionError


class StaticDistance(Pattern):
    r"""The inverse square law of distance (paper, equation 1).

    .. math:: P_{sd}(i, j) = \frac{1}{(1 + |i - j| / p)^2}

    Args:
        p: range of the law, in tokens.

    Raises:
        OptionError: p is not positive.
    """

    def __init__(self, p: float = 50.0) -> None:
        super().__init__()
        if not p > 0:
            raise OptionError(f"p must be positive, got {p}")
        self.p = p

    def kernel(self, width: int, device: torch.device) -> Tensor:
        """Return the law at distances 0 ... width - 1."""
        distance = torch.arange(width, dtype=torch.float64, device=device)
        # A GPU takes the product with 1 / p for a division by a number that is no tensor of its own.
        return 1.0 / torch.square(1.0 + distance / torch.full_like(distance[:1], float(self.p)))

    def forward(self, graph: Data) -> Affinity:
        """Return the law for all pairs of every document of ``graph``."""
        batch, ptr = documents(graph)
        return LowRank(batch, ptr, kernel=self.kernel(longest(ptr), ptr.device))
