"""Tensors that are kept in memory as long as there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from torch import Tensor


class LRUCache:
    """Tensors by key. When they take more than ``size`` bytes together, those not asked for longest go.

    A pickled copy begins empty: each worker fills its own.

    Args:
        size: bytes; 0 keeps nothing.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        self._kept: OrderedDict[Hashable, Tensor] = OrderedDict()

    def get(self, key: Hashable) -> Tensor | None:
        """Return what was kept under ``key``, or None."""
        value = self._kept.get(key)
        if value is not None:
            self._kept.move_to_end(key)
        return value

    def put(self, key: Hashable, value: Tensor) -> None:
        """Keep a tensor under ``key``. Its memory should be its own: a slice would keep alive what it is cut from."""
        if (old := self._kept.pop(key, None)) is not None:
            self.used -= _size(old)
        self._kept[key] = value
        self.used += _size(value)
        while self.used > self.size:
            self.used -= _size(self._kept.popitem(last=False)[1])

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[type[LRUCache], tuple[int]]:
        return type(self), (self.size,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tensors, {self.used:,} of {self.size:,} bytes)"


def _size(value: Tensor) -> int:
    return 512 + value.nbytes  # a tensor object and its key take about half a kilobyte beside the numbers
