"""One picture of a document's social graph: the text, its friend circles, and who knows whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from socialgraph.data.graph import DocumentGraph
from socialgraph.edges.layout import documents
from socialgraph.errors import OptionError, counted
from socialgraph.inspect.marks import (
    GREY,
    OTHERS,
    PALETTE,
    QUERY,
    UNGATHERED,
    Array,
    blank,
    boxes,
    darker,
    fill,
    frame,
    headline,
    printable,
    write,
)
from socialgraph.inspect.names import continues
from socialgraph.inspect.networkx import circles_of, friendships, meetings, one_graph
from socialgraph.inspect.word_cells import Cells, layout, shorten, whole_word
from socialgraph.query_match import query_match

# All lengths are in inches unless a name says otherwise.
WIDTH, MARGIN, NUMBERS = 14.0, 0.3, 0.35
HEADER, TEXT, GAP, LOWER, FOOT = 0.95, 5.35, 0.62, 2.6, 0.5
LANES = 20  # friend circles that have a line of their own


@dataclass(frozen=True)
class Circle:
    """What the picture tells of one friend circle."""

    number: int
    leader: int
    members: Array  # node ids, ascending
    inside: Array  # which of the edges lie between two members
    reach: float  # sum of the probabilities of the leader's edges to members
    colour: str
    has_colour: bool


def draw(
    graph: DocumentGraph,
    words: Sequence[str] | None = None,
    circles: Sequence[int] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw one document's social graph.

    Above, the text in reading order, a cell for each word piece in the colours of its friend circles. Below,
    a line for each circle: its leader (a black diamond), its members where they stand in the document, and

    * members: the leader included;
    * friendships: edges between two members;
    * expected reach: the sum of the probabilities of the edges between the leader and members, which is how
      many of them to expect again when the coins are tossed anew.

    Below right, the adjacency matrix: a dot for each edge, coloured where both ends meet in a circle.

    The figure belongs to no window and no global state; ``figure.savefig(path)`` writes it. Words are drawn
    as they are, never as formulas; characters that the font lacks become a box.

    Args:
        graph: one pair; of a batch, take ``batch[i]``. Edges and circles may be missing.
        words: the word pieces, one for each node, as ``Tokens.words(graph.input_ids)`` gives them.
        circles: numbers (as in ``graph.circle_index``) of the friend circles that get a colour, 8 at
            most; the others are grey. By default the first 8.
        title: the headline; by default the pair's ids.

    Raises:
        InputError: a whole batch, or a number of words that is not the number of nodes.
        OptionError: ``circles`` names more than 8, or one that is no friend circle of the graph.
    """
    graph, words = one_graph(graph, words)
    pieces = None if words is None else [printable(word) for word in words]
    gathered = _circles(graph, circles)
    cells = layout(int(graph.num_nodes or 0), pieces, WIDTH - 2 * MARGIN - NUMBERS, TEXT)

    text_height = max(cells.line * (int(cells.row.max(initial=0)) + 1), 0.3)
    height = HEADER + text_height + GAP + LOWER + FOOT
    figure = Figure(figsize=(WIDTH, height), facecolor="white")

    def panel(left: float, bottom: float, width: float, tall: float) -> Axes:
        return figure.add_axes((left / WIDTH, bottom / height, width / WIDTH, tall / height))

    bottom = FOOT + LOWER + GAP
    _header(panel(MARGIN, bottom + text_height, WIDTH - 2 * MARGIN, HEADER), graph, gathered, title)
    _text(panel(MARGIN, bottom, WIDTH - 2 * MARGIN, text_height), graph, cells, pieces, gathered)
    side = WIDTH - MARGIN - LOWER
    _table(panel(MARGIN, FOOT, 3.6, LOWER), gathered, pieces)
    _lanes(panel(MARGIN + 3.65, FOOT, side - MARGIN - 3.65 - 0.75, LOWER), graph, gathered)
    _adjacency(panel(side, FOOT, LOWER, LOWER), graph, gathered)
    return figure


