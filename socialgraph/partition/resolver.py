"""A partition by name, by class or as it is."""

from __future__ import annotations

import inspect
from typing import Any

from socialgraph.errors import OptionError
from socialgraph.partition.blocks import Blocks, Sentences
from socialgraph.partition.friend_circles import EdgeCircles, NodeCircles
from socialgraph.partition.k_core import KCore
from socialgraph.partition.label_propagation import LabelPropagation
from socialgraph.partition.metis import Metis
from socialgraph.partition.modularity import Leiden, Louvain
from socialgraph.partition.partition import Partition
from socialgraph.partition.query_windows import QueryWindows
from socialgraph.partition.random_circles import RandomCircles
from socialgraph.partition.spectral import Spectral
from socialgraph.partition.windows import Whole, Windows

PARTITIONS: dict[str, type[Partition]] = {
    "node": NodeCircles,
    "edge": EdgeCircles,
    "windows": Windows,
    "query-windows": QueryWindows,
    "blocks": Blocks,
    "whole": Whole,
    "sentences": Sentences,
    "random": RandomCircles,
    "metis": Metis,
    "louvain": Louvain,
    "leiden": Leiden,
    "label-propagation": LabelPropagation,
    "k-core": KCore,
    "spectral": Spectral,
}


def partition_resolver(query: str | type[Partition] | Partition, **options: Any) -> Partition:
    """Return the partition that ``query`` names.

    Args:
        query: one of the names in ``PARTITIONS`` ("edge", "metis", ...), a subclass of :class:`Partition`, or an
            instance (returned as it is).
        options: arguments of the constructor.

    Raises:
        OptionError: no such name.
    """
    if isinstance(query, Partition):
        return query
    if isinstance(query, type) and issubclass(query, Partition):
        return query(**options)
    if query not in PARTITIONS:
        raise OptionError(f"no partition is called {query!r}; there are {', '.join(PARTITIONS)}")
    return PARTITIONS[query](**options)


def with_k(query: str | type[Partition] | Partition, k: int | None) -> Partition:
    """Return the partition that ``query`` names, with ``k`` circles where its class takes a ``k``.

    Args:
        query: see :func:`partition_resolver`.
        k: None: the class's own.

    Raises:
        OptionError: no such name.
    """
    kind: Any = query if isinstance(query, type) else type(partition_resolver(query))
    options = {"k": k} if k is not None and "k" in inspect.signature(kind).parameters else {}
    return partition_resolver(query, **options)
