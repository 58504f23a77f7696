"""Whom the leaders of a document listen to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from socialgraph.data.graph import DocumentGraph
from socialgraph.errors import InputError
from socialgraph.inspect.marks import GREY, headline, outline, printable
from socialgraph.inspect.networkx import circles_of, one_graph
from socialgraph.inspect.patterns_figure import SHADES, draw_scale
from socialgraph.inspect.word_cells import whole_word

CELL, LABELS, TOP, BAR = 0.24, 2.0, 1.0, 1.3  # inches


def draw_leaders(
    attention: Tensor, graph: DocumentGraph, words: Sequence[str] | None = None, title: str | None = None
) -> Figure:
    """Draw the attention between the leaders of one document.

    A row for each leader who listens, a column for each who is heard; a row sums up to 1. Circles keep the numbers
    that they have in ``graph.circle_index``: passages, led by their [CLS], then friend circles with the word that leads
    them. Lines divide the two kinds; a mark on the scale shows what all would get if everybody listened to all alike.

    Args:
        attention: weights of one inter-circle layer, ``[heads, C, C]``, of which the mean over heads is drawn, or one
            head's, ``[C, C]``. ``docs/inspection.md`` shows how to take them out of a model.
        graph: one pair with C circles; of a batch, take ``batch[i]``.
        words: the word pieces, one for each node.
        title: the headline.

    Raises:
        InputError: a whole batch, words that do not fit, no circle, or attention of another shape.
    """
    graph, words = one_graph(graph, words)
    _, leader_index, passage_mask = circles_of(graph)
    amount = leader_index.numel()
    if amount == 0:
        raise InputError("the graph has no circle, so it has no leader")
    weight = attention.detach().float().cpu()
    weight = weight.mean(0) if weight.dim() == 3 else weight
    if weight.shape != (amount, amount):
        wanted = f"[heads, {amount}, {amount}] or [{amount}, {amount}], as the graph has {amount} circles"
        raise InputError(f"attention must be {wanted}, got {list(attention.shape)}")
    labels = _names(leader_index, passage_mask, words)
    side = CELL * max(amount, 8)
    width, height = LABELS + side + BAR, TOP + side + 0.55
    figure = Figure(figsize=(width, height), facecolor="white")
    axes = figure.add_axes((LABELS / width, 0.55 / height, side / width, side / height))
    most = min(1.0, max(4 / amount, float(weight.max())))  # where all listen to all alike, that is a light shade
    image = axes.imshow(weight.numpy(), cmap=SHADES, vmin=0, vmax=most, interpolation="nearest", gid="attention")
    size = min(8.0, 60 * side / amount)
    axes.set_yticks(range(amount), labels, parse_math=False, family="DejaVu Sans Mono", size=size)
    axes.set_xticks(range(amount), map(str, range(amount)), size=size)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    for place in (passage_mask[1:] != passage_mask[:-1]).nonzero().flatten().tolist():
        axes.axhline(place + 0.5, color=GREY, linewidth=0.8)
        axes.axvline(place + 0.5, color=GREY, linewidth=0.8)
    outline(axes)
    axes.set_xlabel("leader who is heard, by circle", size=8, color=GREY)
    axes.xaxis.set_label_position("bottom")
    scale = draw_scale(figure, image, LABELS + side, 0.55, side)
    scale.axhline(1 / amount, color="black", linewidth=0.8)
    scale.annotate("all alike", (1, 1 / amount), (30, 0), xycoords=("axes fraction", "data"),
                   textcoords="offset points", size=7, color=GREY, va="center")  # fmt: skip
    title = headline(title or "Attention between leaders", graph, int(11 * width))
    literal: dict[str, Any] = {"va": "center", "parse_math": False, "usetex": False}  # a title may hold a query
    figure.text(0.1 / width, 1 - 0.3 / height, title, size=10, weight="bold", **literal)
    figure.text(
        0.12 / width, (0.55 + side / 2) / height, "leader who listens", rotation=90, size=8, color=GREY, **literal
    )
    return figure


def _names(leader_index: Tensor, passage_mask: Tensor, words: Sequence[str] | None) -> list[str]:
    """Return what each leader is called: [CLS] of a passage, or the whole word, and the number of the circle."""
    pieces = None if words is None else [printable(word) for word in words]
    names = []
    for number, (leader, passage) in enumerate(zip(leader_index.tolist(), passage_mask.tolist(), strict=True)):
        names.append(f"{'[CLS]' if passage else whole_word(pieces, leader)}  {number}")
    return names
