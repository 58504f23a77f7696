r"""Probabilities, edges and friend circles of documents in closed form, without storing a graph.

An edge is some thirty operations on numbers that are at hand, so it is cheaper to compute again than to store. Both
implementations, :mod:`~socialgraph.kernels.cpu` (numba) and :mod:`~socialgraph.kernels.gpu` (Triton), keep this
contract, and what they return is equal to the last bit.

**An edge.** Nodes i < j of a document are joined where hash(i, j) < P(i, j) 2^24. P is a :class:`ClosedForm`; the hash
is that of :mod:`socialgraph.edges.draws`, a function of the document's key and both places; of a negative key all pairs
have the same. No node has an edge to itself. An edge's weight is min(1, P), float32.

**Circles.** k times: the node of highest degree leads (of equals the lowest place), and the leader and its friends are
the circle. A node without a friend leads none. Of more than ``max_size`` members those friends stay whose edges have
the highest weight (of equals those whose pair has the lowest tie hash, see :mod:`socialgraph.partition.ties`), or
those of the lowest place. Then edge-level circles take away the edges among their members, node-level ones the members.

**Probabilities.** Of weights w with amplitudes a = sqrt(w) and u = (a - min a) / (max a - min a), equation 3's f is

.. math::
    f_{ij} = constant + row_i + row_j + factor_i factor_j, \qquad
    row = \tfrac{a_{min} D}{R} u, \quad factor = \tfrac{D}{\sqrt{R}} u, \quad
    constant = \tfrac{a_{min}^2 - \min s}{R}

with D = max a - min a and R the range of s. Written this way no two large numbers are subtracted, however little the
weights differ. Each operation is rounded once (no fused multiply-add), then factors to multiples of
:data:`FACTOR_STEP` and sums to multiples of :data:`SUM_STEP`, half to even. From there on all sums are exact.

What is taken away needs no graph either. Edge-level, an edge is gone where both ends share a circle; node-level, where
one end has one. Degrees only fall, so a degree that was true once is a bound for ever.

Nothing here knows of patterns, partitions or words: tensors in, tensors out.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor

from socialgraph.kernels.closed_form import FACTOR_STEP, HASH_RANGE, SUM_STEP, ClosedForm

__all__ = [
    "FACTOR_STEP", "HASH_RANGE", "SUM_STEP", "ClosedForm", "all_edges", "greedy_circles", "smooth_products", "totals",
]  # fmt: skip


def _on(device: torch.device) -> ModuleType:
    """Return the implementation for a device; Triton comes with PyTorch for GPUs alone."""
    return import_module(f"socialgraph.kernels.{'gpu' if device.type == 'cuda' else 'cpu'}")


def smooth_products(ptr: Tensor, weights: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weighted sum of f(w_i w_j) over several kinds of weights.

    Where all pairs of a document are equal, or there is no pair, f is 0.

    Args:
        ptr: bounds of the documents, ``[B + 1]``.
        weights: of each kind and node, ``[X, N]`` float64; negative ones count as 0.
        share: how much each kind counts, ``[X]`` float64.

    Returns:
        ``row [N]``, the sum over kinds, ``factor [X, N]`` and ``constant [B]``, rounded: float64.
    """
    return _on(ptr.device).smooth_products(ptr, weights, share)


def totals(form: ClosedForm) -> tuple[Tensor, Tensor]:
    """Return P's sum over the ordered pairs i != j of each document, and a bound of P, at most 1: ``[B]`` each.

    Both in O(l). A sum is not a number where a P is none.
    """
    return _on(form.ptr.device).totals(form)


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
    return _on(form.ptr.device).greedy_circles(form, k, max_size, node_level, by_weight)


def all_edges(form: ClosedForm) -> tuple[Tensor, Tensor]:
    """Return all edges: ``edge_index [2, E]`` int64, both directions, sorted; and their weights ``[E]`` float32."""
    return _on(form.ptr.device).all_edges(form)
