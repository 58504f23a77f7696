"""Attention along edges, and inside segments of a packed sequence, which is that along the edges of complete graphs.

Rows of all segments, or of all documents, lie one after the other, ``[N, heads, d]``; segment s is
``ptr[s] ... ptr[s + 1] - 1``. No way computes attention dropout: "varlen" has none, and "padded" is slow with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import cumsum, segment, softmax
from torch_geometric.utils.sparse import index2ptr

from socialgraph.errors import OptionError, check_choice
from socialgraph.nn.segments import PaddedBlock, Segments, padded_blocks, padded_rows, width_classes

#: (query ``[R, heads, d]`` of who attends, key and value ``[N, heads, d]``) -> ``[R, heads, d]``
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]

#: ways to compute attention inside segments, and along edges
SEGMENT_BACKENDS = ("edges", "padded", "varlen")
EDGE_BACKENDS = ("edges", "dense", "flex")
#: nodes of a tile of the "flex" backend
TILE = 128
#: its narrowest head on a GPU
NARROWEST = 16


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
            times slower); None takes varlen where it can run and padded elsewhere.

    Raises:
        OptionError: an unknown backend, or varlen on what it does not support.
    """
    can_pack = query.is_cuda and query.dtype in (torch.float16, torch.bfloat16)
    backend = backend or ("varlen" if can_pack else "padded")
    check_choice("backend", backend, SEGMENT_BACKENDS)
    if backend == "varlen" and not can_pack:
        raise OptionError(f"varlen attention needs a GPU and half precision, got {query.device.type} and {query.dtype}")
    if query.size(0) == 0:
        return torch.zeros_like(value)
    segments = ptr if isinstance(ptr, Segments) else Segments(ptr)
    if backend == "varlen":
        return _varlen(query, key, value, segments)
    if backend == "padded":
        return padded_attention(*segments.padded, float32=query.requires_grad)(query, key, value)
    source, target = complete_edges(segments.ptr)
    return edge_attention(source, target, query.size(0))(query, key, value)


def masked_attention(edge_index: Tensor, ptr: Tensor, backend: str | None = None, width: int = NARROWEST) -> Attend:
    r"""Return softmax(q_i k_j / sqrt(d)) v_j over j = i and the edges j -> i, as a function of query, key and value.

    What a backend needs of the edges is prepared once for all layers of a forward pass.

    Args:
        edge_index: from who is attended to (row 0) to who attends (row 1), ``[2, E]``, inside documents, no self-loops.
        ptr: bounds of the documents, ``[B + 1]``.
        backend: "dense" (any device; a mask of l x l for each document, documents of similar length in one call),
            "flex" (FlexAttention, tiles of 128 x 128; compiled on a GPU, for heads of 16 or wider; on a CPU it computes
            N x N and has no gradient, for tests), "edges" (the reference, a message for each edge); None takes flex on
            a GPU where heads are wide enough, and dense elsewhere.
        width: of a head; only None asks for it.

    Raises:
        OptionError: an unknown backend.
    """
    backend = default_backend(ptr.device, width) if backend is None else backend
    check_choice("backend", backend, EDGE_BACKENDS)
    if backend == "dense":
        return _dense(edge_index, ptr)
    if backend == "flex":
        return _flex(edge_index, ptr)
    self_loops = torch.arange(int(ptr[-1]), device=ptr.device)
    source, target = torch.cat([edge_index, self_loops.expand(2, -1)], 1)
    return edge_attention(source, target, self_loops.numel())


def default_backend(device: torch.device, width: int) -> str:
    """Return which backend :func:`masked_attention` takes where none is named, for heads of a width."""
    return "flex" if device.type == "cuda" and width >= NARROWEST else "dense"


def complete_edges(ptr: Tensor) -> Tensor:
    """Return all ordered pairs within each segment, self-loops included: ``[2, sum of squares]``."""
    size = ptr.diff()
    row = torch.repeat_interleave(size)  # segment of each node
    degree = size[row]
    target = torch.repeat_interleave(degree)
    first = (degree.cumsum(0) - degree)[target]
    source = torch.arange(target.numel(), device=ptr.device) - first + ptr[row[target]]
    return torch.stack([source, target])


def edge_attention(source: Tensor, target: Tensor, size: int) -> Attend:
    """Return attention by messages along edges: exact, any edges, memory for a state for each edge.

    Args:
        source: row of key and value that is attended to, ``[E]``.
        target: row of query that attends, ``[E]``.
        size: number of rows of query.
    """
    target, order = torch.sort(target, stable=True)
    return sorted_edge_attention(source[order], index2ptr(target, size))


def sorted_edge_attention(source: Tensor, ptr: Tensor) -> Attend:
    """Return :func:`edge_attention` where edges are sorted by who attends.

    Sums are taken segment by segment and not by ``scatter``, whose order a GPU leaves open: scores would change in
    their last digits from one call to the next.

    Args:
        source: row of key and value that is attended to, ``[E]``.
        ptr: bounds of the edges of each row of query, ``[R + 1]``.
    """

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        # in float32, because half precision would lose the small terms of the sums
        keys, values = key.index_select(0, source).float(), value.index_select(0, source).float()
        queries = query.repeat_interleave(ptr.diff(), 0, output_size=keys.size(0)).float()
        weight = softmax((queries * keys).sum(-1) / query.size(-1) ** 0.5, ptr=ptr)
        return segment(weight.unsqueeze(-1) * values, ptr).to(query.dtype)

    return attend


