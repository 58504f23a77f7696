r"""A BERT layer on a GPU in half precision, with a backward pass written by hand.

The formulas are those of :class:`~socialgraph.nn.BertConv`; what differs is how often memory is read and how many
kernels are launched. Query, key and value are one product. The residual, dropout and the norm are one pass
(:mod:`~socialgraph.kernels.passes`). A layer's weights are cast by one kernel, and their gradients back by another.
Gradients of biases come from passes that read the gradient anyhow, and that of a residual is added inside a product.

Without gradient gelu is computed inside the product, and there only by tanh (Hendrycks and Gimpel, 2016):

.. math:: \tfrac{x}{2} \big(1 + \tanh(\sqrt{2 / \pi}\, (x + 0.044715\, x^3))\big)

It is at most 5e-4 from gelu, where bfloat16 rounds numbers near 1 by up to 4e-3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from socialgraph.kernels.attention import attention, attention_backward, is_short
from socialgraph.kernels.passes import add_norm, add_norm_backward, gelu_backward


def attend(
    x: Tensor, heads: int, ptr: Tensor, widest: int, weights: Sequence[Tensor], rows: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return who listens and what they hear in their segment, each ``[R, E]``.

    Args:
        x: states in half precision, ``[T, E]``.
        heads: attention heads.
        ptr: bounds of the segments, ``[S + 1]``.
        widest: rows of the longest segment.
        weights: weight and bias of query, of key and of value.
        rows: who listens, one of each segment, ``[S]``; None: all.
    """
    return _Attend.apply(x, heads, ptr, widest, rows, torch.is_grad_enabled(), *weights)  # type: ignore[no-untyped-call]


def transform(
    x: Tensor, heard: Tensor, weights: Sequence[Tensor], eps: tuple[float, float], dropout: float = 0.0
) -> Tensor:
    """Return the states after what was heard and the feed-forward network, ``[R, E]``.

    Args:
        x: who listens, in half precision, ``[R, E]``.
        heard: what they hear, ``[R, E]``.
        weights: weight and bias of attention_output, attention_norm, intermediate, output and output_norm.
        eps: of the two norms.
        dropout: of the two outputs that are added to the residual.
    """
    # drawn on the CPU, which knows it at once; a layer that is computed again draws the same
    seeds = torch.randint(2**31 - 1, (2,)).tolist() if dropout > 0 else (0, 0)
    return _Transform.apply(x, heard, eps, dropout, seeds, torch.is_grad_enabled(), *weights)  # type: ignore[no-untyped-call]


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        heads: int,
        ptr: Tensor,
        widest: int,
        rows: Tensor | None,
        trainable: bool,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        width = x.size(1)
        weight, bias = x.new_empty(3 * width, width), x.new_empty(3 * width)
        torch._foreach_copy_(
            [*weight.view(3, width, width).unbind(), *bias.view(3, width).unbind()], [*weights[::2], *weights[1::2]]
        )
        packed: tuple[Tensor, ...]
        if rows is None:
            listener, packed = x, (F.linear(x, weight, bias),)
        else:  # the last layer computes nothing but these
            listener = x[rows]
            packed = (F.linear(listener, weight[:width], bias[:width]), F.linear(x, weight[width:], bias[width:]))
        heard, lse = _heard(packed, heads, ptr, widest)
        if trainable:
            ctx.save_for_backward(x, listener, weight, heard, lse, ptr, rows, *packed)
            ctx.heads, ctx.widest, ctx.types = heads, widest, [one.dtype for one in weights]
        return listener, heard.flatten(1)

    @staticmethod
    def backward(ctx: Any, grad_listener: Tensor, grad_heard: Tensor) -> tuple[Tensor | None, ...]:
        x, listener, weight, heard, lse, ptr, rows, *packed = ctx.saved_tensors
        width = x.size(1)
        grads = _heard_backward(grad_heard.contiguous(), packed, heard, lse, ctx.heads, ptr, ctx.widest)
        # Nobody else holds grad_listener: it is what _Transform has just made.
        if rows is None:
            (both,) = grads
            grad_weight, grad_bias = both.t() @ x, both.sum(0)
            grad_x = grad_listener.addmm_(both, weight)
        else:
            asked, both = grads
            grad_weight, grad_bias = (
                torch.cat([asked.t() @ listener, both.t() @ x]),
                torch.cat([asked.sum(0), both.sum(0)]),
            )
            grad_x = both @ weight[width:]
            grad_x.index_add_(0, rows, grad_listener.addmm_(asked, weight[:width]))
        parts = zip(grad_weight.view(3, width, width).unbind(), grad_bias.view(3, width).unbind(), strict=True)
        return grad_x, None, None, None, None, None, *_cast([one for pair in parts for one in pair], ctx.types)


