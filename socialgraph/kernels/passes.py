r"""Passes over states between the matrix products of a BERT layer, in Triton: each reads and writes memory once.

* :func:`add_norm`: :math:`\mathrm{LN}(x + \mathrm{dropout}(y))`. PyTorch's operations for it go over the states 5 times
  or more instead of 3. Which numbers dropout takes out is drawn again in the backward pass instead of kept.
* :func:`gelu_backward`: the gradient before gelu.
* :func:`embed`: the first states, from the rows of three tables.

A backward pass also adds up the gradient over all rows, which is that of the bias of the product beside it. Statistics
and sums are in float32; sums have one order, so results are the same each time.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

#: programs that share the rows in a backward pass, each with sums of its own
PROGRAMS = 528
#: rows and columns of a tile before gelu, and programs that share the rows
TILE, SHARES = (8, 256), 88


@triton.jit
def is_kept(place, seed, dropout):
    """Return which numbers dropout leaves, by their places."""
    return tl.rand(seed, (place & 0x7FFFFFFF).to(tl.int32)) >= dropout


@triton.jit
def total_of(x, added, place, inside, seed, dropout, DROPOUT: tl.constexpr):
    """Return x + dropout(added) at some places, float32."""
    more = tl.load(added + place, mask=inside, other=0.0).to(tl.float32)
    if DROPOUT:
        more = tl.where(is_kept(place, seed, dropout), more / (1.0 - dropout), 0.0)
    return tl.load(x + place, mask=inside, other=0.0).to(tl.float32) + more


@triton.jit(do_not_specialize=["seed"])
def add_norm_kernel(
    x, added, weight, bias, out, mean, rstd, eps, seed, dropout, COLUMNS: tl.constexpr, BLOCK: tl.constexpr,
    DROPOUT: tl.constexpr,
):  # fmt: skip
    """Add and normalise a row."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < COLUMNS
    place = row * COLUMNS + column
    total = total_of(x, added, place, inside, seed, dropout, DROPOUT)
    middle = tl.sum(total, 0) / COLUMNS
    apart = tl.where(inside, total - middle, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(apart * apart, 0) / COLUMNS + eps)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + place, (apart * scale * w + b).to(out.dtype.element_ty), mask=inside)
    tl.store(mean + row, middle)
    tl.store(rstd + row, scale)


