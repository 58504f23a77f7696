"""Words that keep company in the collection are friends in the document."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity, fixed
from socialgraph.edges.layout import documents
from socialgraph.edges.pattern import Pattern
from socialgraph.edges.statistics import NeighbourCounts, statistics_of
from socialgraph.edges.word_table import Words, WordTable
from socialgraph.errors import check_whole
from socialgraph.kernels import FACTOR_STEP


class Pmi(Pattern):
    r"""P is the normalised pointwise mutual information of the two words, wherever they stand.

    .. math::
        P(i, j) = \max\Bigl(0, \frac{\ln \frac{p(s, t)}{p(s) p(t)}}{-\ln p(s, t)}\Bigr), \quad
        p(s, t) = \frac{n(s, t)}{n}, \; p(s) = \frac{n(s)}{n}, \quad s = x_i, t = x_j

    with n(s, t) how often the collection has s and t within ``window`` places, n(s) and n its sums. 1: where one of the
    words stands the other is always near; 0: no more often than by chance, or seen together fewer than ``least`` times.
    Gerlof Bouma, "Normalized (Pointwise) Mutual Information in Collocation Extraction", GSCL 2009; between the words of
    a document as a graph: Liang Yao, Chengsheng Mao and Yuan Luo, "Graph Convolutional Networks for Text
    Classification", AAAI 2019.

    The collection is counted once, when the first graph is drawn; with a cache on disk the counts are kept. A document
    of u different word pieces costs u^2 look-ups.

    Args:
        window: places that count as near.
        least: pairs that the collection has less often say nothing.

    Raises:
        OptionError: window < 1 or least < 1.
    """

    def __init__(self, window: int = 8, least: int = 5) -> None:
        super().__init__()
        check_whole("window", window, 1)
        check_whole("least", least, 1)
        self.window = window
        self.least = least

    def forward(self, graph: Data) -> Affinity:
        """Return the probabilities of all pairs.

        Raises:
            OptionError: the graph has no statistics, or their texts are gone.
        """
        counts = statistics_of(graph).pairs(self.window, self.least)

        def table(words: Words) -> Tensor:
            piece = words.piece.cpu()  # where the counts are
            one, other = words.pairs
            return npmi(counts, piece[one.cpu()], piece[other.cpu()]).to(words.piece.device)

        return WordTable.of(*documents(graph), graph.input_ids, table)


def npmi(counts: NeighbourCounts, s: Tensor, t: Tensor) -> Tensor:
    """Return the normalised pointwise mutual information of word pieces, not below 0: float64, as ``s`` and ``t``.

    Rounded, so that sums of it are exact on every device.
    """
    together = counts(s, t).double()
    apart = counts.frequency[s].double() * counts.frequency[t].double()
    seen = together > 0
    joint = torch.where(seen, together / max(counts.total, 1), 0.5)
    mutual = torch.where(seen, together * counts.total / apart.clamp(min=1), 1.0).log()
    return fixed((mutual / (-joint.log()).clamp(min=1e-12)).clamp(0.0, 1.0), FACTOR_STEP)