def _circles(graph: DocumentGraph, chosen: Sequence[int] | None) -> list[Circle]:
    circle_index, leader_index, passage_mask = circles_of(graph)
    ends, weight = friendships(graph)
    numbers = (~passage_mask).nonzero().flatten().tolist()
    chosen = numbers[: len(PALETTE)] if chosen is None else list(dict.fromkeys(chosen))
    unknown = sorted(set(chosen) - set(numbers))
    if unknown:
        there = ", ".join(map(str, numbers)) or "none"
        raise OptionError(f"circles names {unknown[0]}, but the friend circles of the graph are {there}")
    if len(chosen) > len(PALETTE):
        raise OptionError(f"there are colours for {len(PALETTE)} circles at most, got {len(chosen)}")
    colours = dict(zip(chosen, PALETTE, strict=False))
    result = []
    for number, inside in meetings(graph, ends):
        leader = int(leader_index[number])
        result.append(
            Circle(
                number=number,
                leader=leader,
                members=circle_index[0, circle_index[1] == number].numpy(),
                inside=ends[:, inside].numpy(),
                reach=float(weight[inside][(ends[:, inside] == leader).any(0)].sum()),
                colour=colours.get(number, OTHERS),
                has_colour=number in colours,
            )
        )
    return result


def _header(axes: Axes, graph: DocumentGraph, circles: list[Circle], title: str | None) -> None:
    blank(axes, WIDTH - 2 * MARGIN, HEADER)
    write(axes, 0, 0.17, headline(title, graph, 120), size=14, weight="bold")
    nodes, edges = int(graph.num_nodes or 0), friendships(graph)[0].shape[1]
    pairs = nodes * (nodes - 1) / 2
    passages = circles_of(graph)[2].nonzero().flatten().tolist()
    facts = [
        counted(nodes, "word piece"),
        counted(edges, "friendship") + (f" ({edges / pairs:.1%} of all pairs)" if pairs else ""),
        counted(len(passages), "passage") + _span(passages),
        counted(len(circles), "friend circle") + _span([circle.number for circle in circles]),
    ]
    write(axes, 0, 0.48, ", ".join(facts), size=9, color=GREY)

    # The key: a sample of every mark, then what it means.
    at, top, tall = 0.0, 0.69, 0.16

    def sample(width: float, meaning: str) -> None:
        nonlocal at
        text = write(axes, at + width + 0.07, top + tall / 2, meaning, size=8)
        at += width + 0.07 + 0.052 * len(text.get_text()) + 0.3

    coloured = [circle for circle in circles if circle.has_colour]
    for place, circle in enumerate(coloured):
        left = 0.22 * place
        fill(axes, boxes(left, left + 0.2, top, top + tall), circle.colour)
        write(axes, left + 0.1, top + tall / 2, str(circle.number), size=6.5, ha="center")
    if coloured:
        sample(0.22 * len(coloured) - 0.02, "friend circles (a cell has the colours of all its circles)")
    if len(coloured) < len(circles):
        fill(axes, boxes(at, at + 0.2, top, top + tall), OTHERS)
        sample(0.2, "other friend circles")
    fill(axes, boxes(at, at + 0.26, top, top + tall), "none", edgecolors="black", linewidths=1.6)
    sample(0.26, "leader of a circle")
    fill(axes, boxes(at, at + 0.26, top + 0.12, top + tall), QUERY)
    sample(0.26, "word of the query")
    fill(axes, boxes(at + 0.02, at + 0.04, top, top + tall), "black")
    sample(0.06, "a passage begins")


def _text(axes: Axes, graph: DocumentGraph, cells: Cells, pieces: list[str] | None, circles: list[Circle]) -> None:
    count, line = len(cells.row), cells.line
    blank(axes, WIDTH - 2 * MARGIN, max(line * (int(cells.row.max(initial=0)) + 1), 0.3))
    if count == 0:
        write(axes, NUMBERS, 0.15, "The document has no word piece.", size=9, color=GREY)
        return
    tight = cells.size is None  # no room: the cells touch each other
    inner = 0.0 if tight else 0.09 * line
    joined = np.array([continues(piece) for piece in pieces or [""] * count])
    space = 0.0 if tight else 0.012 + 0.06 * line
    left = NUMBERS + cells.left + np.where(joined, 0.0, space)
    right, top, low = NUMBERS + cells.right, cells.row * line + inner, (cells.row + 1) * line - inner

    met = np.zeros(count, dtype=bool)
    for circle in circles:
        met[circle.members] = True
    around = boxes(left, right, top, low)
    outline = {"edgecolors": "#DDDDDD", "linewidths": 0.25 if tight else 0.4}
    fill(axes, around, np.where(met, OTHERS, UNGATHERED).tolist(), gid="cells", **outline)
    _memberships(axes, circles, left, right, top, low)
    match = query_match(graph, documents(graph)[0]).numpy()
    bar = low - (0.3 if tight else 0.16) * (low - top)
    fill(axes, boxes(left, right, bar, low)[match], QUERY, gid="query matches")
    begins = _passages(graph)
    edge = left[begins] - space / 2
    ends = (edge - 0.01, edge + 0.01, top[begins] - inner, low[begins] + inner)
    fill(axes, boxes(*ends), "black", zorder=3, gid="passages")
    leaders = sorted({circle.leader for circle in circles})
    bold = {"edgecolors": "black", "linewidths": 1.2 if tight else 1.8}
    fill(axes, around[leaders], "none", zorder=4, gid="leaders", **bold)
    if pieces and cells.size is not None:
        _words(axes, cells, pieces, met, leaders)
        _leader_numbers(axes, circles, right, top, max(0.65 * cells.size, 4.0))
    rows, firsts = np.unique(cells.row, return_index=True)
    every = int(np.ceil(0.11 / line))
    for row, first in zip(rows[::every].tolist(), firsts[::every].tolist(), strict=True):
        write(axes, NUMBERS - 0.06, (row + 0.5) * line, str(first), size=5.5, color=GREY, ha="right")


