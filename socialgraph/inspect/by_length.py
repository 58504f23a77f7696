"""Which documents a system is good at: a measure by the length of what was to be found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from socialgraph.errors import InputError, OptionError
from socialgraph.inspect.marks import GREY, PALETTE

#: word pieces at which a new bucket begins (Socialformer, section 5.4)
BOUNDS = (512, 1024, 2048)
#: of bars that are told apart without colours
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oooo", "----")


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
    """Draw measures by document length (Socialformer's Figure 6).

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
    if len(systems) > len(PALETTE):
        raise InputError(f"there are colours for {len(PALETTE)} systems at most, got {len(systems)}")
    size = max(7.0, 2.0 + 1.7 * len(buckets))  # inches: the legend needs some, however few buckets there are
    figure = Figure(figsize=(size, 4.2), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(systems)
    for number, system in enumerate(systems):
        places = [place for place, bucket in enumerate(buckets) if system in bucket.means]
        at = np.array(places) + (number - (len(systems) - 1) / 2) * width
        errors = [buckets[place].errors.get(system, 0.0) for place in places]
        bars = axes.bar(
            at, [buckets[place].means[system] for place in places], 0.92 * width, color=PALETTE[number],
            edgecolor="#444444", linewidth=0.5, hatch=HATCHES[number], label=system,
            yerr=errors, error_kw={"elinewidth": 0.8, "ecolor": "#444444"},
        )  # fmt: skip
        for bar in bars:
            bar.set_gid(system)
    axes.set_xticks(
        range(len(buckets)),
        [f"{bucket.name}\n{len(bucket.queries):,} quer{'y' if len(bucket.queries) == 1 else 'ies'}"
         for bucket in buckets],
    )  # fmt: skip
    axes.tick_params(labelsize=9, length=2.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylabel(measure, size=9, parse_math=False)
    axes.set_xlabel(axis, size=9)
    if all(bucket.means.get(system, 0) >= 0 for bucket in buckets for system in systems):
        axes.set_ylim(bottom=0)
    else:  # a lift may be below chance
        axes.axhline(0, color="#444444", linewidth=0.8)
    legend_above(figure, min(len(systems), int(size // 2)))
    if note:
        figure.supxlabel(note, size=8, color=GREY, x=0.02, ha="left", parse_math=False)
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
