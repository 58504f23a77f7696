"""Counts that are kept beside what was counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from socialgraph.data.files import atomic_write
from socialgraph.errors import InputError


def kept(file: Path, names: Sequence[str], count: Callable[[], Sequence[Tensor]]) -> Sequence[Tensor]:
    """Return the tensors that a file holds; where there is none, count them and write it.

    Args:
        file: in the cache.
        names: of the tensors in the file.
        count: makes them.

    Raises:
        InputError: the file is damaged.
    """
    if file.exists():
        try:
            known = load_file(file)
            return [known[name] for name in names]
        except (OSError, KeyError, SafetensorError) as error:
            raise InputError(f"{file}: cannot be read, delete it ({error})") from error
    counts = count()
    # Suppressed: in a folder of somebody else's, that may only be read, it is counted each time.
    with suppress(OSError), atomic_write(file, "wb") as opened:
        opened.write(save(dict(zip(names, counts, strict=True))))
    return counts