def _memberships(axes: Axes, circles: list[Circle], left: Array, right: Array, top: Array, low: Array) -> None:
    """Colour the members: who belongs to several coloured circles shows all of their colours, side by side."""
    coloured = [circle for circle in circles if circle.has_colour]
    if not coloured:
        return
    node = np.concatenate([circle.members for circle in coloured])
    colour = np.repeat([circle.colour for circle in coloured], [circle.members.size for circle in coloured])
    order = np.argsort(node, kind="stable")
    node, colour = node[order], colour[order]
    turn = np.arange(len(node)) - np.searchsorted(node, node)
    part = (right - left)[node] / np.bincount(node, minlength=len(left))[node]
    start = left[node] + turn * part
    stripes = boxes(start, start + part, top[node], low[node])
    fill(axes, stripes, colour.tolist(), gid="memberships")


def _words(axes: Axes, cells: Cells, pieces: list[str], met: Array, leaders: list[int]) -> None:
    """Write the word pieces into their cells, leaders in bold, those in no circle in grey."""
    for i, piece in enumerate(pieces):
        write(
            axes, NUMBERS + cells.centre[i], (cells.row[i] + 0.5) * cells.line, shorten(piece), size=cells.size,
            family="DejaVu Sans Mono", weight="bold" if i in leaders else "normal",
            color="black" if met[i] else GREY, ha="center", zorder=5, gid="word",
        )  # fmt: skip


def _leader_numbers(axes: Axes, circles: list[Circle], right: Array, top: Array, size: float) -> None:
    """Write the numbers of the circles that a word leads on its upper right corner."""
    box = {"boxstyle": "square,pad=0.15", "facecolor": "black", "edgecolor": "none"}
    style = {"size": size, "color": "white", "zorder": 6, "ha": "right", "va": "bottom"}
    for leader in sorted({circle.leader for circle in circles}):
        numbers = ", ".join(str(circle.number) for circle in circles if circle.leader == leader)
        write(axes, right[leader], top[leader] + 0.02, numbers, bbox=box, gid="leader number", **style)


def _table(axes: Axes, circles: list[Circle], pieces: list[str] | None) -> None:
    shown, lane = _rows(circles)
    blank(axes, 3.6, LOWER)
    names = ("circle", "leader", "members", "friendships", "expected\nreach")
    columns = (0.22, 1.45, 2.05, 2.85, 3.6)
    for right, name in zip(columns, names, strict=True):
        write(axes, right, -0.04, name, size=7, color=GREY, ha="right", va="bottom", linespacing=1.0)
    if not circles:
        write(axes, 0, 0.15, "No friend circle.", size=9, color=GREY)
    for place, circle in enumerate(shown):
        at = (place + 0.5) * lane
        tall = min(lane * 0.42, 0.09)
        fill(axes, boxes(0.0, 0.22, at - tall, at + tall), circle.colour)
        size = min(8.0, 0.8 * lane * 72)
        write(axes, 0.11, at, str(circle.number), size=size, ha="center")
        name = whole_word(pieces, circle.leader)
        cells = (name, str(len(circle.members)), str(circle.inside.shape[1]), f"{circle.reach:.1f}")
        for right, cell in zip(columns[1:], cells, strict=True):
            bold = {"family": "DejaVu Sans Mono", "weight": "bold"} if right == columns[1] else {}
            write(axes, right, at, cell, size=size, ha="right", gid=f"circle {circle.number}", **bold)
    notes = ["expected reach: friends the leader keeps, on average,"]
    notes += ["if the coins of its circle are tossed again"]
    if len(shown) < len(circles):
        notes.append(f"not shown: {counted(len(circles) - len(shown), 'friend circle')}")
    for place, note in enumerate(notes if circles else []):
        write(axes, 0, LOWER + 0.12 + 0.13 * place, note, size=7, color=GREY)


