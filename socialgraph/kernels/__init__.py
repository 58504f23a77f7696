r"""Edges and friend circles of a document whose probabilities have a closed form, without storing its graph.

An edge is some thirty operations on numbers that are at hand, so it is cheaper to compute again than to store. Both
implementations, :mod:`~socialgraph.kernels.cpu` (numba) and :mod:`~socialgraph.kernels.gpu` (Triton), keep this
contract, and what they return is equal to the last bit.

**An edge.** Nodes i < j of a document are joined where hash(i, j) < P(i, j) 2^24. P is a :class:`ClosedForm`; the hash
is that of :mod:`socialgraph.edges.draws`, a function of the document's key and both places. No node has an edge to
itself. An edge's weight is min(1, P), float32.

**Circles.** k times: the node of highest degree leads (of equals the lowest place), and the leader and its friends are
the circle. A node without a friend leads none. Of more than ``max_size`` members those friends stay whose edges have
the highest weight (of equals those whose pair has the lowest tie hash, see :mod:`socialgraph.partition.ties`), or
those of the lowest place. Then edge-level circles take away the edges among their members, node-level ones the members.

What is taken away needs no graph either. Edge-level, an edge is gone where both ends share a circle; node-level, where
one end has one. Degrees only fall, so a degree that was true once is a bound for ever.

Nothing here knows of patterns, partitions or words: tensors in, tensors out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.kernels.closed_form import HASH_RANGE, ClosedForm

__all__ = ["HASH_RANGE", "ClosedForm", "all_edges", "greedy_circles", "has_kernels"]


def has_kernels(device: torch.device) -> bool:
    """Return whether there are kernels for a device; others take the way of graphs without a closed form."""
    return device.type in ("cpu", "cuda")


def greedy_circles(form: ClosedForm, k: int, max_size: int, node_level: bool, by_weight: bool) -> tuple[Tensor, Tensor]:
    """Return the greedy circles of every document.

    Args:
        form: of the documents.
        k: circles of a document at most.
        max_size: members of a circle at most, the leader included; 2 or more.
        node_level: whether circles share no node; else they share no edge.
        by_weight: whether the strongest friends stay where there are too many; else the first.

    Returns:
        ``members [B, k, max_size]`` int32, places in the document, ascending, -1 behind the last; and
        ``leaders [B, k]`` int32, -1 where there is no circle.
    """
    if form.ptr.is_cuda:
        from socialgraph.kernels import gpu  # Triton comes with PyTorch for GPUs alone

        return gpu.greedy_circles(form, k, max_size, node_level, by_weight)
    from socialgraph.kernels import cpu

    return cpu.greedy_circles(form, k, max_size, node_level, by_weight)


def all_edges(form: ClosedForm) -> tuple[Tensor, Tensor]:
    """Return all edges: ``edge_index [2, E]`` int64, both directions, sorted; and their weights ``[E]`` float32."""
    if form.ptr.is_cuda:
        from socialgraph.kernels import gpu

        return gpu.all_edges(form)
    from socialgraph.kernels import cpu

    return cpu.all_edges(form)
