"""Node weights that cost a pass through a BERT, kept for each (query, document)."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.data.cache import Cache, content_key
from socialgraph.edges import Centrality

#: a hash of each pattern's options and parameters
_PATTERNS: WeakKeyDictionary[Centrality, bytes] = WeakKeyDictionary()


def cached_weights(pattern: Centrality, batch: Batch, cache: Cache) -> Tensor:
    """Return the pattern's weight of every node, ``[N]`` float32; only pairs that are not in the cache are computed.

    A weight is found by what it is made of: the pattern's options and parameters, the query's and the document's word
    pieces. So a pair has the same weights, and with them the same graph to the last bit, in whatever batch it comes
    again. Where several processes compute the same pair, all take what the cache got first.
    """
    keys = _keys(pattern, batch)
    known = cache.get(keys)
    place = {key: number for number, key in enumerate(keys) if key not in known}  # of each pair, which may come twice
    if place:
        every = len(place) == batch.num_graphs
        some = batch if every else Batch.from_data_list(batch.index_select(list(place.values())))
        parts = torch.split(pattern.weights(some).float().cpu(), some.ptr.diff().tolist())
        fresh = {key: part.numpy().tobytes() for key, part in zip(place, parts, strict=True)}
        cache.put(fresh)
        known |= fresh | cache.get(fresh)
    weights = np.frombuffer(b"".join(known[key] for key in keys), np.float32).copy()
    return torch.from_numpy(weights).to(batch.input_ids.device)


def _keys(pattern: Centrality, batch: Batch) -> list[bytes]:
    """Return what each pair's weights depend on, as a key."""
    if pattern not in _PATTERNS:
        parts = [repr(pattern).encode()]
        for name, value in pattern.state_dict().items():
            parts.append(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            parts.append(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        _PATTERNS[pattern] = content_key(*parts)
    words, query = (ids.int().cpu().numpy().tobytes() for ids in (batch.input_ids, batch.query_ids))
    ends, query_ends = ((4 * one).tolist() for one in (batch.ptr[1:], batch.query_length.cumsum(0)))
    starts, query_starts = [0, *ends], [0, *query_ends]
    return [
        content_key(_PATTERNS[pattern], query[query_start:query_end], words[start:end])
        for start, end, query_start, query_end in zip(starts, ends, query_starts, query_ends, strict=False)
    ]