@triton.jit(do_not_specialize=["seed", "rows"])
def add_norm_backward_kernel(
    grad, x, added, weight, mean, rstd, grad_x, grad_added, sums, seed, dropout, rows, COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of some rows, and their sums for weight, bias and the bias of what was added."""
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < COLUMNS
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    for_weight = tl.zeros([BLOCK], tl.float32)
    for_bias = tl.zeros([BLOCK], tl.float32)
    for_added = tl.zeros([BLOCK], tl.float32)
    place = program.to(tl.int64) * COLUMNS + column
    for row in range(program, rows, tl.num_programs(0)):
        total = total_of(x, added, place, inside, seed, dropout, DROPOUT)
        scale = tl.load(rstd + row)
        normed = tl.where(inside, (total - tl.load(mean + row)) * scale, 0.0)
        g = tl.load(grad + place, mask=inside, other=0.0).to(tl.float32)
        for_weight += g * normed
        for_bias += g
        g *= w
        g = (g - tl.sum(g, 0) / COLUMNS - normed * (tl.sum(g * normed, 0) / COLUMNS)) * scale
        tl.store(grad_x + place, g.to(grad_x.dtype.element_ty), mask=inside)
        if DROPOUT:
            g = tl.where(is_kept(place, seed, dropout), g / (1.0 - dropout), 0.0)
            tl.store(grad_added + place, g.to(grad_added.dtype.element_ty), mask=inside)
        for_added += g
        place += tl.num_programs(0).to(tl.int64) * COLUMNS
    sums += program * 3 * COLUMNS + column
    tl.store(sums, for_weight, mask=inside)
    tl.store(sums + COLUMNS, for_bias, mask=inside)
    tl.store(sums + 2 * COLUMNS, for_added, mask=inside)


@triton.jit(do_not_specialize=["rows"])
def gelu_backward_kernel(grad, x, sums, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Turn the gradient after gelu into the one before, in place, and add it up over some rows."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < columns
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(tl.program_id(1) * ROWS, rows, tl.num_programs(1) * ROWS):
        row = first + tl.arange(0, ROWS)
        place = row.to(tl.int64)[:, None] * columns + column[None, :]
        there = (row < rows)[:, None] & inside[None, :]
        before = tl.load(x + place, mask=there, other=0.0).to(tl.float32)
        slope = 0.5 * (1.0 + tl.erf(before * 0.7071067811865476))  # of x Phi(x): Phi(x) + x phi(x)
        slope += before * tl.exp(-0.5 * before * before) * 0.3989422804014327
        g = tl.load(grad + place, mask=there, other=0.0).to(tl.float32) * slope
        tl.store(grad + place, g.to(grad.dtype.element_ty), mask=there)
        total += g
    tl.store(sums + tl.program_id(1) * columns + column, tl.sum(total, 0), mask=inside)


@triton.jit
def embed_kernel(
    token, position, segment, words, positions, segments, weight, bias, out, eps, vocabulary, COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Add a row of each table and normalise the sum; what is no word piece of the vocabulary becomes NaN."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < COLUMNS
    place = tl.load(token + row) * COLUMNS + column
    known = inside & (place >= 0) & (place < vocabulary * COLUMNS)
    total = tl.load(words + place, mask=known, other=float("nan")).to(tl.float32)
    total = tl.where(inside, total, 0.0)
    total += tl.load(positions + tl.load(position + row) * COLUMNS + column, mask=inside, other=0.0).to(tl.float32)
    total += tl.load(segments + tl.load(segment + row) * COLUMNS + column, mask=inside, other=0.0).to(tl.float32)
    apart = tl.where(inside, total - tl.sum(total, 0) / COLUMNS, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(apart * apart, 0) / COLUMNS + eps)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * COLUMNS + column, (apart * scale * w + b).to(out.dtype.element_ty), mask=inside)


def embed(
    ids: tuple[Tensor, Tensor, Tensor], tables: tuple[Tensor, Tensor, Tensor], weight: Tensor, bias: Tensor, eps: float,
    kind: torch.dtype,
) -> Tensor:  # fmt: skip
    """Return the norm of the sum of a row of each table, ``[T, E]``, without gradient.

    Args:
        ids: word piece, position and segment of each token, ``[T]`` each. A word piece that its table has not gives
            NaN; positions and segments must be in range.
        tables: of words, positions and segments, ``[rows, E]`` each.
        weight: of the norm, ``[E]``.
        bias: of the norm, ``[E]``.
        eps: of the norm.
        kind: of what is returned.
    """
    rows, columns = ids[0].numel(), weight.numel()
    out = torch.empty(rows, columns, dtype=kind, device=weight.device)
    if rows:
        embed_kernel[(rows,)](
            *ids, *tables, weight, bias, out, eps, len(tables[0]), columns, triton.next_power_of_2(columns), num_warps=4
        )
    return out


def add_norm(
    x: Tensor, added: Tensor, weight: Tensor, bias: Tensor, eps: float, dropout: float = 0.0, seed: int = 0
) -> tuple[Tensor, Tensor]:
    r"""Return :math:`\mathrm{LN}(x + \mathrm{dropout}(y))` in the type of ``x``, and mean and 1 / deviation of rows.

    Args:
        x: the residual, ``[T, E]``.
        added: y, ``[T, E]``.
        weight: of the norm, ``[E]``.
        bias: of the norm, ``[E]``.
        eps: of the norm.
        dropout: probability with which a number of y becomes 0; the others are divided by 1 - p.
        seed: of dropout, below 2^31.

    Returns:
        ``[T, E]``, and the statistics, ``[2, T]`` float32.
    """
    rows, columns = x.shape
    out, stats = torch.empty_like(x), torch.empty(2, rows, dtype=torch.float32, device=x.device)
    if rows:
        add_norm_kernel[(rows,)](
            x, added, weight, bias, out, *stats, eps, seed, dropout, columns, triton.next_power_of_2(columns),
            dropout > 0, num_warps=4,
        )  # fmt: skip
    return out, stats


def add_norm_backward(
    grad: Tensor, x: Tensor, added: Tensor, weight: Tensor, stats: Tensor, dropout: float, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x and y, ``[T, E]`` each, and of weight, bias and y's bias, ``[3, E]`` float32.

    Without dropout those of x and y are one tensor.

    Args:
        grad: of what :func:`add_norm` returned, ``[T, E]``, in one piece.
        x: as there, like the next.
        added: ``[T, E]``.
        weight: ``[E]``.
        stats: what it returned, ``[2, T]``.
        dropout: as there.
        seed: as there.
    """
    rows, columns = x.shape
    grad_x = torch.empty_like(x)
    grad_added = torch.empty_like(x) if dropout > 0 else grad_x
    sums = torch.empty(min(rows, PROGRAMS), 3, columns, dtype=torch.float32, device=x.device)
    if rows:
        add_norm_backward_kernel[(len(sums),)](
            grad, x, added, weight, *stats, grad_x, grad_added, sums, seed, dropout, rows, columns,
            triton.next_power_of_2(columns), dropout > 0, num_warps=4,
        )  # fmt: skip
    return grad_x, grad_added, sums.sum(0)


def gelu_backward(grad: Tensor, x: Tensor) -> Tensor:
    """Turn the gradient after gelu (by erf) into the one before it, in place; return its sum, ``[C]`` float32.

    Args:
        grad: ``[T, C]``, in one piece.
        x: what gelu read, ``[T, C]``.
    """
    rows, columns = x.shape
    shares = min(SHARES, -(-rows // TILE[0]))
    sums = torch.empty(shares, columns, dtype=torch.float32, device=x.device)
    if rows:
        gelu_backward_kernel[(triton.cdiv(columns, TILE[1]), shares)](grad, x, sums, rows, columns, *TILE, num_warps=4)
    return sums.sum(0)
