"""What a pattern may ask of the collection its document comes from."""

from __future__ import annotations

from typing import Protocol, cast

from torch import Tensor
from torch_geometric.data import Data

from socialgraph.errors import OptionError


class NeighbourCounts(Protocol):
    """How often word pieces stand near each other; :class:`socialgraph.data.statistics.PairCounts` is one."""

    frequency: Tensor  #: neighbours of each word piece, ``[V]``
    total: int  #: their sum

    def __call__(self, s: Tensor, t: Tensor) -> Tensor:
        """Return how often t stands near s, for word pieces that broadcast."""
        ...


class CollectionStatistics(Protocol):
    """What a collection says of its word pieces; :class:`socialgraph.data.TermStatistics` is one. On the CPU."""

    document_frequency: Tensor  #: number of documents that hold each word piece, ``[V]``
    size: int  #: number of documents
    idf: Tensor  #: ln((1 + size) / (1 + document_frequency)), ``[V]`` float64

    def pairs(self, window: int = 8, least: int = 5) -> NeighbourCounts:
        """Count which word pieces stand within ``window`` places of each other; of pairs at least so many."""
        ...


def statistics_of(graph: Data) -> CollectionStatistics:
    """Return the statistics of the collection that a graph's documents come from.

    A batch has them while its edges and circles are drawn, and afterwards where edges are kept.

    Raises:
        OptionError: the graph has none.
    """
    if "statistics" not in graph:
        raise OptionError(
            "a pattern asks for the collection's statistics, which this graph does not have: "
            "set graph.statistics = builder.statistics"
        )
    return cast(CollectionStatistics, graph.statistics)
