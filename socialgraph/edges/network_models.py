"""Network models that know nothing but distance and the query: uniform, near, small-world and star graphs."""

from __future__ import annotations

import math

import torch
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.layout import documents, longest
from socialgraph.edges.pattern import Pattern
from socialgraph.errors import OptionError, check_whole, is_whole
from socialgraph.query_match import query_match


class Uniform(Pattern):
    """P(i, j) = 1 for every pair: the paper's ablation with random edges (table 2)."""

    def forward(self, graph: Data) -> Affinity:
        """Return 1 for all pairs of every document of ``graph``."""
        batch, ptr = documents(graph)
        return LowRank(batch, ptr, constant=torch.ones(ptr.numel() - 1, device=ptr.device))


class Nearby(Pattern):
    r"""A sliding window as a pattern.

    .. math:: P(i, j) = [|i - j| \le width]

    Alone, it gives no friend outside the window: where the sparsity asks for more ties than there are in it, everybody
    within reach is a friend and the graph is sparser than asked for. Iz Beltagy, Matthew E. Peters and Arman Cohan,
    "Longformer: The Long-Document Transformer", 2020, has such edges as a rule, see
    :class:`~socialgraph.edges.SlidingWindow`; a pattern can be mixed with others and scaled.

    Args:
        width: tokens that are within reach on each side.

    Raises:
        OptionError: width < 1.
    """

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        check_whole("width", width, 1)
        self.width = width

    def forward(self, graph: Data) -> Affinity:
        """Return who is near whom in every document of ``graph``."""
        batch, ptr = documents(graph)
        return LowRank(batch, ptr, kernel=torch.arange(longest(ptr), device=ptr.device) <= self.width)


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
        distance = torch.arange(longest(ptr), dtype=torch.float64, device=ptr.device).clamp(min=1.0)
        return LowRank(batch, ptr, kernel=distance ** -float(self.r))


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
        near = torch.arange(longest(ptr), device=ptr.device) <= half
        reach = torch.minimum(length - 1, torch.full_like(length, half))
        ties = reach * length - reach * (reach + 1) // 2  # l - d pairs at each distance d up to the reach
        share = ties / (length * (length - 1) / 2).clamp(min=1.0).double()
        return LowRank(batch, ptr, kernel=(1.0 - self.rewire) * near.double(), constant=self.rewire * share)


class QueryToAll(Pattern):
    r"""A pair is likely where one of the two is a word of the query.

    .. math:: P(i, j) = 1 - (1 - m_i) (1 - m_j) = m_i + m_j - m_i m_j

    with m = 1 for tokens that are also tokens of the query and 0 for others. It abstains where the document has none.

    Jyun-Yu Jiang, Chenyan Xiong, Chia-Jung Lee and Wei Wang, "Long Document Ranking with Query-Directed Sparse
    Transformer", Findings of EMNLP 2020, lets the query attend everywhere. Different here: the query is not part of the
    graph, its words where the document says them are; and P can be mixed with other patterns and scaled.
    """

    def forward(self, graph: Data) -> Affinity:
        """Return the pairs with a query's word in every document of ``graph``."""
        batch, ptr = documents(graph)
        match = query_match(graph, batch).double()
        return LowRank(batch, ptr, row=match, factor=match[:, None], sign=(-1.0,))
