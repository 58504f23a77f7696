"""Kleinberg: the farther, the fewer, at every scale."""

from __future__ import annotations

import math

import torch
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.layout import documents
from socialgraph.edges.pattern import Pattern
from socialgraph.errors import OptionError


class Kleinberg(Pattern):
    r"""A power law of distance.

    .. math:: P(i, j) = |i - j|^{-r}

    0 is uniform; the larger r, the nearer the friends. On a line, whoever passes a message on to the friend nearest to
    its aim needs fewest steps at r = 1.

    Jon M. Kleinberg, "Navigation in a small world", Nature 406, 2000. Different here: a text is a line, not a grid;
    nobody is sure of its neighbours once P is scaled to a sparsity; and a word's friends are not counted out: words in
    the middle of a text have more than those at its ends. (:class:`StaticDistance` is a law of square distance that is
    flat below its range p.)

    Args:
        r: exponent.

    Raises:
        OptionError: r is negative or not finite.
    """

    def __init__(self, r: float = 1.0) -> None:
        super().__init__()
        if not (math.isfinite(r) and r >= 0):
            raise OptionError(f"r must be finite and not negative, got {r}")
        self.r = r

    def forward(self, graph: Data) -> Affinity:
        """Return the law for all pairs of every document of ``graph``."""
        batch, ptr = documents(graph)
        width = int(ptr.diff().max()) if ptr.numel() > 1 else 0
        distance = torch.arange(width, dtype=torch.float64, device=ptr.device).clamp(min=1.0)
        return LowRank(batch, ptr, kernel=distance ** -float(self.r))