class _Transform(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, heard: Tensor, eps: tuple[float, float], dropout: float, seeds: tuple[int, int],
        trainable: bool, *weights: Tensor,
    ) -> Tensor:  # fmt: skip
        w_o, b_o, w_1, b_1, w_2, b_2 = _cast([*weights[:2], *weights[4:8]], [x.dtype] * 6)
        norm_1, bias_1, norm_2, bias_2 = *weights[2:4], *weights[8:]
        first = F.linear(heard, w_o, b_o)
        middle, first_stats = add_norm(x, first, norm_1, bias_1, eps[0], dropout, seeds[0])
        if not trainable:
            inner = torch._addmm_activation(b_1, middle, w_1.t(), use_gelu=True)
            return add_norm(middle, F.linear(inner, w_2, b_2), norm_2, bias_2, eps[1], dropout, seeds[1])[0]
        before = F.linear(middle, w_1, b_1)
        inner = F.gelu(before)
        second = F.linear(inner, w_2, b_2)
        out, second_stats = add_norm(middle, second, norm_2, bias_2, eps[1], dropout, seeds[1])
        ctx.save_for_backward(
            x, heard, first, middle, before, inner, second, first_stats, second_stats, w_o, w_1, w_2, norm_1, norm_2
        )  # fmt: skip
        ctx.dropout, ctx.seeds, ctx.types = dropout, seeds, [one.dtype for one in weights]
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (x, heard, first, middle, before, inner, second, first_stats, second_stats, w_o, w_1, w_2, norm_1,
         norm_2) = ctx.saved_tensors  # fmt: skip
        residual, grad, sums_2 = add_norm_backward(
            grad.contiguous(), middle, second, norm_2, second_stats, ctx.dropout, ctx.seeds[1]
        )
        grad_w_2 = grad.t() @ inner
        grad = grad @ w_2
        grad_b_1 = gelu_backward(grad, before)
        grad_w_1 = grad.t() @ middle
        grad = residual.addmm_(grad, w_1)
        residual, grad, sums_1 = add_norm_backward(grad, x, first, norm_1, first_stats, ctx.dropout, ctx.seeds[0])
        grad_w_o = grad.t() @ heard
        grads = [
            grad_w_o,
            sums_1[2],
            sums_1[0],
            sums_1[1],
            grad_w_1,
            grad_b_1,
            grad_w_2,
            sums_2[2],
            sums_2[0],
            sums_2[1],
        ]
        return residual, grad @ w_o, None, None, None, None, *_cast(grads, ctx.types)


def _cast(tensors: Sequence[Tensor], types: Sequence[torch.dtype]) -> list[Tensor]:
    """Return tensors in other types; those of one pair of types are cast by one kernel."""
    out = list(tensors)
    pairs = {(one.dtype, kind) for one, kind in zip(tensors, types, strict=True) if one.dtype != kind}
    for pair in pairs:
        places = [i for i, kind in enumerate(types) if (tensors[i].dtype, kind) == pair]
        for i in places:
            out[i] = torch.empty_like(tensors[i], dtype=pair[1])
        torch._foreach_copy_([out[i] for i in places], [tensors[i] for i in places])
    return out


def _heads(packed: Sequence[Tensor], heads: int) -> list[Tensor]:
    """Return query, key and value, ``[rows, heads, d]`` each, of what lies side by side."""
    channels = sum(one.size(1) for one in packed) // 3 // heads
    return [
        part
        for one in packed
        for part in one.view(len(one), one.size(1) // (heads * channels), heads, channels).unbind(1)
    ]


def _heard(packed: Sequence[Tensor], heads: int, ptr: Tensor, widest: int) -> tuple[Tensor, Tensor]:
    query, key, value = _heads(packed, heads)
    query_ptr, longest = _queries(packed, ptr, widest)
    if is_short(widest, key.size(2)):
        return attention(query, key, value, query_ptr, ptr, longest)
    return _varlen(query, key, value, query_ptr, ptr, longest, widest), query.new_empty(0)


def _heard_backward(
    grad: Tensor, packed: Sequence[Tensor], heard: Tensor, lse: Tensor, heads: int, ptr: Tensor, widest: int
) -> list[Tensor]:
    """Return the gradients of ``packed``."""
    query, key, value = _heads(packed, heads)
    query_ptr, longest = _queries(packed, ptr, widest)
    grads = [torch.empty_like(one) for one in packed]
    parts = _heads(grads, heads)
    if is_short(widest, key.size(2)):
        attention_backward(
            grad.view_as(heard), query, key, value, heard, lse, query_ptr, ptr, widest, (parts[0], parts[1], parts[2])
        )
        return grads
    with torch.enable_grad():
        leaves = [one.detach().requires_grad_() for one in (query, key, value)]
        again = _varlen(leaves[0], leaves[1], leaves[2], query_ptr, ptr, longest, widest)
        torch._foreach_copy_(parts, list(torch.autograd.grad(again, leaves, grad.view_as(heard))))
    return grads


def _queries(packed: Sequence[Tensor], ptr: Tensor, widest: int) -> tuple[Tensor, int]:
    """Return the bounds of the segments among those who listen, all or one of each, and how many are in the longest."""
    return (ptr, widest) if len(packed) == 1 else (torch.arange(ptr.numel(), device=ptr.device), 1)


def _varlen(
    query: Tensor, key: Tensor, value: Tensor, query_ptr: Tensor, key_ptr: Tensor, longest: int, widest: int
) -> Tensor:
    """Return flash attention in long segments."""
    from torch.nn.attention.varlen import varlen_attn

    heard = varlen_attn(query, key, value, query_ptr.int(), key_ptr.int(), longest, widest)
    assert isinstance(heard, Tensor)  # a pair only when auxiliary results are asked for
    return heard
