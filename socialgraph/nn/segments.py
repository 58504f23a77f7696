"""Segments of packed rows, and how they are padded where a kernel needs that: worked out once for all layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

#: segments are padded to multiples of this many rows
PADDING = 32


@dataclass(frozen=True)
class PaddedBlock:
    """D segments of about the same size side by side, for one call of attention. Padding is row 0.

    Attributes:
        row: the rows that attend, ``[D, R]``.
        column: the rows that they attend to, ``[D, W]``.
        mask: which of these each may, broadcast to ``[D, 1, R, W]``; None: all.
    """

    row: Tensor
    column: Tensor
    mask: Tensor | None


class Segments:
    """Rows of all segments lie one after the other; segment s is ``ptr[s] ... ptr[s + 1] - 1``. It may be empty.

    Args:
        ptr: bounds of the segments, ``[S + 1]``.
    """

    def __init__(self, ptr: Tensor) -> None:
        self.ptr = ptr
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
            one.widths = widest, narrowest
        return known[::3]

    @cached_property
    def widths(self) -> tuple[int, int]:
        """Rows of the largest and of the smallest segment; 0 where there is no segment."""
        Segments.measure(self)  # which sets it
        return self.widths

    @property
    def widest(self) -> int:
        """Rows of the largest segment; 0 where there is no segment."""
        return self.widths[0]

    @property
    def narrowest(self) -> int:
        """Rows of the smallest segment; 0 where there is no segment."""
        return self.widths[1]

    @cached_property
    def bounds(self) -> Tensor:
        """The pointer as flash attention reads it, int32."""
        return self.ptr.int()

    @cached_property
    def padded(self) -> tuple[list[PaddedBlock], Tensor]:
        """The segments by padded width, see :func:`padded_blocks`. There are at most max(size) / 32 blocks."""
        groups = []
        for segments, width in width_classes(self.ptr.diff()):
            row, inside = padded_rows(self.ptr, segments, width)
            groups.append((row, inside, row, None if bool(inside.all()) else inside[:, None, None]))
        return padded_blocks(groups, self.ptr)


def width_classes(size: Tensor) -> list[tuple[Tensor, int]]:
    """Return segments of similar size together, ``[D]``, and the largest's; empty ones are left out."""
    number = (size + PADDING - 1) // PADDING
    classes = [(number == n).nonzero().flatten() for n in torch.unique(number[number > 0]).tolist()]
    return [(segments, int(size[segments].max())) for segments in classes]


def padded_rows(ptr: Tensor, segments: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the rows of some segments, ``[D, width]``, and which of them are not padding (whose row is 0)."""
    place = torch.arange(width, device=ptr.device)
    inside = place < ptr.diff()[segments, None]
    return torch.where(inside, ptr[segments, None] + place, 0), inside


def padded_blocks(
    groups: Sequence[tuple[Tensor, Tensor, Tensor, Tensor | None]], ptr: Tensor
) -> tuple[list[PaddedBlock], Tensor]:
    """Return a block for each group, and the place of each row that attends in all blocks together, ``[R]``.

    Args:
        groups: row, which of them are not padding, column and mask of each, see :class:`PaddedBlock`. Together they
            hold every row that attends once.
        ptr: gives device and kind.
    """
    inside = torch.cat([ptr.new_empty(0, dtype=torch.bool), *(inside.flatten() for _, inside, _, _ in groups)])
    rows = torch.cat([ptr.new_empty(0), *(row.flatten() for row, _, _, _ in groups)])
    place = inside.nonzero().flatten()
    blocks = [PaddedBlock(row, column, mask) for row, _, column, mask in groups]
    return blocks, place[torch.argsort(rows[place])]
