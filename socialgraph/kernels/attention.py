r"""Attention within short segments on a GPU, forward and backward, in Triton.

Rows of all segments lie one after the other. Flash attention computes tiles of 128 x 128, so that a segment of 137 rows
costs as much as one of 256; tiles here are smaller. Softmax and sums are in float32. The forward pass keeps
:math:`\log_2 \sum_j 2^{l_{ij}}` of each row, from which the backward pass computes the weights again:

.. math::
    dv_j = \sum_i p_{ij}\, do_i, \quad
    ds_{ij} = p_{ij} (do_i^\top v_j - do_i^\top o_i), \quad
    dq_i = \frac{1}{\sqrt d} \sum_j ds_{ij} k_j, \quad
    dk_j = \frac{1}{\sqrt d} \sum_i ds_{ij} q_i

(Dao, "FlashAttention-2", 2023.) A program of the backward pass goes over a segment twice, for its own rows as keys and
as queries, so nothing is added up by several programs and the result is the same each time.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

#: a program's own rows, rows of the other side in a step, and warps; LONG where a segment has over MANY rows
FORWARD, LONG, BACKWARD = (64, 16, 4), (64, 64, 4), (64, 16, 4)
MANY = 256
#: log2(e): softmax is computed with powers of 2
LOG2E = 1.4426950408889634


@triton.jit
def rows_of(x, row, stride, head, there, D: tl.constexpr):
    """Return some rows of a head, ``[rows, D]``; 0 where there are none."""
    place = row[:, None] * stride + head * D + tl.arange(0, D)[None, :]
    return tl.load(x + place, mask=there[:, None], other=0.0)


@triton.jit
def keep_rows(x, value, row, stride, head, there, D: tl.constexpr):
    """Write some rows of a head."""
    place = row[:, None] * stride + head * D + tl.arange(0, D)[None, :]
    tl.store(x + place, value.to(x.dtype.element_ty), mask=there[:, None])


@triton.jit
def attention_kernel(
    query, key, value, out, lse, query_ptr, key_ptr, scale, rows, query_row, key_row, blocks, heads,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Compute M rows of a head of a segment."""
    program = tl.program_id(0)
    block, head, segment = program % blocks, (program // blocks) % heads, program // (blocks * heads)
    first = tl.load(query_ptr + segment).to(tl.int64) + block * M
    last = tl.load(query_ptr + segment + 1).to(tl.int64)
    if first < last:
        row = first + tl.arange(0, M)
        there = row < last
        q = rows_of(query, row, query_row, head, there, D)
        highest = tl.full([M], -float("inf"), tl.float32)
        total = tl.zeros([M], tl.float32)
        heard = tl.zeros([M, D], tl.float32)
        end = tl.load(key_ptr + segment + 1).to(tl.int64)
        for begin in range(tl.load(key_ptr + segment).to(tl.int64), end, N):
            column = begin + tl.arange(0, N)
            inside = column < end
            k = rows_of(key, column, key_row, head, inside, D)
            v = rows_of(value, column, key_row, head, inside, D)
            logits = tl.where(inside[None, :], tl.dot(q, tl.trans(k)) * scale, -float("inf"))
            peak = tl.maximum(highest, tl.max(logits, 1))
            weight = tl.exp2(logits - peak[:, None])
            faded = tl.exp2(highest - peak)
            total = total * faded + tl.sum(weight, 1)
            heard = heard * faded[:, None] + tl.dot(weight.to(v.dtype), v)
            highest = peak
        keep_rows(out, heard / total[:, None], row, heads * D, head, there, D)
        tl.store(lse + head.to(tl.int64) * rows + row, highest + tl.log2(total), mask=there)


@triton.jit
def attention_backward_kernel(
    query, key, value, out, grad, lse, grad_query, grad_key, grad_value, query_ptr, key_ptr, scale, rows, query_row,
    key_row, blocks, heads, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of M keys and values and of M queries of a head of a segment."""
    program = tl.program_id(0)
    block, head, segment = program % blocks, (program // blocks) % heads, program // (blocks * heads)
    query_start = tl.load(query_ptr + segment).to(tl.int64)
    query_end = tl.load(query_ptr + segment + 1).to(tl.int64)
    key_start = tl.load(key_ptr + segment).to(tl.int64)
    key_end = tl.load(key_ptr + segment + 1).to(tl.int64)
    lse += head.to(tl.int64) * rows
    base2 = scale * 1.4426950408889634
    if key_start + block * M < key_end:
        column = key_start + block * M + tl.arange(0, M)
        inside = column < key_end
        k = rows_of(key, column, key_row, head, inside, D)
        v = rows_of(value, column, key_row, head, inside, D)
        dk = tl.zeros([M, D], tl.float32)
        dv = tl.zeros([M, D], tl.float32)
        for begin in range(query_start, query_end, N):
            row = begin + tl.arange(0, N)
            there = row < query_end
            q = rows_of(query, row, query_row, head, there, D)
            g = rows_of(grad, row, heads * D, head, there, D)
            o = rows_of(out, row, heads * D, head, there, D)
            delta = tl.sum(g.to(tl.float32) * o.to(tl.float32), 1)
            known = tl.load(lse + row, mask=there, other=float("inf"))  # no row, no weight
            weight = tl.exp2(tl.dot(k, tl.trans(q)) * base2 - known[None, :])
            dv += tl.dot(weight.to(g.dtype), g)
            weight *= tl.dot(v, tl.trans(g)) - delta[None, :]
            dk += tl.dot(weight.to(q.dtype), q)
        keep_rows(grad_key, dk * scale, column, key_row, head, inside, D)
        keep_rows(grad_value, dv, column, key_row, head, inside, D)
    if query_start + block * M < query_end:
        row = query_start + block * M + tl.arange(0, M)
        there = row < query_end
        q = rows_of(query, row, query_row, head, there, D)
        g = rows_of(grad, row, heads * D, head, there, D)
        o = rows_of(out, row, heads * D, head, there, D)
        delta = tl.sum(g.to(tl.float32) * o.to(tl.float32), 1)
        known = tl.load(lse + row, mask=there, other=0.0)
        dq = tl.zeros([M, D], tl.float32)
        for begin in range(key_start, key_end, N):
            column = begin + tl.arange(0, N)
            inside = column < key_end
            k = rows_of(key, column, key_row, head, inside, D)
            v = rows_of(value, column, key_row, head, inside, D)
            logits = tl.where(inside[None, :], tl.dot(q, tl.trans(k)) * base2, -float("inf"))
            weight = tl.exp2(logits - known[:, None]) * (tl.dot(g, tl.trans(v)) - delta[:, None])
            dq += tl.dot(weight.to(k.dtype), k)
        keep_rows(grad_query, dq * scale, row, query_row, head, there, D)


def is_short(widest: int, channels: int) -> bool:
    """Return whether segments and heads are such that these kernels are the ones to take.

    Args:
        widest: rows of the longest segment.
        channels: of a head; tiles are powers of 2.
    """
    return widest <= SHORT and channels >= 16 and channels & (channels - 1) == 0


#: rows of a segment at most; in longer ones flash attention's large tiles waste little
SHORT = 512


def attention(
    query: Tensor, key: Tensor, value: Tensor, query_ptr: Tensor, key_ptr: Tensor, longest: int
) -> tuple[Tensor, Tensor]:
    r"""Return softmax(q k^T / sqrt(d)) v within each segment, and what the backward pass needs of it.

    Args:
        query: ``[R, heads, d]``, of each row all heads in one piece.
        key: ``[T, heads, d]``, as query.
        value: ``[T, heads, d]``, its rows as far apart as those of key.
        query_ptr: bounds of the segments among the queries, ``[S + 1]``.
        key_ptr: ... and among keys and values, ``[S + 1]``. A segment with queries has a key.
        longest: queries of a segment at most.

    Returns:
        ``[R, heads, d]``, and of each row log2 of the sum of its powers of 2, ``[heads, R]`` float32.
    """
    rows, heads, channels = query.shape
    out = torch.empty(rows, heads, channels, dtype=query.dtype, device=query.device)
    lse = torch.empty(heads, rows, dtype=torch.float32, device=query.device)
    tile, step, warps = LONG if longest > MANY else FORWARD
    blocks = -(-longest // tile)
    if programs := blocks * heads * (query_ptr.numel() - 1):
        attention_kernel[(programs,)](
            query, key, value, out, lse, query_ptr, key_ptr, LOG2E / channels**0.5, rows, query.stride(0),
            key.stride(0), blocks, heads, tile, step, channels, num_warps=warps,
        )  # fmt: skip
    return out, lse


def attention_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, lse: Tensor, query_ptr: Tensor,
    key_ptr: Tensor, longest: int, grads: tuple[Tensor, Tensor, Tensor],
) -> None:  # fmt: skip
    """Write the gradients of query, key and value.

    Args:
        grad: of what :func:`attention` returned, ``[R, heads, d]``, in one piece.
        query: as there, like the next.
        key: ``[T, heads, d]``.
        value: ``[T, heads, d]``.
        out: what it returned, ``[R, heads, d]``.
        lse: what it returned, ``[heads, R]``.
        query_ptr: ``[S + 1]``.
        key_ptr: ``[S + 1]``.
        longest: queries or keys of a segment at most.
        grads: where they go; they lie in memory as query, key and value do.
    """
    rows, heads, channels = query.shape
    tile, step, warps = BACKWARD
    blocks = -(-longest // tile)
    if programs := blocks * heads * (query_ptr.numel() - 1):
        attention_backward_kernel[(programs,)](
            query, key, value, out, grad, lse, *grads, query_ptr, key_ptr, 1 / channels**0.5, rows, query.stride(0),
            key.stride(0), blocks, heads, tile, step, channels, num_warps=warps,
        )  # fmt: skip
