"""What each pattern does to one document: the probability of every edge, and the edges that coins make of it."""

from __future__ import annotations

import copy
from typing import Any, cast

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from socialgraph.data.graph import DocumentGraph
from socialgraph.edges.pattern import Pattern
from socialgraph.edges.social import SocialEdges
from socialgraph.inspect.marks import GREY, Array, headline, outline
from socialgraph.inspect.networkx import one_graph

#: from white to dark by lightness alone, so that it is read without colours, too
SHADES = LinearSegmentedColormap.from_list("shades", ["#FFFFFF", "#77AADD", "#225588", "#0B1F3A"])
PIXELS = 512  # of a panel; more places are averaged
# In inches:
SIDE, GAP, LEFT, TOP, FOOT, BAR = 2.2, 0.16, 0.75, 0.85, 0.5, 0.75


def draw_patterns(graph: DocumentGraph, edges: SocialEdges, title: str | None = None) -> Figure:
    """Draw what each pattern makes of one document (Socialformer's Figure 4).

    A column for each pattern alone, and, if there are several, one for the mean of all, as ``edges`` weighs them; every
    column has the sparsity of ``edges``. Above, the probability of each edge, min(1, P / mu), all on one scale. Below,
    the adjacency matrix that the pair's own coins make of it: all columns toss the same coins. Rows and columns are
    places in the document. In a document of more than 512 word pieces a pixel is the mean over neighbouring places. The
    diagonal, where no edge can be, is painted as its neighbours are.

    Zhou, Dou, Yuan and Ma, "Socialformer: Social Network Inspired Long Document Modeling for Document Ranking", WWW
    2022, show the adjacency matrices at a sparsity of 0.9; the probabilities and the mean are added here.

    Args:
        graph: one pair; of a batch, take ``batch[i]``. Its edges are not read, they are drawn again.
        edges: patterns, weights and sparsity.
        title: the headline; by default the pair's ids.

    Raises:
        InputError: a whole batch.
    """
    graph, _ = one_graph(graph, None)
    edges = copy.deepcopy(edges).cpu()
    columns = {
        name.replace("_", " "): SocialEdges({name: cast(Pattern, pattern)}, sparsity=edges.sparsity)
        for name, pattern in edges.patterns.items()
    }
    if len(columns) > 1:
        columns["all together"] = edges
    probable, drawn = zip(*(_matrices(graph, one) for one in columns.values()), strict=True)
    highest = max(float(matrix.max(initial=0.0)) for matrix in probable) or 1.0

    width = LEFT + len(columns) * (SIDE + GAP) + BAR
    height = TOP + 2 * SIDE + GAP + FOOT
    figure = Figure(figsize=(width, height), facecolor="white")
    literal: dict[str, Any] = {"parse_math": False, "usetex": False}  # titles hold ids and queries, never formulas
    title = headline(title, graph, int(13 * width))
    figure.text(LEFT / width, 1 - 0.28 / height, title, size=11, weight="bold", va="center", **literal)
    size = int(graph.num_nodes or 0)
    for row, matrices in enumerate((probable, drawn)):
        for column, (name, matrix) in enumerate(zip(columns, matrices, strict=True)):
            left, bottom = LEFT + column * (SIDE + GAP), FOOT + (1 - row) * (SIDE + GAP)
            axes = figure.add_axes((left / width, bottom / height, SIDE / width, SIDE / height))
            norm = PowerNorm(0.7, 0.0, (highest, 1.0)[row])  # most probabilities are small
            image = _panel(axes, matrix, size, norm, ("probability ", "adjacency ")[row] + name)
            axes.tick_params(labelleft=column == 0, labelbottom=row == 1)
            if row == 0:
                axes.set_title(name, size=10, parse_math=False)
            if column == 0:
                axes.set_ylabel(("probability of an edge", "edges")[row], size=9)
        if row == 0:
            draw_scale(figure, image, left + SIDE, bottom, SIDE)
    share = f"place in the document (word pieces); in every column {100 * (1 - edges.sparsity):.3g} % of the pairs are"
    share += " expected to be edges"
    figure.text(LEFT / width, 0.14 / height, share, size=8, color=GREY, va="center")
    return figure


def _panel(axes: Axes, matrix: Array, size: int, norm: PowerNorm, gid: str) -> AxesImage:
    # A matrix over the places of a document of `size` word pieces.
    image = axes.imshow(
        matrix if size else np.zeros((1, 1)), cmap=SHADES, norm=norm,
        extent=(-0.5, max(size, 1) - 0.5, max(size, 1) - 0.5, -0.5), interpolation="nearest", gid=gid,
    )  # fmt: skip
    axes.tick_params(labelsize=7, colors=GREY, length=2.5)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]))
    outline(axes)
    return image


def draw_scale(figure: Figure, image: AxesImage, left: float, bottom: float, tall: float) -> Axes:
    """Draw the scale of an image's shades on its right, ``tall`` inches from a corner in inches; return its axes."""
    width, height = figure.get_size_inches()
    place = (left + 0.15) / width, bottom / height, 0.12 / width, tall / height
    bar = figure.colorbar(image, cax=figure.add_axes(place))
    bar.ax.tick_params(labelsize=7, colors=GREY, length=2.5)
    bar.outline.set_visible(False)
    return bar.ax


def _matrices(graph: DocumentGraph, edges: SocialEdges) -> tuple[Array, Array]:
    # The probabilities and the edges of a document, as pixels.
    with torch.no_grad():
        probable = edges.probabilities(graph).dense()[0].clamp(max=1.0).numpy()
        if len(probable) > 1:
            np.fill_diagonal(probable, np.append(probable.diagonal(1), probable[-1, -2]))
        drawn = np.zeros(probable.shape, dtype=np.float32)
        drawn[tuple(edges(graph)[0].numpy())] = 1.0
    return _pixels(probable), _pixels(drawn)


def _pixels(matrix: Array) -> Array:
    # Means over squares of as many places as it takes; the squares at the end may be smaller.
    step = -(-len(matrix) // PIXELS)
    if step < 2:
        return matrix
    first = np.arange(0, len(matrix), step)
    count = np.diff(np.append(first, len(matrix)))
    return np.add.reduceat(np.add.reduceat(matrix, first, 0), first, 1) / np.outer(count, count)
