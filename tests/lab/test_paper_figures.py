"""Figures 4, 5 and 6: what is drawn, not how it looks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from artists import find, no_warnings, render, texts
from lab.paper_figures import (
    circle_sizes,
    draw_by_length,
    draw_circle_sizes,
    draw_patterns,
    measures_by_length,
    median_sizes,
)

from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import InputError, OptionError

HOSTILE = r"$\frac{1}{$ <b>"

pytestmark = no_warnings


def test_every_pattern_alone_and_all_together(batch):
    graph = batch[0]
    edges = SocialEdges([StaticDistance(5), StaticCentrality(), DynamicDistance()], sparsity=0.8)
    figure = draw_patterns(graph, edges, HOSTILE)
    alone = {name: SocialEdges({name: pattern}, sparsity=0.8) for name, pattern in edges.patterns.items()}
    for name, one in [*alone.items(), ("all_together", edges)]:
        above, below = find(figure, name.replace("_", " "))
        assert np.allclose(above.get_array(), one.probabilities(graph).dense()[0].clamp(max=1))
        row, column = one(graph)[0].numpy()
        assert {tuple(pair) for pair in np.argwhere(below.get_array() == 1)} == set(zip(row, column, strict=True))
    assert len({find(figure, name.replace("_", " "))[0].norm.vmax for name in alone}) == 1
    assert {"static distance", HOSTILE} <= set(texts(figure))
    assert any("20 % of the pairs" in text for text in texts(figure))
    render(figure)


@pytest.mark.parametrize("place", [1, 3])
def test_patterns_of_next_to_nothing(batch, place):
    figure = draw_patterns(batch[place], SocialEdges([StaticDistance()], sparsity=0.5), "one")
    assert not find(figure, "all together")
    render(figure)


def test_sizes_of_a_batch_are_those_of_its_documents(batch):
    expected = []
    for place in range(4):
        graph = batch[place]
        circles = (~graph.passage_mask).nonzero().flatten().tolist()
        expected.append([int((graph.circle_index[1] == circle).sum()) for circle in circles])
        assert circle_sizes(graph) == [expected[-1]]
    assert circle_sizes(batch) == expected
    assert expected[0]
    assert expected[1] == []
    assert median_sizes([[5, 4], [7, 2, 2], [9]], 3).tolist() == [7, 2, 0]


def test_a_line_for_each_sparsity_and_a_panel_for_each_partition():
    sizes = {"edge": {0.9: [[8, 6], [6, 4]], 0.5: [[8, 8], [8, 8]]}, "node": {0.9: [[5], [3, 1]], 0.5: [[8], [8]]}}
    figure = draw_circle_sizes(sizes, 8)
    (line,) = find(figure, "edge 0.9")
    assert line.get_xydata().tolist() == [[1, 7], [2, 5]]
    (line,) = find(figure, "node 0.9")
    assert line.get_xydata().tolist() == [[1, 4], [2, 0.5]]
    assert len(find(figure, "cap")) == 2
    assert {"edge", "node", "0.9", "0.5", "members (at most 8)"} <= set(texts(figure))
    render(figure)
    assert "sparsity\n(one document)" in texts(draw_circle_sizes({"x": {0.9: [[3]]}}, 3))


def test_measures_by_length_by_hand():
    measures = {"a": {"q1": 1.0, "q2": 0.5, "q3": 0.0, "q4": 0.2}, "b": {"q1": 0.0, "q2": 0.0, "q3": 1.0, "q4": 0.4}}
    first, empty, last = measures_by_length(measures, {"q1": 9, "q2": 511, "q3": 2048, "q4": 9999}, (512, 2048))
    assert (first.name, empty.name, last.name) == ("under 512", "512 to 2,047", "2,048 and more")
    assert (first.queries, empty.queries, last.queries) == (("q1", "q2"), (), ("q3", "q4"))
    assert first.means == {"a": 0.75, "b": 0.0}
    assert last.means == pytest.approx({"a": 0.1, "b": 0.7})
    assert empty.means == empty.errors == {}
    assert last.errors["b"] == pytest.approx(math.sqrt(0.3**2 + 0.3**2) / math.sqrt(2))
    (alone,) = [bucket for bucket in measures_by_length({"a": {"q": 1.0}}, {"q": 512}) if bucket.queries]
    assert (alone.name, alone.means, alone.errors) == ("512 to 1,023", {"a": 1.0}, {})


def test_a_bar_for_each_system_and_bucket():
    measures = {HOSTILE: {"q1": 1.0, "q2": 0.5}, "b": {"q1": 0.25, "q2": -0.5}}
    buckets = measures_by_length(measures, {"q1": 9, "q2": 5000})
    figure = draw_by_length(buckets, "RR@10", "one $ and {")
    assert [bar.get_height() for bar in figure.axes[0].patches] == [1.0, 0.5, 0.25, -0.5]
    assert {"RR@10", "under 512\n1 query", "512 to 1,023\n0 queries", "one $ and {", HOSTILE} <= set(texts(figure))
    render(figure)
    (axes,) = draw_by_length(buckets, "lift", shown=["b", "unknown"], axis="place").axes
    assert [bar.get_height() for bar in axes.patches] == [0.25, -0.5]
    assert axes.get_ylim()[0] < -0.5
    assert axes.get_xlabel() == "place"


@pytest.mark.parametrize(
    ("amount", "name"), [(8, "Socialformer"), (5, "untrained-random-whole-pages-and-first-passages")]
)
def test_all_names_of_systems_are_in_the_figure(amount, name):
    many = {f"{name}-{n}": {"q1": n / 8, "q2": 0.5} for n in range(amount)}
    figure = draw_by_length(measures_by_length(many, {"q1": 0, "q2": 1}, [1]), "RR@10")  # two buckets: narrow
    render(figure)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(many)
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    assert not box.overlaps(figure.axes[0].get_window_extent())


def test_refusals():
    with pytest.raises(InputError, match="no circle to draw"):
        draw_circle_sizes({"edge": {0.9: [[], []]}}, 8)
    with pytest.raises(InputError, match="6 sparsities at most, got 7"):
        draw_circle_sizes({"edge": {number / 10: [[1]] for number in range(7)}}, 8)
    with pytest.raises(OptionError, match=r"bounds must ascend, and there must be one, got \[2, 1\]"):
        measures_by_length({"a": {}}, {}, (2, 1))
    with pytest.raises(InputError, match="'b' and 'a' were measured on different queries"):
        measures_by_length({"a": {"q": 1.0}, "b": {"r": 1.0}}, {"q": 1, "r": 1})
    with pytest.raises(InputError, match="query 'q' has no length"):
        measures_by_length({"a": {"q": 1.0}}, {})
    with pytest.raises(InputError, match="no system to compare"):
        measures_by_length({}, {})
    with pytest.raises(InputError, match="no query to draw"):
        draw_by_length([], "RR")
    many = {str(number): {"q": 1.0} for number in range(9)}
    with pytest.raises(InputError, match="8 systems at most, got 9"):
        draw_by_length(measures_by_length(many, {"q": 1}), "RR")
