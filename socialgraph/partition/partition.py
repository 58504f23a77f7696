"""What a partition is: edges in, circles out."""

from __future__ import annotations

import copy
import inspect
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.contracts import edge_violation, edges_hold
from socialgraph.described import Described
from socialgraph.errors import InputError, check_whole
from socialgraph.kernels import ClosedForm


class SampledGraph(Protocol):
    """The edges of a document or of a batch of them, none of which is drawn yet.

    :class:`socialgraph.edges.SocialGraph` is one. What it draws is always the same.
    """

    batch: Tensor  #: document of each node, sorted, ``[N]``
    ptr: Tensor  #: bounds of the documents, ``[B + 1]``
    batch_size: int  #: number of documents, empty ones included
    graph: Data | None  #: the document or the batch whose edges these are

    @property
    def closed_form(self) -> ClosedForm | None:
        """What kernels draw the graph from, or None where only :meth:`edges` knows."""
        ...

    def edges(self) -> tuple[Tensor, Tensor]:
        """Draw all edges: ``edge_index [2, E]`` and ``edge_weight [E]``, as :meth:`Partition.forward` takes them."""
        ...


class Partition(Described, torch.nn.Module):
    """Base class of all partitions: says who meets in which circle.

    A subclass implements :meth:`forward` for one graph or a batch of graphs at once; a class outside this
    package needs no registration. Circles may overlap and need not cover every node.
    """

    #: whether places in the text are meant to count, as they do for windows; elsewhere equal weights favour no end
    by_place = False
    #: whether :meth:`forward` looks at edges: where it does not, none is drawn for it
    needs_edges = True

    def forward(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the circles of every document.

        Args:
            edge_index: both directions of every edge, no self-loops, sorted by row and column, ``[2, E]``.
            batch: document of each node, sorted, ``[N]``.
            batch_size: number of documents, empty ones included.
            edge_weight: strength of each edge, ``[E]``; equal in both directions.

        Returns:
            ``circle_index [2, M]`` int64: row 0 a node, row 1 its circle, sorted by circle and node. Circles
            are numbered document by document. And ``leader_index [C]`` int64: the node at the centre of each
            circle, one of its members.

        A partition that looks at words names ``graph`` as a last argument, ``graph: Data | None = None``. It is given
        the :class:`~socialgraph.data.DocumentGraph` or the batch of them: ``input_ids [N]``, the query's word pieces
        ``query_ids`` and ``query_length [B]``, ``tfidf [N]``, ``statistics`` of the collection, what the patterns have
        weighed, and where there are candidates the first stage's scores, ``first_stage_score [B]``.
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    @cached_property
    def sees_graph(self) -> bool:
        """Whether :meth:`forward` names ``graph``."""
        named = inspect.signature(self.forward).parameters.get("graph")
        return named is not None and named.kind in (named.POSITIONAL_OR_KEYWORD, named.KEYWORD_ONLY)

    def gathered(
        self, edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None, graph: Data | None
    ) -> tuple[Tensor, Tensor]:
        """Return what :meth:`forward` does; it gets a shallow copy of the graph where it names it."""
        more = {"graph": copy.copy(graph)} if self.sees_graph else {}
        circles: tuple[Tensor, Tensor] = self(edge_index, batch, batch_size, edge_weight, **more)
        return circles

    def from_sampled(self, graph: SampledGraph) -> tuple[Tensor, Tensor]:
        """Return the same circles for a graph whose edges are not drawn yet.

        By default all of them are drawn, or none where ``needs_edges`` is False. A partition that needs few of them has
        a method of its own.

        Args:
            graph: draws its edges where somebody looks, such as :class:`socialgraph.edges.SocialGraph`.
        """
        edge_index, edge_weight = graph.edges() if self.needs_edges else (graph.batch.new_empty(2, 0), None)
        return self.gathered(edge_index, graph.batch, graph.batch_size, edge_weight, graph.graph)


def check_sizes(k: int, max_size: int) -> None:
    """Refuse a number of circles, or of members of a circle, that is none.

    Raises:
        OptionError: k < 1 or max_size < 2, or no whole number.
    """
    check_whole("k, the number of circles,", k, 1)
    check_whole("max_size", max_size, 2)


def check_graph(edge_index: Tensor, batch: Tensor, batch_size: int, edge_weight: Tensor | None) -> None:
    """Refuse a graph that is not what :meth:`Partition.forward` takes.

    Of one out of order the circles would be others, without a word, and for a node that does not exist PyG writes
    where other things lie in memory.

    Raises:
        InputError: names the tensor, or the contract and the edge.
    """
    for name, x, rows in (("edge_index", edge_index, [2]), ("batch", batch, [])):
        if not isinstance(x, Tensor) or x.dtype != torch.long or list(x.shape[:-1]) != rows or x.dim() == 0:
            got = f"{x.dtype} {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise InputError(f"{name} must be int64 {'[2, E]' if rows else '[N]'}, got {got}")
    if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
        raise InputError(f"there are {edge_index.size(1)} edges, and weights {list(edge_weight.shape)}")
    if edge_weight is not None and not bool(edge_weight.isfinite().all()):
        raise InputError("edge_weight must be finite numbers")
    if batch.numel() and (int(batch[0]) < 0 or int(batch[-1]) >= batch_size or bool((batch.diff() < 0).any())):
        raise InputError(f"batch must rise, from 0 at least to {batch_size - 1} at most, as batch_size is {batch_size}")
    if edges_hold(edge_index, batch):
        return
    violation = edge_violation(edge_index, None, batch)  # weights rank friends, so they may be any numbers
    if violation is not None:
        raise InputError(
            f"a graph of {batch.numel()} nodes breaks the contract {violation.contract!r}: {violation.text}; "
            "torch_geometric.utils has to_undirected, remove_self_loops and coalesce"
        )
