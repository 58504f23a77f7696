"""What the kernels need to know of a batch of documents."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

#: the hash of a pair is a whole number from 0 to HASH_RANGE - 1
HASH_RANGE = 1 << 24
#: factors of nodes are multiples of this, what is summed of that: products and sums are then exact in float64
FACTOR_STEP, SUM_STEP = 2.0**-22, 2.0**-30


class ClosedForm(NamedTuple):
    r"""Graphs whose edges follow from a few numbers for each node.

    .. math::
        P_{ij} = scale \, \bigl(\kappa(|i - j|) + constant + row_i + row_j + \sum_s u_{si} v_{sj}\bigr)

    u and v are the same but for signs, so P is symmetric. Everything but the scale is rounded so that what stands in
    the parentheses is exact in float64, in whatever order it is summed; its product with the scale is rounded once.
    """

    ptr: Tensor  #: bounds of the documents, ``[B + 1]`` int64
    kernel: Tensor  #: kappa at each distance, ``[K]`` float64, K at least the longest document
    constant: Tensor  #: ``[B]`` float64
    scale: Tensor  #: ``[B]`` float64
    row: Tensor  #: ``[N]`` float64
    u: Tensor  #: ``[S, N]`` float64
    v: Tensor  #: ``[S, N]`` float64
    key: Tensor  #: of each document, ``[B]`` int64; negative: see :func:`socialgraph.edges.draws.constant_key`
