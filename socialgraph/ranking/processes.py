"""Several processes, as ``torchrun`` and ``accelerate launch`` start them: who am I, and who says what to whom.

The work is PyTorch's, through accelerate; this only names what the package asks of it. One process alone needs none.
"""

from __future__ import annotations

import os
from typing import TypeVar

from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object

T = TypeVar("T")


def count() -> int:
    """Return how many processes work together."""
    return PartialState().num_processes if _launched() else 1


def number() -> int:
    """Return which one this is, from 0."""
    return PartialState().process_index if _launched() else 0


def is_first() -> bool:
    """Tell whether this process writes files and shows bars for all."""
    return number() == 0


def from_first(value: T) -> T:
    """Return the first process's value, in every process."""
    if count() == 1:
        return value
    (told,) = broadcast_object_list([value])
    return told


def from_all(value: T) -> list[T]:
    """Return every process's value, in the order of the processes, in every process."""
    return [value] if count() == 1 else gather_object([value])


def wait() -> None:
    """Wait until all processes are here."""
    if count() > 1:
        PartialState().wait_for_everyone()


def _launched() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1