def _lanes(axes: Axes, graph: DocumentGraph, circles: list[Circle]) -> None:
    shown, lane = _rows(circles)
    count = int(graph.num_nodes or 0)
    axes.set(xlim=(-0.5, max(count, 1) - 0.5), ylim=(LOWER, 0), yticks=[])
    label = "place in the document (word pieces); passages begin at the thin lines"
    axes.set_xlabel(label, size=7, color=GREY)
    for begin in _passages(graph):
        axes.axvline(begin - 0.5, color="#C8C8C8", linewidth=0.6, zorder=0)
    swing = np.linspace(0, np.pi, 40)
    for place, circle in enumerate(shown):
        top, low = (place + 0.08) * lane, (place + 0.92) * lane
        colour = darker(circle.colour)
        middle, radius = (circle.members + circle.leader) / 2, (circle.members - circle.leader) / 2
        if lane > 0.3:  # arcs from the leader to each of its friends; the further away, the higher
            rise = np.sqrt(np.abs(radius) / max(np.abs(radius).max(), 1)) * (low - top) * 0.8
            top = low - 0.06
            across = middle[:, None] + radius[:, None] * np.cos(swing)
            arcs = np.stack([across, top - rise[:, None] * np.sin(swing)], -1)
            axes.add_collection(LineCollection(list(arcs), colors=colour, linewidths=0.6, alpha=0.6))
        ticks = np.empty((len(circle.members), 2, 2))
        ticks[:, :, 0] = circle.members[:, None]
        ticks[:, 0, 1], ticks[:, 1, 1] = top, low
        lines = LineCollection(list(ticks), colors=colour, linewidths=1.0, gid=f"members {circle.number}")
        axes.add_collection(lines)
        diamond: dict[str, Any] = {"marker": "D", "markersize": min(5.0, 40 * lane), "color": "black"}
        diamond |= {"markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 3, "clip_on": False}
        axes.plot([circle.leader], [(top + low) / 2], gid=f"leader {circle.number}", **diamond)
        if place:
            axes.axhline(place * lane, color="#EEEEEE", linewidth=0.6, zorder=0)
    frame(axes, axes.xaxis)


def _adjacency(axes: Axes, graph: DocumentGraph, circles: list[Circle]) -> None:
    ends = friendships(graph)[0].numpy()
    count = max(int(graph.num_nodes or 0), 1)
    axes.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5), aspect="equal")
    axes.set_title("Who knows whom: a dot for each two friends,\ncoloured where both are in a circle",
                   size=7, color=GREY, pad=4, linespacing=1.1)  # fmt: skip
    place = LOWER * 72 / count  # one place of the matrix, in points
    # Where places are too small to be seen, dots are larger, so that a third of the panel is inked and shows
    # where friendships are dense.
    density = max(2 * ends.shape[1] / count**2, 1e-9)
    dot = place * min(max((0.3 / density) ** 0.5, 0.9), max(0.7 / place, 0.9))
    bright = place * min(5.0, max(1.0 / place, 0.9))
    dots: dict[str, Any] = {"linestyle": "none", "marker": "s", "markeredgewidth": 0, "rasterized": True}
    axes.plot(*_both(ends), color="#B5B5B5", markersize=dot, snap=False, gid="edges", **dots)
    for circle in circles:
        if circle.has_colour:
            axes.plot(*_both(circle.inside), color=darker(circle.colour), markersize=bright,
                      gid=f"edges {circle.number}", **dots)  # fmt: skip
    frame(axes, axes.xaxis, axes.yaxis)


def _both(ends: Array) -> Array:
    return np.concatenate([ends, ends[::-1]], 1)


def _rows(circles: list[Circle]) -> tuple[list[Circle], float]:
    # The circles that get a line, coloured ones first in line but in order of number, and a line's height.
    first = sorted(circles, key=lambda circle: not circle.has_colour)[:LANES]
    shown = sorted(first, key=lambda circle: circle.number)
    return shown, LOWER / max(len(shown), 4)


def _passages(graph: DocumentGraph) -> list[int]:
    # Where each passage begins.
    circle_index, _, passage_mask = circles_of(graph)
    passages = passage_mask.nonzero().flatten().tolist()
    return [int(circle_index[0, circle_index[1] == number].min()) for number in passages]


def _span(numbers: list[int]) -> str:
    return f" (number {numbers[0]} to {numbers[-1]})" if len(numbers) > 1 else ""
