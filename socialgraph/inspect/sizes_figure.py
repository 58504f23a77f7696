"""How large circles are, by their turn and by the sparsity of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from torch_geometric.data import Data
from torch_geometric.utils import cumsum

from socialgraph.data.graph import circle_document, circle_size
from socialgraph.errors import InputError
from socialgraph.inspect.marks import GREY, Array

#: Paul Tol's "bright" scheme, which thin lines on white can bear, and a mark for each
LINES = (("#4477AA", "o"), ("#EE6677", "s"), ("#228833", "^"), ("#AA3377", "D"), ("#66CCEE", "v"), ("#CCBB44", "P"))


def circle_sizes(graph: Data) -> list[list[int]]:
    """Return the sizes of each document's friend circles, in the order in which they were found.

    Args:
        graph: a graph or a batch with circles, drawn or not.
    """
    friends = ~graph.passage_mask
    ptr = cumsum(torch.bincount(circle_document(graph)[friends], minlength=graph.query_length.numel()))
    return [part.tolist() for part in torch.tensor_split(circle_size(graph)[friends].cpu(), ptr[1:-1].cpu())]


def median_sizes(sizes: Sequence[Sequence[int]], k: int) -> Array:
    """Return the median size of the first, second, ... k-th circle over documents, ``[k]``.

    A document that has fewer circles counts with 0. Without a document the sizes are NaN.
    """
    return np.median(_table(sizes, k), 0) if len(sizes) else np.full(k, np.nan)


def _table(sizes: Sequence[Sequence[int]], k: int) -> Array:
    table = np.zeros((len(sizes), k))
    for row, own in zip(table, sizes, strict=True):
        row[: len(own)] = own[:k]
    return table


def draw_circle_sizes(sizes: Mapping[str, Mapping[float, Sequence[Sequence[int]]]], max_size: int) -> Figure:
    """Draw the sizes of circles against their turn, a line for each sparsity (Socialformer's Figure 5).

    A panel for each partition; a point is the median over documents (see :func:`median_sizes`), the band holds the
    middle half of them. A document that has fewer circles counts with 0.

    Zhou, Dou, Yuan and Ma, WWW 2022, show one document of 2,000 word pieces, the first 32 circles, and the sparsities
    0.99, 0.97, 0.95 and 0.93.

    Args:
        sizes: name of the partition -> sparsity -> sizes by document, as :func:`circle_sizes` gives them.
        max_size: members of a circle at most: a dashed line.

    Raises:
        InputError: nothing to draw, or more than 6 sparsities.
    """
    turns = max((len(own) for lines in sizes.values() for each in lines.values() for own in each), default=0)
    if turns == 0:
        raise InputError("there is no circle to draw: no partition, no document, or no friend circle in any of them")
    sparsities = list(dict.fromkeys(sparsity for lines in sizes.values() for sparsity in lines))
    if len(sparsities) > len(LINES):
        raise InputError(f"there are colours for {len(LINES)} sparsities at most, got {len(sparsities)}")
    figure = Figure(figsize=(1.0 + 4.6 * len(sizes), 4.2), facecolor="white", layout="constrained")
    panels = figure.subplots(1, len(sizes), sharex=True, sharey=True, squeeze=False)[0]
    turn = np.arange(1, turns + 1)
    for axes, (name, lines) in zip(panels, sizes.items(), strict=True):
        for sparsity, each in lines.items():
            place = sparsities.index(sparsity)
            colour, mark = LINES[place]
            if len(each) > 1:
                middle = np.quantile(_table(each, turns), (0.25, 0.75), 0)
                axes.fill_between(turn, *middle, color=colour, alpha=0.18, linewidth=0)
            thick = len(sparsities) - place  # lines that lie on each other are all seen
            axes.plot(
                turn, median_sizes(each, turns), color=colour, marker=mark, markersize=2.8 + 0.9 * thick,
                linewidth=0.7 + 0.4 * thick, label=f"{sparsity:g}", gid=f"{name} {sparsity:g}",
            )  # fmt: skip
        axes.axhline(max_size, color=GREY, linewidth=0.9, linestyle="--", gid="cap")
        axes.set_title(name, size=11, parse_math=False)
        axes.set_xlabel("circle, in the order in which they are found", size=9)
        axes.set(xlim=(0.3, turns + 0.7), ylim=(0, 1.08 * max_size))
        axes.tick_params(labelsize=8, colors=GREY, length=2.5)
        axes.spines[["top", "right"]].set_visible(False)
    note = {"size": 8, "color": GREY, "va": "bottom", "ha": "right"}
    panels[-1].annotate(f"at most {max_size}", (turns + 0.7, max_size), (0, 2), textcoords="offset points", **note)
    panels[0].set_ylabel("members", size=9)
    documents = sorted({len(each) for lines in sizes.values() for each in lines.values()})
    amount = " to ".join(f"{number:,}" for number in dict.fromkeys((documents[0], documents[-1])))
    what = "one document" if amount == "1" else f"median of {amount} documents"
    figure.legend(*panels[0].get_legend_handles_labels(), title=f"sparsity\n({what})", fontsize=9, title_fontsize=9,
                  frameon=False, loc="outside right center")  # fmt: skip
    return figure
