"""Where the words of a document stand in its picture, and what is printed of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from socialgraph.inspect.marks import Array
from socialgraph.inspect.names import continues

CHARACTER = 0.602  # width of a character of DejaVu Sans Mono, in font sizes
LINE = 1.75  # height of a line of text, in font sizes
LARGEST, SMALLEST = 10.0, 4.0  # font sizes of the words, in points; below, words are not printed
LONGEST = 16  # characters of a word


class Cells(NamedTuple):
    """Where the words stand: in reading order, line by line."""

    left: Array  # [L], as the rest
    right: Array
    centre: Array  # of the printed word
    row: Array
    line: float  # height of a line
    size: float | None  # of the font, in points; None: no room for words


def layout(count: int, pieces: list[str] | None, width: float, height: float) -> Cells:
    """Return where word pieces stand: the largest font with which all fit; without words, or for too many, equal cells.

    Args:
        count: of the pieces.
        pieces: what is printed; None: nothing is.
        width: of the text.
        height: of the text, at most.
    """
    if pieces:
        joined = np.array([continues(piece) for piece in pieces])
        letters = np.array([len(shorten(piece)) for piece in pieces])
        # Pieces of one word stand close to each other.
        before = np.where(joined, 0.1, 0.6)
        wide = before + letters + np.where(np.append(joined[1:], False), 0.1, 0.45)
        for size in np.arange(LARGEST, SMALLEST - 0.01, -0.25).tolist():
            character = CHARACTER * size / 72
            row, left = wrap(wide, joined, width / character)
            line = LINE * size / 72
            if (row[-1] + 1) * line <= height:
                # Stretch every line but the last one to the full width, as a printer would.
                ends = np.zeros(row[-1] + 1)
                np.maximum.at(ends, row, left + wide)
                stretch = np.minimum(width / character / ends, 1.15)[row] * character
                centre = left + before + letters / 2
                return Cells(left * stretch, (left + wide) * stretch, centre * stretch, row, line, size)
    line = min(np.sqrt(width * height / (2.0 * max(count, 1))), 0.15)
    columns = max(int(width / (2.0 * line)), 1)
    while -(-count // columns) * line > height:
        columns += 1
    place = np.arange(count)
    cell = min(width / columns, 2.0 * line)
    left = (place % columns) * cell
    return Cells(left, left + cell, left + cell / 2, place // columns, line, None)


def wrap(wide: Array, joined: Array, line: float) -> tuple[Array, Array]:
    """Return the line of each piece and where in it the piece begins; only words longer than a line break."""
    word = np.cumsum(~joined)
    whole = np.bincount(word, weights=wide)[word]
    row, left, at, now = [], [], 0.0, 0
    for width, needed in zip(wide.tolist(), np.where(joined, wide, whole).tolist(), strict=True):
        if at > 0 and at + min(needed, line) > line:
            at, now = 0.0, now + 1
        row.append(now)
        left.append(at)
        at += width
    return np.array(row), np.array(left)


def whole_word(pieces: list[str] | None, node: int) -> str:
    """Return the word that a piece is part of, the piece itself in brackets; without words the node's number."""
    if pieces is None:
        return f"#{node}"
    first, last = node, node + 1
    while first > 0 and continues(pieces[first]):
        first -= 1
    while last < len(pieces) and continues(pieces[last]):
        last += 1
    if last - first == 1:
        return shorten(pieces[node])
    piece = shorten(pieces[node])
    before = "".join(map(shorten, pieces[first:node]))
    after = "".join(map(shorten, pieces[node + 1 : last]))
    room = max(LONGEST - len(piece), 2) // 2
    before = before if len(before) <= room else "…" + before[1 - room :]
    after = after if len(after) <= room else after[: room - 1] + "…"
    return f"{before}[{piece}]{after}"


def shorten(piece: str) -> str:
    """Return what is printed of a word piece."""
    piece = piece[2:] if continues(piece) else piece
    return piece if len(piece) <= LONGEST else piece[: LONGEST - 1] + "…"
