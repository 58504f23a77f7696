"""Sliding window: everybody hears the neighbours."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges.sparse import Hears, Rule
from socialgraph.errors import OptionError


class SlidingWindow(Rule):
    """i hears j where |i - j| <= size / 2: half of the window lies on each side.

    Args:
        size: tokens of the window, at least 2; of an odd size the middle token is i itself.

    Raises:
        OptionError: size < 2.
    """

    def __init__(self, size: int = 128) -> None:
        super().__init__()
        if size < 2:
            raise OptionError(f"the window size must be at least 2, got {size}")
        self.size = size

    def forward(self, graph: Data) -> Hears:
        """Return who is near whom; the nodes of a document are consecutive, so their ids tell."""

        def hears(i: Tensor, j: Tensor) -> Tensor:
            return (i - j).abs_() <= self.size // 2

        return hears
