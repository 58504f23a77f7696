"""Attention inside segments of a packed sequence: nobody looks across a segment's border.

Rows of all segments lie one after the other, ``[T, heads, channels]``; segment s is ``ptr[s] ... ptr[s + 1] - 1``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from socialgraph.errors import OptionError
from socialgraph.nn.masked_attention import listening_along
from socialgraph.nn.segments import Segments


def complete_edges(ptr: Tensor) -> Tensor:
    """Return all ordered pairs within each segment, self-loops included: ``[2, sum of squares]``."""
    size = ptr.diff()
    row = torch.repeat_interleave(size)  # segment of each node
    degree = size[row]
    target = torch.repeat_interleave(degree)
    first = (degree.cumsum(0) - degree)[target]
    source = torch.arange(target.numel(), device=ptr.device) - first + ptr[row[target]]
    return torch.stack([source, target])


def _edges(query: Tensor, key: Tensor, value: Tensor, segments: Segments) -> Tensor:
    """Gathered messages over the edges of complete circles: slow and exact, the reference."""
    source, target = complete_edges(segments.ptr)
    return listening_along(source, target, query.size(0))(query, key, value)


def _padded(query: Tensor, key: Tensor, value: Tensor, segments: Segments) -> Tensor:
    """scaled_dot_product_attention, padded to the next multiple of 32. Only attention is padded, no linear layer.

    Segments of one padded width share a call. On a CPU what is trained is computed in float32, whose kernel trains
    twice as fast as the one for bfloat16 (94 ms against 191 ms on 64 segments of 150).
    """
    kind, heard = query.dtype, []
    if not query.is_cuda and query.requires_grad:
        query, key, value = query.float(), key.float(), value.float()
    blocks, place = segments.padded
    for block in blocks:
        # index_select copies whole rows, where indexing by a matrix goes element by element
        q, k, v = (
            x.index_select(0, block.row).view(*block.shape, *x.shape[1:]).transpose(1, 2) for x in (query, key, value)
        )
        states = F.scaled_dot_product_attention(q, k, v, attn_mask=block.inside)
        heard.append(states.transpose(1, 2).flatten(0, 1))
    return torch.cat(heard).index_select(0, place).to(kind)


def _varlen(query: Tensor, key: Tensor, value: Tensor, segments: Segments) -> Tensor:
    """Flash attention over ragged segments: GPU, half precision, no padding at all."""
    from torch.nn.attention.varlen import varlen_attn

    bounds, width = segments.bounds, segments.widest
    heard = varlen_attn(query, key, value, bounds, bounds, width, width)
    assert isinstance(heard, Tensor)  # a pair only when auxiliary results are asked for
    return heard


BACKENDS: dict[str, Callable[[Tensor, Tensor, Tensor, Segments], Tensor]] = {
    "edges": _edges,
    "padded": _padded,
    "varlen": _varlen,
}


def segment_attention(
    query: Tensor, key: Tensor, value: Tensor, ptr: Tensor | Segments, backend: str | None = None
) -> Tensor:
    r"""Return softmax(q k^T / sqrt(d)) v within each segment.

    Args:
        query: ``[T, heads, d]``.
        key: ``[T, heads, d]``.
        value: ``[T, heads, d]``.
        ptr: bounds of the segments, ``[S + 1]``; segments may be empty. Layers that share their segments should share a
            :class:`~socialgraph.nn.segments.Segments`, which remembers the layout.
        backend: "padded" (any device), "varlen" (GPU, float16 or bfloat16), "edges" (the reference, 40 to 60
            times slower); None takes varlen where it can run and padded elsewhere. Attention dropout is not
            offered: varlen has none, and inside the padded call it loses the fast path.

    Raises:
        OptionError: an unknown backend, or varlen on what it does not support.
    """
    can_pack = query.is_cuda and query.dtype in (torch.float16, torch.bfloat16)
    if backend is None:
        backend = "varlen" if can_pack else "padded"
    if backend not in BACKENDS:
        raise OptionError(f"no attention backend is called {backend!r}; there are {', '.join(BACKENDS)}")
    if backend == "varlen" and not can_pack:
        raise OptionError(f"varlen attention needs a GPU and half precision, got {query.device.type} and {query.dtype}")
    if query.size(0) == 0:
        return torch.zeros_like(value)
    return BACKENDS[backend](query, key, value, ptr if isinstance(ptr, Segments) else Segments(ptr))
