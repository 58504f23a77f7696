"""Figures 4, 5 and 6 of Socialformer: patterns of a document, sizes of circles, a measure by document length."""

from __future__ import annotations

import copy
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.utils import cumsum

from socialgraph.data.graph import DocumentGraph, circle_document, circle_size
from socialgraph.edges import Pattern, SocialEdges
from socialgraph.errors import InputError, OptionError

#: word pieces at which a new bucket begins (Socialformer, section 5.4)
BOUNDS = (512, 1024, 2048)
#: Paul Tol's "light" and "bright" schemes, distinct also for the colour-blind; hatches tell bars apart without colours
BARS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#44BB99", "#AAAA00", "#99DDFF", "#BBCC33")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo", "----")
LINES = (("#4477AA", "o"), ("#EE6677", "s"), ("#228833", "^"), ("#AA3377", "D"), ("#66CCEE", "v"), ("#CCBB44", "P"))


def draw_patterns(graph: DocumentGraph, edges: SocialEdges, title: str) -> Figure:
    """Draw what each pattern makes of one document (Figure 4).

    A column for each pattern alone, and, if there are several, one for the mean of all, as ``edges`` weighs them; every
    column has the sparsity of ``edges``. Above, the probability of each edge, min(1, P / mu), all on one scale. Below,
    the adjacency matrix that is drawn from it, with the same random numbers in all columns. Rows and columns are places
    in the document.

    The paper shows the adjacency matrices at a sparsity of 0.9; the probabilities and the mean are added here.

    Args:
        graph: one pair. Its edges are not read, they are drawn again.
        edges: patterns, weights and sparsity.
        title: the headline.
    """
    graph, edges = copy.copy(graph).cpu(), copy.deepcopy(edges).cpu()
    samplers = {
        name.replace("_", " "): SocialEdges({name: cast(Pattern, pattern)}, sparsity=edges.sparsity)
        for name, pattern in edges.patterns.items()
    }
    if len(samplers) > 1:
        samplers["all together"] = edges
    probable = [one.probabilities(graph).dense()[0].detach().clamp(max=1.0).numpy() for one in samplers.values()]
    drawn = [np.zeros_like(matrix) for matrix in probable]
    for matrix, one in zip(drawn, samplers.values(), strict=True):
        matrix[tuple(one(graph)[0].numpy())] = 1.0
    figure = Figure(figsize=(1.5 + 2.4 * len(samplers), 5.2), facecolor="white", layout="constrained")
    panels = figure.subplots(2, len(samplers), sharex=True, sharey=True, squeeze=False)
    highest = max(float(matrix.max(initial=0.0)) for matrix in probable) or 1.0
    for row, what, matrices, most in zip(
        panels, ("probability of an edge", "edges"), (probable, drawn), (highest, 1.0), strict=True
    ):
        norm = PowerNorm(0.7, 0.0, most)  # most probabilities are small
        for axes, name, matrix in zip(row, samplers, matrices, strict=True):
            axes.imshow(matrix if matrix.size else np.zeros((1, 1)), cmap="Blues", norm=norm, gid=name)
            axes.tick_params(labelsize=7)
        row[0].set_ylabel(what, size=9)
    scale = figure.colorbar(panels[0, 0].images[0], ax=list(panels.flat), shrink=0.5, anchor=(0.0, 1.0))
    scale.ax.tick_params(labelsize=7)
    for axes, name in zip(panels[0], samplers, strict=True):
        axes.set_title(name, size=10, parse_math=False)
    figure.suptitle(textwrap.shorten(title, 110, placeholder=" …"), size=11, parse_math=False, usetex=False)
    share = f"{100 * (1 - edges.sparsity):.3g} % of the pairs are expected to be edges"
    figure.supxlabel(f"place in the document (word pieces); in every column {share}", size=8)
    return figure


