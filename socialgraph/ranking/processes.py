"""Several processes, as ``torchrun`` and ``accelerate launch`` start them: who am I, and who says what to whom.

The work is PyTorch's; accelerate joins the processes, and this only names what the package asks of them. One process
alone needs none.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
from accelerate import PartialState
from accelerate.utils import parse_flag_from_env
from torch import distributed

from socialgraph.errors import SocialgraphError

T = TypeVar("T")

#: how long one process waits for the others, who may have more to do
LONGEST_WAIT = timedelta(days=1)
#: what torchrun and accelerate launch set beside WORLD_SIZE
LAUNCHED = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def count() -> int:
    """Return how many processes work together."""
    return distributed.get_world_size() if _joined() else 1


def number() -> int:
    """Return which one this is, from 0."""
    return distributed.get_rank() if _joined() else 0


def is_first() -> bool:
    """Tell whether this process writes files and shows bars for all."""
    return number() == 0


def from_first(value: T) -> T:
    """Return the first process's value, in every process."""
    if count() == 1:
        return value
    values = [value]
    distributed.broadcast_object_list(values)
    return values[0]


def from_all(value: T) -> list[T]:
    """Return every process's value, in the order of the processes, in every process."""
    if count() == 1:
        return [value]
    values: list[Any] = [None] * count()
    distributed.all_gather_object(values, value)
    return values


def wait() -> None:
    """Wait until all processes are here."""
    from_all(None)


def run_in_first(function: Callable[[], T]) -> T:
    """Call a function in the first process alone; return what it returned, or raise what it refused, in all."""
    outcome: tuple[Any, SocialgraphError | None] = None, None
    if is_first():
        try:
            outcome = function(), None
        except SocialgraphError as error:
            outcome = None, error
    value, refused = from_first(outcome)
    if refused is not None:
        raise refused
    return cast(T, value)


def on_cpu() -> bool:
    """Tell whether the processes of this machine talk over the CPU: gloo, not NCCL.

    So they do where there are fewer GPUs than processes, or where ``accelerate launch --cpu`` or
    ``ACCELERATE_USE_CPU=1`` says so.
    """
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return parse_flag_from_env("ACCELERATE_USE_CPU") or torch.cuda.device_count() < here


def _joined() -> bool:
    """Join the others where a launcher has started several, and tell whether there are others.

    A ``WORLD_SIZE`` that some other program has left in the environment, without all that a launcher sets with it, is
    taken out of it, with a warning: PyTorch and accelerate would take it for one.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return False
    if missing := [name for name in LAUNCHED if name not in os.environ]:
        warnings.warn(
            f"WORLD_SIZE={os.environ.pop('WORLD_SIZE')} is in the environment and {', '.join(missing)} not: no "
            "launcher has started this process, which works alone",
            stacklevel=3,
        )
        return False
    if not distributed.is_initialized():
        PartialState(cpu=on_cpu(), timeout=LONGEST_WAIT)
    return True
