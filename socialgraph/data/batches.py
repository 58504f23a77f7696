"""As much at once as fits in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[T], length: Callable[[T], int], budget: int) -> Iterator[list[T]]:
    """Cut a row of items into parts whose lengths sum to at most ``budget``; each holds an item at least."""
    part: list[T] = []
    total = 0
    for item in items:
        size = length(item)
        if part and total + size > budget:
            yield part
            part, total = [], 0
        part.append(item)
        total += size
    if part:
        yield part
