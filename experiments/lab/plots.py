"""Pictures beside tables: a document's graph, and quality against the number of sequences."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from matplotlib.figure import Figure
from omegaconf import DictConfig

from lab.report import Comparison, Line
from lab.results import write_figure
from lab.rows import label_of
from lab.system import System
from lab.task import load_task
from socialgraph.inspect import draw
from socialgraph.ranking import processes

# Paul Tol's "bright": distinct for the colour-blind too; with the markers more curves than colours can be told apart
CURVES = ("#4477AA", "#EE6677", "#228833", "#AA3377", "#66CCEE", "#CCBB44", "#BBBBBB")
MARKERS, MARKS = "os^Dv", "*PX"


def draw_graph(config: DictConfig, path: Path) -> None:
    """Draw the graph of the first test query's best relevant document, or of its first candidate.

    Nothing is drawn of a system without circles.
    """
    if config.recipe.circles is None or not processes.is_first():
        return
    task = load_task(config.data)
    builder = System(config).builder(task)
    builder.keep_edges = True  # a picture shows them
    query_id, scores = next(iter((task.test.candidates or {}).items()))
    relevant = [document for document in scores if document in task.test.relevant(query_id)]
    document, query = [*relevant, *scores][0], task.test.queries[query_id]
    graph = builder([(query_id, query, document)]).to("cpu")[0]
    title = f"How {document} looks to the query \u201c{query}\u201d"
    words = builder.tokens.words(graph.input_ids)
    write_figure(path, 150, lambda: draw(graph, words, title=title))


def curves(of: Comparison) -> dict[str, list[Line]]:
    """Return the lines that differ in ``partition.k`` alone, by what they are called; none if k is not varied."""
    strategies: dict[str, list[Line]] = {}
    for line in of.lines:
        name, k = without_k(line)
        if k not in (None, "null"):
            strategies.setdefault(name, []).append(line)
    return strategies if any(len(lines) > 1 for lines in strategies.values()) else {}


def without_k(line: Line) -> tuple[str, str | None]:
    """Return what a line is called without its number of circles, and that number."""
    options = dict(line.row.beside["options"])
    k = options.pop("k", options.pop("partition.k", None))
    return label_of(options) or "circles", k


def quality_and_sequences(of: Comparison) -> Figure | None:
    """Draw each measure against the number of sequences that BERT reads, a curve for each strategy through its k.

    The mean number of sequences says where a point stands: a strategy that finds fewer circles than it may stands
    further left. A line that belongs to no curve, such as all windows, is a mark. None where k is not varied.
    """
    strategies = curves(of)
    if not strategies:
        return None
    drawn = {line.row.name for lines in strategies.values() for line in lines}
    marks = [line for line in of.lines if line.row.name not in drawn]
    measures = [name for name in of.measures if name not in ("sequences", "words")]
    wide, high = min(2, len(measures)), (len(measures) + 1) // 2
    figure = Figure(figsize=(4.6 * wide, 3.2 * high + 0.6), facecolor="white", layout="constrained")
    for axes, measure in zip(figure.subplots(high, wide, sharex=True, squeeze=False).flat, measures, strict=False):
        for number, (name, lines) in enumerate(strategies.items()):
            points = sorted((cast(float, line.mean("sequences")), cast(float, line.mean(measure))) for line in lines)
            style = {"color": CURVES[number % len(CURVES)], "marker": MARKERS[number % len(MARKERS)], "markersize": 5}
            axes.plot(*zip(*points, strict=True), label=name, **style)
        for number, line in enumerate(marks):
            point = [cast(float, line.mean(name)) for name in ("sequences", measure)]
            style = {"color": "black", "marker": MARKS[number % len(MARKS)], "markersize": 9, "linestyle": "none"}
            name, k = without_k(line)
            axes.plot(*([value] for value in point), label=f"{name}, all" if k == "null" else name, **style)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, place: f"{value:g}")
        axes.set_title(measure, size=10, parse_math=False)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#E5E5E5", linewidth=0.6)
    figure.supxlabel("sequences for each document", size=9)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure
