"""What it looks like when memory runs out."""

from __future__ import annotations

from accelerate.utils.memory import should_reduce_batch_size

#: the operating system's words, where a batch of a worker finds no room
_SYSTEM = "Cannot allocate memory"


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory ran out, on a GPU or in the machine, or was caused by one that does.

    Accelerate knows PyTorch's, by their words. NumPy's is a MemoryError. A class of the user's own that runs out of
    memory ends in an error of this package, whose cause it is.
    """
    if isinstance(error, MemoryError) or should_reduce_batch_size(error) or _SYSTEM in str(error):
        return True
    return error.__cause__ is not None and is_out_of_memory(error.__cause__)
