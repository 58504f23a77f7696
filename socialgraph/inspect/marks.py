"""What pictures are made of: colours, filled rectangles, frames and text."""

from __future__ import annotations

import textwrap
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from socialgraph.data.graph import DocumentGraph

Array = NDArray[Any]

#: Paul Tol's "light" scheme: made for cells with black text in them, distinct also for the colour-blind.
PALETTE = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#44BB99", "#AAAA00", "#99DDFF", "#BBCC33")
OTHERS = "#D9D9D9"  # circles without a colour of their own
UNGATHERED = "#FFFFFF"  # in no circle
QUERY = "#9B1B30"  # dark enough to be told from every fill by its lightness alone
GREY = "#666666"


def fill(axes: Axes, corners: Array, colours: Any, **style: Any) -> None:
    """Draw filled rectangles."""
    style = {"edgecolors": "none", **style}
    axes.add_collection(PolyCollection(list(corners), facecolors=colours, **style))


def boxes(left: Any, right: Any, top: Any, low: Any) -> Array:
    """Return the corners of rectangles, ``[n, 4, 2]``."""
    left, right, top, low = np.broadcast_arrays(*np.atleast_1d(left, right, top, low))
    return np.stack([np.stack([left, right, right, left], -1), np.stack([top, top, low, low], -1)], -1)


def blank(axes: Axes, width: float, height: float) -> None:
    """Make a panel empty, and measured in inches from its upper left corner."""
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()


def frame(axes: Axes, *places: Axis) -> None:
    """Draw a thin frame; ``places`` are axes along the document, with whole numbers."""
    for axis in places:
        axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.tick_params(labelsize=6.5, colors=GREY, length=2.5, width=0.6)
    outline(axes)


def outline(axes: Axes) -> None:
    """Draw a thin line around a panel."""
    for spine in axes.spines.values():
        spine.set(color="#AAAAAA", linewidth=0.6)


def write(axes: Axes, x: float, y: float, text: str, **style: Any) -> Any:
    """Write a text as it is: documents are hostile, so it is neither mathtext nor TeX."""
    style = {"va": "center_baseline", "family": "DejaVu Sans", **style}
    return axes.text(x, y, text, parse_math=False, usetex=False, **style)


def darker(colour: str) -> str:
    """Return a colour for thin marks on white, which need more contrast than cells."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{int(0.78 * channel):02x}" for channel in channels)


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    fonts = [get_font(findfont(FontProperties(family=name))) for name in ("DejaVu Sans", "DejaVu Sans Mono")]
    return frozenset(set.intersection(*(set(font.get_charmap()) for font in fonts)))


def printable(text: str) -> str:
    """Return a text with a box for what the font lacks, and for what would break the line or turn its direction."""
    known = _glyphs()
    return "".join(c if ord(c) in known and c.isprintable() else "\N{WHITE SQUARE}" for c in text)


def headline(title: str | None, graph: DocumentGraph, room: int) -> str:
    """Return a picture's title, by default the pair's ids, in at most so many characters."""
    if title is None:
        names = (("Document", graph.document_id), ("query", graph.query_id))
        title = ", ".join(f"{what} {name}" for what, name in names if name)
    return textwrap.shorten(printable(title), room, placeholder=" …")
