"""What partitions and models do on made-up documents, as pictures."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from socialgraph.errors import InputError, OptionError, counted
from socialgraph.testing.probe import Probe
from socialgraph.testing.probe_model import ModelProbe, Sort

#: Paul Tol's "bright" scheme, distinct also for the colour-blind, and a mark for each
LINES = (("#4477AA", "o"), ("#EE6677", "s"), ("#228833", "^"), ("#AA3377", "D"), ("#66CCEE", "v"), ("#CCBB44", "P"))
GREY = "#666666"


def draw_probes(probes: Sequence[Probe], by: str = "circle") -> Figure:
    """Draw how many pairs of words that belong together meet, against the distance between them.

    A row of panels for each kind of document, a column for each number of distractors, a line for each partition. A
    filled mark lies clearly above chance (three standard errors), a hollow one does not.

    Args:
        probes: what :func:`socialgraph.testing.probe` found of each partition, with the same options.
        by: "circle", both words in one circle, or "leaders", both in some circle.

    Raises:
        InputError: nothing to draw, more than 6 partitions, or probes with other options.
        OptionError: another ``by``.
    """
    if by not in ("circle", "leaders"):
        raise OptionError(f"by must be circle or leaders, got {by!r}")
    _check_number(len(probes), "partitions")
    tried = {(one.length, one.documents, tuple(row[:3] for row in one.rows)) for one in probes}
    if len(tried) > 1:
        raise InputError("the probes were made with other lengths, documents, distances or distractors: use the same")
    rows = probes[0].rows
    kinds, distances = (list(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("kind", "distance"))
    counts = list(dict.fromkeys(row.distractors for row in rows))
    figure = Figure(figsize=(1.0 + 2.7 * len(counts), 1.2 + 2.4 * len(kinds)), facecolor="white", layout="constrained")
    panels = figure.subplots(len(kinds), len(counts), sharex=True, sharey=True, squeeze=False)
    for kind, line in zip(kinds, panels, strict=True):
        line[0].set_ylabel(f"{kind}\nshare of pairs that meet", size=9)
        for count, axes in zip(counts, line, strict=True):
            axes.set_title(counted(count, "distractor") if count else "no distractors", size=9)
            for one, (colour, mark) in zip(probes, LINES, strict=False):
                shown = [row for row in one.rows if (row.kind, row.distractors) == (kind, count)]
                met = [getattr(row, by) for row in shown]
                label = one.partition if axes is panels[0][0] else None
                axes.plot([m.share for m in met], color=colour, linewidth=1.2, label=label, gid=one.partition)
                faces = [colour if m.clear else "white" for m in met]
                places = range(len(met))
                axes.scatter(
                    places, [m.share for m in met], s=26, c=faces, marker=mark, edgecolors=colour, zorder=3
                )  # fmt: skip
            axes.set_xticks(range(len(distances)), [f"{distance:,}" for distance in distances])
            axes.set(xlim=(-0.3, len(distances) - 0.7), ylim=(-0.04, 1.04))
            axes.tick_params(labelsize=8, colors=GREY, length=2.5)
            axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[-1]:
        axes.set_xlabel("words between them", size=9)
    figure.legend(frameon=False, fontsize=9, ncols=min(3, len(probes)), loc="outside upper left")
    where = "in one circle" if by == "circle" else "both in some circle"
    note = f"{where}; {probes[0].documents} documents of {probes[0].length:,} words; filled: clearly above chance"
    figure.supxlabel(note, size=8, color=GREY, x=0.02, ha="left")
    return figure


def draw_model_probes(probes: Sequence[ModelProbe], names: Sequence[str] | None = None) -> Figure:
    """Draw how often small models, trained on made-up documents, put the right one first: a mark for each seed.

    Args:
        probes: what :func:`socialgraph.testing.probe_model` found of each model, on the same sorts of documents.
        names: of the models, where their class names are not enough.

    Raises:
        InputError: nothing to draw, more than 6 models, another number of names, or probes of other sorts or steps.
    """
    _check_number(len(probes), "models")
    names = [one.model for one in probes] if names is None else list(names)
    if len(names) != len(probes):
        raise InputError(f"there are {len(probes)} models and {len(names)} names: give one each")
    if len({(one.steps, tuple(row.sort for row in one.rows)) for one in probes}) > 1:
        raise InputError("the probes were made with other sorts or steps: use the same")
    sorts = [row.sort for row in probes[0].rows]
    figure = Figure(figsize=(1.5 + 1.7 * len(sorts), 3.6), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    for number, (one, name, (colour, mark)) in enumerate(zip(probes, names, LINES, strict=False)):
        beside = (number - (len(probes) - 1) / 2) * 0.7 / len(probes)
        places = [place + beside for place, row in enumerate(one.rows) for _ in row.share]
        shares = [share for row in one.rows for share in row.share]
        axes.scatter(places, shares, s=30, c=colour, marker=mark, alpha=0.75, label=name, gid=name)
    axes.axhline(0.5, color=GREY, linewidth=0.9, linestyle="--", gid="chance")
    axes.annotate("chance", (len(sorts) - 0.5, 0.5), (0, 2), textcoords="offset points", ha="right", size=8, color=GREY)
    axes.set_xticks(range(len(sorts)), [_title(sort) for sort in sorts])
    axes.set(xlim=(-0.5, len(sorts) - 0.5), ylim=(min(0.4, axes.get_ylim()[0]), 1.04))
    axes.set_ylabel(f"right, after {probes[0].steps:,} steps", size=9)
    axes.tick_params(labelsize=8, colors=GREY, length=2.5)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=9, ncols=min(3, len(probes)), loc="outside upper left")
    return figure


def _check_number(amount: int, what: str) -> None:
    """Refuse what cannot be drawn.

    Raises:
        InputError: none, or more than there are colours.
    """
    if not 0 < amount <= len(LINES):
        raise InputError(f"1 to {len(LINES)} {what} can be drawn in one figure, got {amount}")


def _title(sort: Sort) -> str:
    """Return what stands below a sort of documents."""
    apart = f", {sort.distance} apart" if sort.kind == "halves" else ""
    return f"{sort.kind}{apart}" + (f"\n{counted(sort.distractors, 'distractor')}" if sort.distractors else "")
