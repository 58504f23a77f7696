"""One small picture of a document's social graph: its circles along the text, and its adjacency matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from socialgraph.data.graph import DocumentGraph
from socialgraph.inspect.names import whole_words
from socialgraph.inspect.networkx import circles_of, edges_inside, friendships, one_graph

if TYPE_CHECKING:  # who ranks draws nothing and need not wait for matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Paul Tol's "bright": distinct for the colour-blind, too
COLOURS = ("#4477AA", "#EE6677", "#228833", "#AA3377", "#66CCEE", "#CCBB44")
GREY = "#BBBBBB"
FONT = "DejaVu Sans"  # comes with matplotlib
PIXELS = 256  # of the adjacency matrix of a longer document; a pixel counts the edges in it


def draw(graph: DocumentGraph, words: Sequence[str] | None = None, title: str | None = None) -> Figure:
    """Draw one document's social graph.

    Left, a line for each friend circle, by its number from 0: ticks are its members where they stand in the document,
    a black diamond is its leader. Right, the adjacency matrix: the darker, the more edges, those with both ends in a
    circle in its colour. :func:`~socialgraph.inspect.report` shows the text as well.

    The figure belongs to no window; ``figure.savefig(path)`` writes it. Words and title are drawn as they are, never as
    formulas; characters that the font lacks become a box.

    Args:
        graph: one pair; of a batch, take ``batch[i]``. Edges and circles may be missing.
        words: the word pieces, one for each node, to name the leaders.
        title: the headline; by default the pair's ids.

    Raises:
        InputError: a whole batch, a number of words that is not the number of nodes, or edges that were not kept.
    """
    graph, words = one_graph(graph, words)
    ends = friendships(graph)[0]
    circle_index, leader_index, passage_mask = circles_of(graph)
    circles = (~passage_mask).nonzero().flatten().tolist()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), facecolor="white", layout="constrained")
    lanes, matrix = figure.subplots(1, 2, width_ratios=(1.3, 1))
    last = max(int(graph.num_nodes or 0), 1) - 0.5
    place = np.linspace(-0.5, last, min(int(last + 0.5), PIXELS) + 1)
    row, column = torch.cat([ends, ends.flip(0)], 1).numpy()
    edges = np.histogram2d(row, column, bins=[place, place])[0]
    shades: dict[str, Any] = {"cmap": "Greys", "vmin": 0, "vmax": 1.5 * max(edges.max(), 1)}
    matrix.imshow(edges, extent=(-0.5, last, last, -0.5), gid="edges", **shades)
    dots: dict[str, Any] = {"linestyle": "none", "marker": "s", "markersize": 1, "rasterized": True}
    for number, (circle, inside) in enumerate(zip(circles, edges_inside(graph, ends), strict=True)):
        colour, members = COLOURS[number % len(COLOURS)], circle_index[0, circle_index[1] == circle]
        lanes.vlines(members, number - 0.4, number + 0.4, color=colour, linewidth=0.8, gid=f"circle {number}")
        lanes.plot(int(leader_index[circle]), number, marker="D", color="black", gid=f"leader {number}")
        met = torch.cat([ends[:, inside], ends[:, inside].flip(0)], 1)
        matrix.plot(*met, color=colour, gid=f"edges {number}", **dots)
    lanes.set(ylim=(max(len(circles), 1) - 0.5, -0.5), xlabel="place in the document (word pieces)")
    _frame(lanes, "friend circles, named by their leaders", last)
    _frame(matrix, "adjacency matrix", last)
    leaders = [int(leader_index[circle]) for circle in circles]
    names = [f"{name}  {number}" for number, name in enumerate(_leader_names(leaders, words))]
    size = min(9.0, 280 / max(len(names), 1))
    lanes.set_yticks(range(len(names)), names, size=size, family=FONT, parse_math=False, usetex=False)
    if title is None:
        ids = (("Document", graph.document_id), ("query", graph.query_id))
        title = ", ".join(f"{what} {name}" for what, name in ids if name)
    # no wrap=True: it measures the text as a formula, whatever parse_math says
    figure.suptitle(printable(title, 120), size=12, family=FONT, parse_math=False, usetex=False)
    return figure


def printable(text: str, room: int) -> str:
    """Return the first ``room`` characters of a text, with boxes for what the font lacks or what would break a line."""
    known = _glyphs()
    text = text if len(text) <= room else text[: room - 1] + "…"
    return "".join(c if ord(c) in known and c.isprintable() else "\N{WHITE SQUARE}" for c in text)


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=FONT))).get_charmap())


def _leader_names(leaders: list[int], words: list[str] | None) -> list[str]:
    if words is None:
        return [f"node {leader}" for leader in leaders]
    whole, places = whole_words(words)
    return [printable(whole[places[leader]], 16) for leader in leaders]


def _frame(axes: Axes, title: str, last: float) -> None:
    axes.set_title(title, size=9, color="#666666")
    axes.set_xlim(-0.5, last)
    axes.tick_params(labelsize=8, length=2.5)
    for spine in axes.spines.values():
        spine.set(color=GREY, linewidth=0.6)
