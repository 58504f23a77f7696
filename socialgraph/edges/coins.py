"""Coins that need no memory: whether two tokens are friends is a pure function of names and places.

The coin of a pair is a hash of (seed, query id, document id, lower place, higher place). It is the same alone
or in a batch, in any worker, on any device, and any one row can be drawn without the others. The mixing
steps are those of SplitMix64 (Steele, Lea and Flood, 2014) and of MurmurHash3's 32-bit finaliser (Appleby).
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

#: a coin is a whole number from 0 to COIN_SIDES - 1
COIN_SIDES = 1 << 24


def coin_key(seed: int, query_id: str, document_id: str) -> int:
    """Return the key of a (query, document) pair: 63 bits of a hash of the three."""
    # Lengths are part of the text, so that ("a", "bc") and ("ab", "c") differ.
    text = f"{seed}:{len(query_id)}:{query_id}:{len(document_id)}:{document_id}"
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


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
        key: the document's key, for each node, ``[N]`` int64.
        position: the node's place in its document, ``[N]`` int64.
    """
    start = _mix64(key)
    return _mix64(start + 2 * position).int(), _mix64(start + 2 * position + 1).int()


def toss(lower: Tensor, higher: Tensor) -> Tensor:
    """Return the coins of pairs from their ends' hashes (broadcast): int32 in [0, COIN_SIDES).

    A pair with probability p is an edge when its coin is below ``p * COIN_SIDES``.
    """
    return finish(lower + higher)


def finish(x: Tensor) -> Tensor:
    """Turn sums of two hashes into coins, in place."""
    scratch = _shift(x, 16)  # written again and again: fresh memory costs more than the arithmetic
    x ^= scratch
    x *= _signed(0x85EBCA6B, 32)
    x ^= _shift(x, 13, scratch)
    x *= _signed(0xC2B2AE35, 32)
    x ^= _shift(x, 16, scratch)
    x &= COIN_SIDES - 1
    return x