def padded_attention(blocks: Sequence[PaddedBlock], place: Tensor, float32: bool = True) -> Attend:
    """Return attention by scaled_dot_product_attention, a call for each block. No linear layer is padded.

    Args:
        blocks: which together hold every row that attends once.
        place: of each row that attends in all blocks together, ``[R]``.
        float32: compute in float32 on a CPU, whose kernel for bfloat16 is slower with a mask, and takes twice the time
            to train (191 ms against 94 ms on 64 segments of 150).
    """

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if place.numel() == 0:
            return torch.zeros_like(query)
        kind, states = query.dtype, []
        if float32 and not query.is_cuda:
            query, key, value = query.float(), key.float(), value.float()
        for block in blocks:
            # index_select copies whole rows, where indexing by a matrix goes element by element
            q, k, v = (
                x.index_select(0, row.flatten()).view(*row.shape, *x.shape[1:]).transpose(1, 2)
                for x, row in ((query, block.row), (key, block.column), (value, block.column))
            )
            state = F.scaled_dot_product_attention(q, k, v, attn_mask=block.mask)
            states.append(state.transpose(1, 2).flatten(0, 1))
        return torch.cat(states).index_select(0, place).to(kind)

    return attend


def hub_attention(hub: Tensor, ptr: Tensor) -> Attend:
    """Return the attention of hubs, who attend to all of their documents: query rows are those of the hubs alone.

    Args:
        hub: which nodes are, ``[N]`` bool.
        ptr: bounds of the documents, ``[B + 1]``.
    """
    hub_ptr = cumsum(hub.long())[ptr]
    groups = []
    for documents, width in width_classes(ptr.diff()):
        row, is_hub = padded_rows(hub_ptr, documents, int(hub_ptr.diff()[documents].max()))
        column, inside = padded_rows(ptr, documents, width)
        if row.numel():
            groups.append((row, is_hub, column, inside[:, None, None]))
    return padded_attention(*padded_blocks(groups, ptr))


def _varlen(query: Tensor, key: Tensor, value: Tensor, segments: Segments) -> Tensor:
    """Flash attention over ragged segments: GPU, half precision, no padding at all."""
    from torch.nn.attention.varlen import varlen_attn

    bounds, width = segments.bounds, segments.widest
    states = varlen_attn(query, key, value, bounds, bounds, width, width)
    assert isinstance(states, Tensor)  # a pair only when auxiliary results are asked for
    return states


def _dense(edge_index: Tensor, ptr: Tensor) -> Attend:
    """scaled_dot_product_attention with a mask of l x l for each document, all masks in one flat tensor."""
    size = ptr.diff()
    classes = width_classes(size)
    width, first, end = torch.zeros_like(size), torch.zeros_like(size), 0
    for documents, longest in classes:
        width[documents] = longest
        first[documents] = end + torch.arange(documents.numel(), device=ptr.device) * longest**2
        end += documents.numel() * longest**2
    document = torch.repeat_interleave(size)
    source, target = edge_index
    start = ptr[document]
    row = first[document] + (torch.arange(document.numel(), device=ptr.device) - start) * width[document] - start
    flat = torch.zeros(end, dtype=torch.bool, device=ptr.device)
    flat[row[target] + source] = True
    groups = []
    for documents, longest in classes:
        begin = int(first[documents[0]])
        mask = flat[begin : begin + documents.numel() * longest**2].view(-1, 1, longest, longest)
        mask.diagonal(dim1=2, dim2=3).fill_(True)  # oneself; padding too, whose softmax would be over nothing
        index, inside = padded_rows(ptr, documents, longest)
        groups.append((index, inside, index, mask))
    return padded_attention(*padded_blocks(groups, ptr))


def _flex(edge_index: Tensor, ptr: Tensor) -> Attend:
    """FlexAttention over all documents as one sequence, in tiles; tiles without an edge are neither stored nor read."""
    from torch.nn.attention.flex_attention import BlockMask

    nodes = int(ptr[-1])
    if nodes == 0:
        return lambda query, key, value: torch.zeros_like(query)
    amount = -(-nodes // TILE)
    # padding behind the last node attends to itself too: a kernel may work out whole tiles
    self_loops = torch.arange(amount * TILE, device=ptr.device)
    source, target = torch.cat([edge_index[0], self_loops]), torch.cat([edge_index[1], self_loops])
    filled, number = torch.unique(target // TILE * amount + source // TILE, return_inverse=True)
    tiles = torch.zeros(filled.numel(), TILE, TILE, dtype=torch.bool, device=ptr.device)
    tiles[number, target % TILE, source % TILE] = True
    table = torch.full((amount * amount,), -1, dtype=torch.long, device=ptr.device)
    table[filled] = torch.arange(filled.numel(), device=ptr.device)
    table = table.view(amount, amount)

    def attends_to(batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        tile = table[i // TILE, j // TILE]
        return (tile >= 0) & tiles[tile.clamp(min=0), i % TILE, j % TILE]

    full = (table >= 0).int()[None, None]
    mask = BlockMask.from_kv_blocks(
        full.sum(-1, dtype=torch.int),
        full.argsort(dim=-1, descending=True, stable=True).int(),
        BLOCK_SIZE=TILE,
        mask_mod=attends_to,
        seq_lengths=(nodes, nodes),
    )

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        q, k, v = (x.transpose(0, 1)[None] for x in (query, key, value))
        return _flex_function(query.is_cuda)(q, k, v, block_mask=mask)[0].transpose(0, 1)

    return attend


@lru_cache
def _flex_function(compiled: bool) -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=True) if compiled else flex_attention