def circle_sizes(graph: Data) -> list[list[int]]:
    """Return the sizes of each document's friend circles, in the order in which they were found.

    Args:
        graph: a graph or a batch with circles.
    """
    friends = ~graph.passage_mask
    ptr = cumsum(torch.bincount(circle_document(graph)[friends], minlength=graph.query_length.numel()))
    return [part.tolist() for part in torch.tensor_split(circle_size(graph)[friends].cpu(), ptr[1:-1].cpu())]


def median_sizes(sizes: Sequence[Sequence[int]], k: int) -> NDArray[Any]:
    """Return the median size of the first, second, ... k-th circle over documents, ``[k]``."""
    return np.median(sizes_by_turn(sizes, k), 0)


def sizes_by_turn(sizes: Sequence[Sequence[int]], k: int) -> NDArray[Any]:
    """Return the size of the first, second, ... k-th circle of each document, 0 where it has fewer: ``[D, k]``."""
    table = np.zeros((len(sizes), k))
    for row, own in zip(table, sizes, strict=True):
        row[: len(own)] = own[:k]
    return table


def draw_circle_sizes(sizes: Mapping[str, Mapping[float, Sequence[Sequence[int]]]], max_size: int) -> Figure:
    """Draw the sizes of circles against their turn, a line for each sparsity (Figure 5).

    A panel for each partition; a point is the median over documents, the band holds the middle half of them. A document
    that has fewer circles counts with 0.

    The paper shows one document of 2,000 word pieces, the first 32 circles, and the sparsities 0.99, 0.97, 0.95, 0.93.

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
            low, middle, high = np.quantile(sizes_by_turn(each, turns), (0.25, 0.5, 0.75), 0)
            axes.fill_between(turn, low, high, color=colour, alpha=0.18, linewidth=0)
            thick = len(sparsities) - place  # lines that lie on each other are all seen
            axes.plot(
                turn, middle, color=colour, marker=mark, markersize=2.8 + 0.9 * thick,
                linewidth=0.7 + 0.4 * thick, label=f"{sparsity:g}", gid=f"{name} {sparsity:g}",
            )  # fmt: skip
        axes.axhline(max_size, color="#666666", linewidth=0.9, linestyle="--", gid="cap")
        axes.set_title(name, size=11, parse_math=False, usetex=False)
        axes.set_xlabel("circle, in the order in which they are found", size=9)
        axes.set(xlim=(0.3, turns + 0.7), ylim=(0, 1.08 * max_size))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"members (at most {max_size})", size=9)
    amount = max(len(each) for lines in sizes.values() for each in lines.values())
    what = "one document" if amount == 1 else f"median of {amount:,} documents"
    figure.legend(*panels[0].get_legend_handles_labels(), title=f"sparsity\n({what})", fontsize=9, title_fontsize=9,
                  frameon=False, loc="outside right center")  # fmt: skip
    return figure


@dataclass(frozen=True)
class Bucket:
    """Queries whose document has a length in a range, and what systems reach on them."""

    name: str
    queries: tuple[str, ...]
    means: dict[str, float]  # system -> mean; empty where there is no query
    errors: dict[str, float]  # system -> standard error of the mean; empty for fewer than two queries


def measures_by_length(
    measures: Mapping[str, Mapping[str, float]], lengths: Mapping[str, int], bounds: Sequence[int] = BOUNDS
) -> list[Bucket]:
    """Return the mean of a measure by the length of the documents that were to be found.

    Args:
        measures: system -> query -> value, such as ``evaluate(qrels, run).per_query["RR@100"]`` for each system.
        lengths: query -> word pieces of its relevant document (of its shortest one, should there be more).
        bounds: where buckets begin, ascending: 512 belongs to the bucket above it.

    Raises:
        InputError: systems that were measured on different queries, no system, or a query without a length.
        OptionError: bounds that do not ascend.
    """
    if list(bounds) != sorted(set(bounds)) or not bounds:
        raise OptionError(f"bounds must ascend, and there must be one, got {list(bounds)}")
    if not measures:
        raise InputError("there is no system to compare")
    first = next(iter(measures))
    for system, values in measures.items():
        if values.keys() != measures[first].keys():
            raise InputError(f"{system!r} and {first!r} were measured on different queries: evaluate both on the same")
        if strangers := values.keys() - lengths.keys():
            raise InputError(f"query {min(strangers)!r} has no length: give the length of its relevant document")
    names = [f"under {bounds[0]:,}", *(f"{low:,} to {high - 1:,}" for low, high in pairwise(bounds))]
    names.append(f"{bounds[-1]:,} and more")
    queries: list[list[str]] = [[] for _ in names]
    for query in measures[first]:
        queries[int(np.searchsorted(bounds, lengths[query], side="right"))].append(query)
    buckets = []
    for name, inside in zip(names, queries, strict=True):
        arrays = {system: np.array([values[query] for query in inside]) for system, values in measures.items()}
        means = {system: float(value.mean()) for system, value in arrays.items() if inside}
        spread = {system: float(value.std(ddof=1)) for system, value in arrays.items() if len(inside) > 1}
        errors = {system: deviation / len(inside) ** 0.5 for system, deviation in spread.items()}
        buckets.append(Bucket(name, tuple(inside), means, errors))
    return buckets


def draw_by_length(
    buckets: Sequence[Bucket],
    measure: str,
    note: str = "",
    shown: Sequence[str] | None = None,
    axis: str = "word pieces of the relevant document",
) -> Figure:
    """Draw measures by document length (Figure 6).

    A group of bars for each bucket of :func:`measures_by_length`, a bar for each system: its mean, and a line of one
    standard error up and down. Below each group, how many queries it has: few queries say little.

    Args:
        buckets: at least one.
        measure: what the values are.
        note: a line below the figure.
        shown: the systems that get bars, in this order; None: all.
        axis: what the buckets are of.

    Raises:
        InputError: no query in any bucket, or more than 8 systems.
    """
    there = dict.fromkeys(system for bucket in buckets for system in bucket.means)
    systems = [system for system in (there if shown is None else shown) if system in there]
    if not systems:
        raise InputError("there is no query to draw")
    if len(systems) > len(BARS):
        raise InputError(f"there are colours for {len(BARS)} systems at most, got {len(systems)}")
    figure = Figure(figsize=(max(7.0, 2.0 + 1.7 * len(buckets)), 4.2), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(systems)
    for number, system in enumerate(systems):
        places = [place for place, bucket in enumerate(buckets) if system in bucket.means]
        axes.bar(
            np.array(places) + (number - (len(systems) - 1) / 2) * width,
            [buckets[place].means[system] for place in places], 0.92 * width,
            yerr=[buckets[place].errors.get(system, 0.0) for place in places], error_kw={"elinewidth": 0.8},
            color=BARS[number], edgecolor="#444444", linewidth=0.5, hatch=HATCHES[number], label=system,
        )  # fmt: skip
    axes.axhline(0, color="#444444", linewidth=0.8)
    counts = [f"{len(bucket.queries):,} quer{'y' if len(bucket.queries) == 1 else 'ies'}" for bucket in buckets]
    names = [f"{bucket.name}\n{count}" for bucket, count in zip(buckets, counts, strict=True)]
    axes.set_xticks(range(len(buckets)), names, size=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylabel(measure, size=9, parse_math=False)
    axes.set_xlabel(axis, size=9)
    legend_above(figure, len(systems))
    if note:
        figure.supxlabel(note, size=8, color="#666666", x=0.02, ha="left", parse_math=False)
    return figure


def legend_above(figure: Figure, most: int) -> None:
    """Write what a figure's artists are called above it, in as many columns as have room: names may be long."""
    for columns in range(most, 0, -1):
        legend = figure.legend(frameon=False, fontsize=9, ncols=columns, loc="outside upper left")
        for text in legend.get_texts():
            text.set_parse_math(False)
        if legend.get_window_extent().width <= figure.bbox.width or columns == 1:
            break
        legend.remove()
