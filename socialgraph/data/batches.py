"""As much at once as fits in memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from socialgraph.errors import OptionError, check_whole

T = TypeVar("T")

#: bytes of shared memory that a worker's batches take, roughly: two that wait for the model, of 16,384 word pieces
_WORKER_BYTES = 8 << 20


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


def check_shared_memory(workers: int, place: Path = Path("/dev/shm")) -> None:
    """Refuse workers whose batches find no room on the way to the model: PyTorch would wait for ever.

    Args:
        workers: processes that build batches; 0 need no room.
        place: where shared memory is, on Linux.

    Raises:
        OptionError: there is less room than they take, or their number is none.
    """
    check_whole("workers", workers, 0)
    free = shutil.disk_usage(place).free if workers and place.is_dir() else workers * _WORKER_BYTES
    if free < workers * _WORKER_BYTES:
        raise OptionError(
            f"workers={workers} hand their batches over in {place}, which has {free / 1e6:.1f} MB left of the "
            f"{workers * _WORKER_BYTES / 1e6:.0f} MB that they take: use workers=0, or give the container more "
            "(docker run --shm-size=1g)"
        )
