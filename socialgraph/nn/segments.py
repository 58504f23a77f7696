"""Segments of packed rows, and how they are padded where a kernel needs that: worked out once for all layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

#: segments are padded to multiples of this many rows
PADDING = 32


@dataclass(frozen=True)
class PaddedBlock:
    """Segments of about the same size, side by side.

    Attributes:
        row: the row that stands at each place, ``[segments * width]``; where there is none, some other row.
        shape: segments and width.
        inside: which places are real, ``[segments, 1, 1, width]``; None where all are.
    """

    row: Tensor
    shape: tuple[int, int]
    inside: Tensor | None


class Segments:
    """Rows of all segments lie one after the other; segment s is ``ptr[s] ... ptr[s + 1] - 1``. It may be empty.

    Args:
        ptr: bounds of the segments, ``[S + 1]``.
    """

    def __init__(self, ptr: Tensor) -> None:
        self.ptr = ptr
        self._widest: int | None = None
        self._narrowest: int | None = None
        self._bounds: Tensor | None = None
        self._padded: tuple[list[PaddedBlock], Tensor] | None = None
        self._parts: dict[int, list[tuple[int, Segments]]] = {}

    def parts(self, rows: int) -> list[tuple[int, Segments]]:
        """Cut the rows between segments, into parts of about so many: the number of rows and the segments of each."""
        if rows not in self._parts:
            part = torch.div(self.ptr[:-1], rows, rounding_mode="floor")  # of each segment
            count = torch.unique_consecutive(part, return_counts=True)[1]
            first = (count.cumsum(0) - count).tolist()
            pieces = [self.ptr[i : i + n + 1] for i, n in zip(first, count.tolist(), strict=True)]
            self._parts[rows] = [(int(p[-1] - p[0]), Segments(p - p[0])) for p in pieces]
        return self._parts[rows]

    @staticmethod
    def measure(*several: Segments) -> list[int]:
        """Return the rows of each, and keep how wide their segments are.

        On a GPU each such number costs a wait of the processor for all that it has launched; here it is one for all.
        """
        asked = []
        for one in several:
            size = one.ptr.diff() if one.ptr.numel() > 1 else one.ptr
            asked += [one.ptr[-1], size.max(), size.min()]
        known = torch.stack(asked).tolist()
        for one, widest, narrowest in zip(several, known[1::3], known[2::3], strict=True):
            one._widest, one._narrowest = widest, narrowest
        return known[::3]

    @property
    def widest(self) -> int:
        """Rows of the largest segment; 0 where there is no segment."""
        if self._widest is None:
            Segments.measure(self)
            assert self._widest is not None
        return self._widest

    @property
    def narrowest(self) -> int:
        """Rows of the smallest segment; 0 where there is no segment."""
        if self._narrowest is None:
            Segments.measure(self)
            assert self._narrowest is not None
        return self._narrowest

    @property
    def bounds(self) -> Tensor:
        """The pointer as flash attention reads it, int32."""
        if self._bounds is None:
            self._bounds = self.ptr.int()
        return self._bounds

    @property
    def padded(self) -> tuple[list[PaddedBlock], Tensor]:
        """The segments by padded width, a multiple of 32, and the place of each row in all blocks together, ``[T]``.

        There are at most max(size) / 32 blocks.
        """
        if self._padded is None:
            self._padded = self._pad()
        return self._padded

    def _pad(self) -> tuple[list[PaddedBlock], Tensor]:
        size, first = self.ptr.diff(), self.ptr[:-1]
        number = (size + PADDING - 1) // PADDING
        blocks, rows, places, before = [], [size.new_empty(0)], [size.new_empty(0)], 0
        for times in torch.unique(number[number > 0]).tolist():
            here = (number == times).nonzero().flatten()
            width = min(times * PADDING, int(size[here].max()))
            place = torch.arange(width, device=size.device)
            inside = place < size[here, None]
            row = torch.where(inside, first[here, None] + place, 0)
            full = bool(inside.all())
            blocks.append(PaddedBlock(row.flatten(), (here.numel(), width), None if full else inside[:, None, None]))
            rows.append(row[inside])
            places.append(inside.flatten().nonzero().flatten() + before)
            before += row.numel()
        order = torch.argsort(torch.cat(rows))
        return blocks, torch.cat(places)[order]
