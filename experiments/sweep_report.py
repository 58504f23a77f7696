"""From finished variants to a table (Markdown and CSV) and a plot of quality against cost."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
from axes import Variant
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from omegaconf import DictConfig
from report import adjusted, number, per_query, scaled
from scipy.optimize import isotonic_regression

from socialgraph.data.files import atomic_write

POINT, REFERENCE = "#4477AA", "#EE6677"  # Paul Tol's "bright": distinct for the colour-blind too


@dataclass
class Line:
    """A line of the table. None: not there, or not known."""

    label: str
    values: dict[str, str]  # axis -> value
    statistics: dict[str, float | None]  # medians over the sampled documents of all seeds
    measures: dict[str, float]  # means over queries and seeds
    parameters: float | None  # millions
    training: float | None  # seconds
    seconds: float | None  # of re-ranking, for each document
    graph: float | None  # ... of which for building its graph
    memory: float | None  # GB, 10^9 bytes
    deviations: dict[str, float] = field(default_factory=dict)  # over seeds, where there are several
    p_values: dict[str, float] = field(default_factory=dict)  # adjusted
    marked: list[str] = field(default_factory=list)  # measures that differ significantly


def lines(
    config: DictConfig, chosen: Sequence[Variant], finished: Sequence[list[dict[str, Any]]], baseline: int
) -> list[Line]:
    """Return a line for each variant.

    Args:
        config: compare.yaml's.
        chosen: the variants.
        finished: the JSON of each, one for each seed.
        baseline: place of the one that the others are tested against.
    """
    table = []
    for variant, seeds in zip(chosen, finished, strict=True):
        means = [{name: fmean(v.values()) for name, v in one["measures"].items()} for one in seeds]
        table.append(
            Line(
                variant.label, variant.values,
                {name: middle(name, seeds) for name in seeds[0]["statistics"]},
                {name: fmean(mean[name] for mean in means) for name in config.measures},
                scaled(max, [one["parameters"] for one in seeds], 1e6),
                scaled(fmean, [one["training_seconds"] for one in seeds], 1),
                scaled(fmean, [one["seconds_per_document"] for one in seeds], 1),
                scaled(fmean, [one["graph_seconds_per_document"] for one in seeds], 1),
                scaled(max, [one["peak_memory_bytes"] for one in seeds], 1e9),
                {name: stdev(mean[name] for mean in means) for name in config.measures} if len(seeds) > 1 else {},
            )
        )  # fmt: skip
    mark(config, table, [per_query(seeds) for seeds in finished], baseline)
    return table


def middle(name: str, seeds: list[dict[str, Any]]) -> float | None:
    """Return the median of a statistic over documents and seeds; None where it is defined for none."""
    values = [value for one in seeds for value in one["statistics"][name] if value is not None]
    return median(values) if values else None


def mark(config: DictConfig, table: list[Line], values: list[dict[str, dict[str, float]]], baseline: int) -> None:
    """Test every line against the baseline; for each measure, p values are adjusted over the lines."""
    others = [place for place in range(len(table)) if place != baseline]
    for name in config.measures:
        measured = {str(place): value[name] for place, value in enumerate(values)}
        if len(measured[str(baseline)]) < 2:  # queries
            return
        for place, p_value in adjusted(measured, str(baseline), list(map(str, others))).items():
            table[int(place)].p_values[name] = p_value
            if p_value < config.level:
                table[int(place)].marked.append(name)


def markdown(config: DictConfig, table: list[Line], baseline: int) -> str:
    """Return the table as Markdown."""
    first = table[0]
    shown = dict(config.statistics) if any(line.statistics for line in table) else {}
    names = [
        *first.values, *shown.values(), *config.measures,
        "parameters (M)", "training (s)", "s / document", "graph (s)", "memory (GB)",
    ]  # fmt: skip
    text = [row(names), f"|{'---|' * len(first.values)}{'---:|' * (len(names) - len(first.values))}"]
    for line in table:
        measures = [
            f"{value:.3f}"
            + (f" ± {line.deviations[name]:.3f}" if line.deviations else "")
            + " †" * (name in line.marked)
            for name, value in line.measures.items()
        ]
        cost = [
            number(line.parameters, ".1f"), number(line.training, ".0f"), number(line.seconds, ".4f"),
            number(line.graph, ".4f"), number(line.memory, ".2f"),
        ]  # fmt: skip
        text.append(
            row([*line.values.values(), *(short(line.statistics.get(name)) for name in shown), *measures, *cost])
        )
    return "\n".join([*text, "", notes(config, table[baseline].label)]) + "\n"


def row(cells: Sequence[str]) -> str:
    """Return a row of Markdown; what a user typed does not end a cell."""
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def short(value: float | None) -> str:
    """Return a statistic with three digits, or a dash."""
    return number(value, ".0f" if value is not None and abs(value) >= 100 else ".3g")


def notes(config: DictConfig, baseline: str) -> str:
    """Return what one must know to read the table."""
    seeds = f"{'seed' if len(config.seeds) == 1 else 'mean of the seeds'} {', '.join(map(str, config.seeds))}"
    deviation = " ± is the standard deviation over seeds." if len(config.seeds) > 1 else ""
    return (
        f"{config.data.label}, split {config.data.splits.test}, {seeds}. All variants are trained on the same groups "
        f"and rank the same candidates. †: differs from {baseline} (paired t-test over queries, two-sided, Holm over "
        f"the variants, p < {config.level}).{deviation} Circles: medians over {config.sample} test candidates, friend "
        "circles without passages, as socialgraph.inspect.describe() counts them. s / document: of re-ranking, as it "
        "was in that run, whatever else the machine did; graph: of building a graph, measured again on that sample. "
        "Memory: peak while the variant was trained and ranked, of the GPU, or without one of the whole process."
    )


def csv_table(table: list[Line]) -> str:
    """Return the table with all digits, all statistics, deviations and adjusted p values."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    first = table[0]
    statistics = list(dict.fromkeys(name for line in table for name in line.statistics))
    writer.writerow([
        *first.values, *(f"median {name}" for name in statistics), *first.measures,
        *(f"sd of {name}" for name in first.measures),
        *(f"p of {name}" for name in first.measures),
        "parameters (M)", "training (s)", "s / document", "graph (s)", "memory (GB)",
    ])  # fmt: skip
    for line in table:
        values = [
            *line.values.values(), *map(line.statistics.get, statistics), *line.measures.values(),
            *map(line.deviations.get, line.measures), *map(line.p_values.get, line.measures),
            line.parameters, line.training, line.seconds, line.graph, line.memory,
        ]  # fmt: skip
        writer.writerow(["" if value is None else value for value in values])
    return file.getvalue()


