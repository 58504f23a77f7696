"""Out of memory: a batch is halved and tried again, and what does not fit alone says its name."""

from __future__ import annotations

import errno
import gc
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import torch

from socialgraph.errors import LawError, SocialgraphError, TooLargeError

T = TypeVar("T")
R = TypeVar("R")

#: what PyTorch and its kernels' libraries say where they have no exception of its own for it; the last is oneDNN's
_MESSAGES = re.compile(
    "out of memory|DefaultCPUAllocator|Cannot allocate memory|std::bad_alloc|STATUS_ALLOC_FAILED"
    "|could not create a (primitive|memory object)$"
)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an exception says that memory ran out, on a GPU or in the machine.

    Only a GPU's has an exception of its own in PyTorch; a CPU's is known by its words, NumPy's is a MemoryError.
    """
    if isinstance(error, LawError) and error.__cause__ is not None:  # of a user's own class
        return is_out_of_memory(error.__cause__)
    if isinstance(error, SocialgraphError):
        return False
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and _MESSAGES.search(str(error)) is not None


def free() -> None:
    """Give back what nobody holds any more: call it after the ``except`` block, whose error holds the tensors."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def if_it_fits(function: Callable[[T], R], argument: T | None) -> R | None:
    """Return what a function gives, None where memory runs out or there is nothing to give it."""
    try:
        return None if argument is None else function(argument)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    free()
    return None


class Halving(Generic[T]):
    """Runs functions over batches; where memory runs out, over their halves. Warns once.

    Args:
        size: word pieces of the document of an item.
        name: says which item it is, such as "document 'd1' for query 'q1'".
    """

    def __init__(self, size: Callable[[T], int], name: Callable[[T], str]) -> None:
        self.size = size
        self.name = name
        self.warned = False

    def __call__(self, function: Callable[[Sequence[T]], R], items: Sequence[T]) -> Iterator[tuple[Sequence[T], R]]:
        """Yield (items, what the function returned for them), in the items' order.

        Raises:
            TooLargeError: an item does not fit even alone.
        """
        parts = [items]
        while parts:
            part = parts.pop()
            try:
                result = function(part)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                if len(part) == 1:
                    raise self._too_large(part[0]) from error
            else:
                if part is not items and not self.warned:
                    self._warn(len(items), max(1, sum(map(self.size, part))))
                yield part, result
                del result
                continue
            free()  # here, where the error is gone: its frames hold the tensors of the batch
            middle = len(part) // 2
            parts += [part[middle:], part[:middle]]

    def _warn(self, documents: int, fits: int) -> None:
        self.warned = True
        warnings.warn(
            f"out of memory on a batch of {documents} documents: halved; token_budget={fits} would avoid it",
            stacklevel=4,
        )

    def _too_large(self, item: T) -> TooLargeError:
        return TooLargeError(
            f"{self.name(item)}, {self.size(item)} word pieces, does not fit in memory even alone; "
            "read less of it (document_length), use a smaller model, or a machine with more memory"
        )
