"""How much memory something takes at its worst."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from pathlib import Path

import torch


class PeakMemory:
    """Highest use of memory since this was made, in bytes.

    On a GPU: what tensors took there. On Linux without one: all that the process held (its resident set), with Python,
    libraries and texts. Elsewhere unknown.
    """

    def __init__(self) -> None:
        gc.collect()
        self.known = True
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
            return
        with suppress(AttributeError, OSError, TypeError):  # glibc only
            ctypes.CDLL(None).malloc_trim(0)  # what earlier rows have freed goes back to the system
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the kernel forgets the peak so far
        except OSError:
            self.known = False

    def read(self) -> int | None:
        """Return the peak so far, or None where it is unknown."""
        if torch.cuda.is_available():
            return torch.cuda.max_memory_allocated()
        if self.known:
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return None
