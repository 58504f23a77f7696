"""What a partition may ask of a graph that draws its own edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from torch import Tensor
from torch_geometric.data import Data


class SampledGraph(Protocol):
    """The edges of a document or of a batch of them, none of which is drawn yet.

    :class:`socialgraph.edges.SocialGraph` is one. What it draws is always the same.
    """

    batch: Tensor  #: document of each node, sorted, ``[N]``
    batch_size: int  #: number of documents, empty ones included
    graph: Data | None  #: the document or the batch whose edges these are

    def edges(self) -> tuple[Tensor, Tensor]:
        """Draw all edges: ``edge_index [2, E]`` and ``edge_weight [E]``, as :meth:`Partition.forward` takes them."""
        ...

    def groups(self) -> Iterator[SampledRows]:
        """Walk over the documents that may have edges, in groups of similar length."""
        ...


class SampledRows(Protocol):
    """Documents of similar length, side by side in tables ``[D, W]``, whose rows are drawn on demand.

    A node is named by its document's row d in the tables and its place w. The last place is the pad: nobody stands
    there, and it has no friends.
    """

    node: Tensor  #: id of each node, ``[D, W]``
    inside: Tensor  #: which places are nodes, ``[D, W]``
    as_matrix: bool  #: whether the documents are so short that :meth:`matrix` is cheaper than single rows
    block_size: int  #: pairs to ask for at once

    def friends(self, document: Tensor, place: Tensor, column: Tensor | None = None) -> Tensor:
        """Draw the friends of nodes ``[R]`` among all, or among ``column [D, n]``: int32, 1 for friends."""
        ...

    def matrix(self) -> Tensor:
        """Draw all rows of each document, ``[D, W, W]`` uint8, 1 for friends; the caller owns it."""
        ...

    def degree_bound(self) -> Tensor:
        """Return what no node's degree exceeds, ``[D, W]`` int64."""
        ...

    def weight(self, i: Tensor, j: Tensor) -> Tensor:
        """Return the weights of edges between a place ``i [D]`` of each document and others ``j [D, n]``, float32."""
        ...
