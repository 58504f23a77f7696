"""What the kernels need to know of a batch of documents."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

#: the hash of a pair is a whole number from 0 to HASH_RANGE - 1
HASH_RANGE = 1 << 24


class ClosedForm(NamedTuple):
    r"""Graphs whose edges follow from a few numbers for each node.

    .. math::
        P_{ij} = g \, \kappa(|i - j|) + c + row_i + column_j + \sum_s u_{si} v_{sj}

    P is symmetric. Everything but g and c is rounded so that products and their sums are exact in float64, in whatever
    order: only g kappa, + c and + the rest are rounded, in this order.
    """

    ptr: Tensor  #: bounds of the documents, ``[B + 1]`` int64
    kernel: Tensor  #: kappa at each distance, ``[K]`` float64, K at least the longest document
    gain: Tensor  #: g, ``[B]`` float64
    constant: Tensor  #: c, ``[B]`` float64
    row: Tensor  #: ``[N]`` float64
    column: Tensor  #: ``[N]`` float64
    u: Tensor  #: ``[S, N]`` float64
    v: Tensor  #: ``[S, N]`` float64
    key: Tensor  #: of each document, ``[B]`` int64