def plot(table: list[Line], measure: str, baseline: int, path: Path) -> None:
    """Draw quality against cost, a point for each variant, names on the right in the order of quality.

    Args:
        table: the lines; those whose cost is unknown are left out.
        measure: what is drawn upwards; over several seeds with its deviation.
        baseline: place of the one with a mark of its own.
        path: the PNG.
    """
    shown = [(line, place == baseline) for place, line in enumerate(table) if line.seconds is not None]
    figure = Figure(figsize=(8, max(4.0, 0.24 * len(shown) + 1.2)), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for line, is_baseline in shown:
        axes.errorbar(
            [1000 * (line.seconds or 0)], [line.measures[measure]], yerr=line.deviations.get(measure),
            marker="D" if is_baseline else "o", color=REFERENCE if is_baseline else POINT, markersize=7,
            capsize=3, elinewidth=1,
        )  # fmt: skip
    axes.margins(0.1)
    axes.set_xlabel("milliseconds for each document (graph and model)")
    axes.set_ylabel(measure, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)
    bottom, top = axes.get_ylim()
    ordered = sorted(shown, key=lambda entry: entry[0].measures[measure])
    heights = apart([(line.measures[measure] - bottom) / (top - bottom) for line, _ in ordered])
    for (line, is_baseline), height in zip(ordered, heights, strict=True):
        axes.annotate(
            line.label + (" (baseline)" if is_baseline else ""), (1000 * (line.seconds or 0), line.measures[measure]),
            xytext=(1.03, height), textcoords="axes fraction", va="center", fontsize=8, parse_math=False,
            arrowprops={"arrowstyle": "-", "color": "#BBBBBB", "linewidth": 0.6, "relpos": (0, 0.5)},
            annotation_clip=False, zorder=1,
        )  # fmt: skip
    with atomic_write(path, "wb") as file:
        figure.savefig(file, format="png", dpi=150)


def apart(heights: list[float]) -> list[float]:
    """Return ascending heights from 0 to 1 moved as little as need be for names not to overlap."""
    if not heights:
        return []
    gap = min(0.055, 1 / len(heights))
    steps = gap * np.arange(len(heights))
    # the nearest heights (least squares) that ascend by a gap each
    moved = isotonic_regression(np.array(heights) - steps).x
    return list(np.clip(moved, 0.0, 1.0 - steps[-1]) + steps)
