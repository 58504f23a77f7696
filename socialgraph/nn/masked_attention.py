"""Attention along edges: who listens hears oneself and those that an edge leads from.

Every backend prepares what it needs of the edges once, and gives a function for all layers of a forward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import cumsum, segment, softmax
from torch_geometric.utils.sparse import index2ptr

from socialgraph.errors import OptionError
from socialgraph.nn.segments import PADDING

#: (query ``[R, heads, d]`` of who listens, key and value ``[N, heads, d]`` of who is heard) -> ``[R, heads, d]``
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]

#: nodes of a tile of the "flex" backend
TILE = 128
#: its narrowest head on a GPU
NARROWEST = 16


def listening(source: Tensor, ptr: Tensor) -> Attend:
    """Return attention by messages along edges: exact, any edges, memory for a state for each edge.

    Sums are taken segment by segment and not by ``scatter``, whose order a GPU leaves open: scores would change in
    their last digits from one call to the next.

    Args:
        source: row of key and value that is heard, ``[E]``, sorted by who listens.
        ptr: bounds of what each row of query listens to, ``[R + 1]``.
    """

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        # in float32, because half precision would lose the small terms of the sums
        heard, said = key.index_select(0, source).float(), value.index_select(0, source).float()
        asked = query.repeat_interleave(ptr.diff(), 0, output_size=heard.size(0)).float()
        weight = softmax((asked * heard).sum(-1) / query.size(-1) ** 0.5, ptr=ptr)
        return segment(weight.unsqueeze(-1) * said, ptr).to(query.dtype)

    return attend


def listening_along(source: Tensor, target: Tensor, size: int) -> Attend:
    """Return the same along edges in any order.

    Args:
        source: row of key and value that is heard, ``[E]``.
        target: row of query that listens, ``[E]``.
        size: number of rows of query.
    """
    target, order = torch.sort(target, stable=True)
    return listening(source[order], index2ptr(target, size))


def hub_attention(hub: Tensor, ptr: Tensor) -> Attend:
    """Return the attention of hubs, who hear the whole of their documents: query rows are those of the hubs alone.

    Args:
        hub: which nodes are, ``[N]`` bool.
        ptr: bounds of the documents, ``[B + 1]``.
    """
    hub_ptr = cumsum(hub.long())[ptr]
    groups = []
    for documents, width in _length_classes(ptr.diff()):
        row, there = _padded(hub_ptr, documents, int(hub_ptr.diff()[documents].max()))
        column, inside = _padded(ptr, documents, width)
        groups.append((row, there, column, inside[:, None, None]))
    return _grouped([group for group in groups if group[0].numel()])


def _edges(edge_index: Tensor, ptr: Tensor) -> Attend:
    """Messages along the edges: slow, the reference."""
    oneself = torch.arange(int(ptr[-1]), device=ptr.device)
    source, target = torch.cat([edge_index, oneself.expand(2, -1)], 1)
    return listening_along(source, target, oneself.numel())


def _dense(edge_index: Tensor, ptr: Tensor) -> Attend:
    """scaled_dot_product_attention with a mask of l x l for each document, all masks in one flat tensor."""
    size = ptr.diff()
    classes = list(_length_classes(size))
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
        index, inside = _padded(ptr, documents, longest)
        groups.append((index, inside, index, mask))
    return _grouped(groups)


def _flex(edge_index: Tensor, ptr: Tensor) -> Attend:
    """FlexAttention over all documents as one sequence, in tiles; tiles without an edge are neither stored nor read."""
    from torch.nn.attention.flex_attention import BlockMask

    nodes = int(ptr[-1])
    if nodes == 0:
        return _grouped([])
    amount = -(-nodes // TILE)
    # padding behind the last node hears itself too: a kernel may work out whole tiles
    oneself = torch.arange(amount * TILE, device=ptr.device)
    source, target = torch.cat([edge_index[0], oneself]), torch.cat([edge_index[1], oneself])
    kept, number = torch.unique(target // TILE * amount + source // TILE, return_inverse=True)
    tiles = torch.zeros(kept.numel(), TILE, TILE, dtype=torch.bool, device=ptr.device)
    tiles[number, target % TILE, source % TILE] = True
    table = torch.full((amount * amount,), -1, dtype=torch.long, device=ptr.device)
    table[kept] = torch.arange(kept.numel(), device=ptr.device)
    table = table.view(amount, amount)

    def hears(batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        tile = table[i // TILE, j // TILE]
        return (tile >= 0) & tiles[tile.clamp(min=0), i % TILE, j % TILE]

    full = (table >= 0).int()[None, None]
    mask = BlockMask.from_kv_blocks(
        full.sum(-1, dtype=torch.int),
        full.argsort(dim=-1, descending=True, stable=True).int(),
        BLOCK_SIZE=TILE,
        mask_mod=hears,
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


BACKENDS: dict[str, Callable[[Tensor, Tensor], Attend]] = {"edges": _edges, "dense": _dense, "flex": _flex}


def default_backend(device: torch.device, width: int) -> str:
    """Return which backend is taken where none is named, for heads of a width."""
    return "flex" if device.type == "cuda" and width >= NARROWEST else "dense"


def masked_attention(edge_index: Tensor, ptr: Tensor, backend: str | None = None, width: int = NARROWEST) -> Attend:
    r"""Return softmax(q_i k_j / sqrt(d)) v_j over j = i and the edges j -> i, as a function of query, key and value.

    Args:
        edge_index: from who is heard (row 0) to who listens (row 1), ``[2, E]``, inside documents, no self-loops.
        ptr: bounds of the documents, ``[B + 1]``.
        backend: "dense" (any device; a mask of l x l for each document, documents of similar length in one call),
            "flex" (FlexAttention, tiles of 128 x 128; compiled on a GPU, for heads of 16 or wider; on a CPU it computes
            N x N and has no gradient, for tests), "edges" (the reference, a message for each edge); None takes flex on
            a GPU where heads are wide enough, and dense elsewhere. Attention has no dropout.
        width: of a head; only None asks for it.

    Raises:
        OptionError: an unknown backend.
    """
    backend = default_backend(ptr.device, width) if backend is None else backend
    if backend not in BACKENDS:
        raise OptionError(f"no attention along edges is called {backend!r}; there are {', '.join(BACKENDS)}")
    return BACKENDS[backend](edge_index, ptr)


def _length_classes(size: Tensor) -> list[tuple[Tensor, int]]:
    """Return documents of similar length together, ``[D]``, and the longest's length; empty ones are left out."""
    number = (size + PADDING - 1) // PADDING
    classes = [(number == n).nonzero().flatten() for n in torch.unique(number[number > 0]).tolist()]
    return [(documents, int(size[documents].max())) for documents in classes]


def _padded(ptr: Tensor, documents: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the rows of these documents, ``[D, width]``, and which of them are not padding (whose row is 0)."""
    place = torch.arange(width, device=ptr.device)
    inside = place < ptr.diff()[documents, None]
    return torch.where(inside, ptr[documents, None] + place, 0), inside


def _grouped(groups: list[tuple[Tensor, Tensor, Tensor, Tensor]]) -> Attend:
    """Return attention in a call for each group of documents.

    Args:
        groups: rows that listen ``[D, R]``, which of them are not padding, rows that are heard ``[D, W]``, and a mask
            that broadcasts to ``[D, 1, R, W]``. Together the groups hold every row that listens once.
    """
    if not groups:
        return lambda query, key, value: torch.zeros_like(query)
    order = torch.argsort(torch.cat([row[there] for row, there, _, _ in groups]))

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        kind = query.dtype
        if not query.is_cuda:  # the CPU's float32 kernel is faster than the one for bfloat16
            query, key, value = query.float(), key.float(), value.float()
        heard = []
        for row, there, column, mask in groups:
            q, k, v = (x[index].transpose(1, 2) for x, index in ((query, row), (key, column), (value, column)))
            heard.append(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)[there])
        return torch.cat(heard)[order].to(kind)

    return attend
