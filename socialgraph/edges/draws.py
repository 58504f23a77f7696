"""Draws that need no memory: whether two tokens are joined is a pure function of texts and places.

The hash of a pair is one of (seed, the query's word pieces, the document's word pieces, lower place, higher place). It
is the same alone or in a batch, in any worker, on any device and under any name, and any one row can be drawn without
the others. The mixing steps are those of SplitMix64 (Steele, Lea and Flood, 2014) and of MurmurHash3's 32-bit finaliser
(Appleby).
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from socialgraph.kernels import HASH_RANGE

__all__ = ["HASH_RANGE", "constant_key", "draw_key", "finish_hash", "node_hashes", "pair_hash"]


def draw_key(seed: int, query_ids: Tensor, input_ids: Tensor) -> int:
    """Return the key of a pair of texts: 63 bits of a hash of the seed and of both as they are read.

    The same texts have the same graph, whatever they are called.

    Args:
        seed: of the draw.
        query_ids: word pieces of the query, ``[Q]``.
        input_ids: word pieces of the document, ``[L]``.
    """
    whole = hashlib.blake2b(f"{seed}:{query_ids.numel()}:".encode(), digest_size=8)
    for ids in (query_ids, input_ids):
        whole.update(ids.to("cpu", torch.int32).numpy().tobytes())
    return int.from_bytes(whole.digest(), "little") >> 1


def constant_key(hash_of_all: Tensor) -> Tensor:
    """Return keys under which every pair of a document has the same hash: negative, where those of draws are not.

    Such a key holds the sum of two hashes of nodes, found by turning :func:`finish_hash` around.

    Args:
        hash_of_all: of each document, in [0, HASH_RANGE), ``[B]`` int64.
    """
    x = hash_of_all ^ (hash_of_all >> 16)
    x = (x * pow(0xC2B2AE35, -1, 1 << 32)) & 0xFFFFFFFF
    x = x ^ (x >> 13) ^ (x >> 26)
    x = (x * pow(0x85EBCA6B, -1, 1 << 32)) & 0xFFFFFFFF
    return ~(x ^ (x >> 16))


def _shift(x: Tensor, bits: int, out: Tensor | None = None) -> Tensor:
    """Shift right, filling with zeros; ``>>`` on signed numbers fills with the sign."""
    width = 8 * x.element_size()
    return torch.bitwise_right_shift(x, bits, out=out).bitwise_and_((1 << (width - bits)) - 1)


def _signed(x: int, width: int) -> int:
    return x - (1 << width) if x >> (width - 1) else x


def _mix64(x: Tensor) -> Tensor:
    x = x * _signed(0x9E3779B97F4A7C15, 64)
    x = (x ^ _shift(x, 30)) * _signed(0xBF58476D1CE4E5B9, 64)
    x = (x ^ _shift(x, 27)) * _signed(0x94D049BB133111EB, 64)
    return x ^ _shift(x, 31)


def node_hashes(key: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
    """Return two 32-bit numbers for each node: one as the lower, one as the higher end of a pair.

    Args:
        key: the document's key, for each node, ``[N]`` int64; see :func:`constant_key` for negative ones.
        position: the node's place in its document, ``[N]`` int64.
    """
    start = _mix64(key)
    lower, higher = _mix64(start + 2 * position), _mix64(start + 2 * position + 1)
    return torch.where(key < 0, ~key, lower).int(), torch.where(key < 0, 0, higher).int()


def pair_hash(lower: Tensor, higher: Tensor) -> Tensor:
    """Return the hashes of pairs from those of their ends (broadcast): int32 in [0, HASH_RANGE).

    A pair with probability p is an edge when its hash is below ``p * HASH_RANGE``.
    """
    return finish_hash(lower + higher)


def finish_hash(x: Tensor) -> Tensor:
    """Turn sums of two hashes into hashes of pairs, in place."""
    scratch = _shift(x, 16)  # written again and again: fresh memory costs more than the arithmetic
    x ^= scratch
    x *= _signed(0x85EBCA6B, 32)
    x ^= _shift(x, 13, scratch)
    x *= _signed(0xC2B2AE35, 32)
    x ^= _shift(x, 16, scratch)
    x &= HASH_RANGE - 1
    return x
