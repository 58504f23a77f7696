"""The figures about patterns, circles, lengths and leaders: what is drawn, not how it looks."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pytest
import torch
from artists import find, no_warnings, render, texts
from matplotlib.colors import to_rgba

from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import InputError, OptionError
from socialgraph.inspect.by_length import draw_by_length, measures_by_length
from socialgraph.inspect.leaders_figure import draw_leaders
from socialgraph.inspect.marks import PALETTE
from socialgraph.inspect.patterns_figure import PIXELS, _pixels, draw_patterns
from socialgraph.inspect.sizes_figure import LINES, circle_sizes, draw_circle_sizes, median_sizes

HOSTILE = r"$\frac{1}{$ <b> " + "\x00漢"


pytestmark = no_warnings


def patterns():
    return SocialEdges([StaticDistance(5), StaticCentrality(), DynamicDistance()], sparsity=0.8)


def test_every_pattern_alone_and_all_together(batch):
    graph, edges = batch[0], patterns()
    figure = draw_patterns(graph, edges)
    alone = {name: SocialEdges({name: pattern}, sparsity=0.8) for name, pattern in edges.patterns.items()}
    for name, one in [*alone.items(), ("all_together", edges)]:
        (above,), (below,) = (find(figure, f"{what} {name.replace('_', ' ')}") for what in ("probability", "adjacency"))
        shown, expected = above.get_array(), one.probabilities(graph).dense()[0].clamp(max=1).numpy()
        off = ~np.eye(70, dtype=bool)
        assert np.allclose(shown[off], expected[off])
        assert shown[3, 3] == shown[3, 4]  # the diagonal is painted as its neighbours are
        row, column = one(graph)[0].numpy()
        assert {tuple(pair) for pair in np.argwhere(below.get_array() == 1)} == set(zip(row, column, strict=True))
        assert above.norm.vmax >= expected.max()
    assert len({image.norm.vmax for image in figure.findobj(mpl.image.AxesImage) if "prob" in image.get_gid()}) == 1
    assert "static distance" in texts(figure)
    assert any("20 % of the pairs" in text for text in texts(figure))
    render(figure)


def test_one_pattern_has_one_column_and_the_coins_are_the_pairs(batch):
    graph = batch[2]
    one = SocialEdges([StaticDistance()], sparsity=0.5)
    figure = draw_patterns(graph, one, title=HOSTILE)
    assert not find(figure, "probability all together")
    (below,) = find(figure, "adjacency static distance")
    assert below.get_array().sum() == one(graph)[0].size(1)
    assert r"$\frac{1}{$ <b> □□" in texts(figure)
    render(figure)


@pytest.mark.parametrize("place", [1, 3])
def test_patterns_of_next_to_nothing(batch, place):
    render(draw_patterns(batch[place], patterns()))


def test_pixels_are_means():
    matrix = np.arange(25.0).reshape(5, 5)
    assert _pixels(matrix) is matrix
    size = 2 * PIXELS + 1  # squares of 3 x 3, the last ones smaller
    large = np.random.default_rng(0).random((size, size))
    small = _pixels(large)
    assert small.shape == (-(-size // 3),) * 2
    assert small[1, 2] == pytest.approx(large[3:6, 6:9].mean())
    assert small[-1, 0] == pytest.approx(large[3 * (len(small) - 1) :, :3].mean())


def test_sizes_of_a_batch_are_those_of_its_documents(batch):
    expected = []
    for place in range(4):
        graph = batch[place]
        numbers = (~graph.passage_mask).nonzero().flatten().tolist()
        expected.append([int((graph.circle_index[1] == number).sum()) for number in numbers])
        assert circle_sizes(graph) == [expected[-1]]
    assert circle_sizes(batch) == expected
    assert expected[0]
    assert expected[1] == []


def test_medians_of_sizes():
    assert median_sizes([[5, 4], [7, 2, 2], [9]], 3).tolist() == [7, 2, 0]
    assert np.isnan(median_sizes([], 2)).all()


def test_a_line_for_each_sparsity_and_a_panel_for_each_partition():
    sizes = {"edge": {0.9: [[8, 6], [6, 4]], 0.5: [[8, 8], [8, 8]]}, "node": {0.9: [[5], [3, 1]], 0.5: [[8], [8]]}}
    figure = draw_circle_sizes(sizes, 8)
    (line,) = find(figure, "edge 0.9")
    assert line.get_xydata().tolist() == [[1, 7], [2, 5]]
    (line,) = find(figure, "node 0.9")
    assert line.get_xydata().tolist() == [[1, 4], [2, 0.5]]
    assert to_rgba(line.get_color()) == to_rgba(LINES[0][0])
    assert len(find(figure, "cap")) == 2
    assert {"edge", "node", "0.9", "0.5", "at most 8"} <= set(texts(figure))
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
    measures = {HOSTILE[:10]: {"q1": 1.0, "q2": 0.5}, "b": {"q1": 0.25, "q2": 0.0}}
    figure = draw_by_length(measures_by_length(measures, {"q1": 9, "q2": 5000}), "RR@10", "one $ and {")
    bars = find(figure, "b")
    assert [bar.get_height() for bar in bars] == [0.25, 0.0]
    assert {bar.get_facecolor() for bar in bars} == {to_rgba(PALETTE[1])}
    assert {"RR@10", "under 512\n1 query", "512 to 1,023\n0 queries", "one $ and {"} <= set(texts(figure))
    render(figure)


def test_a_bar_below_zero_is_seen():
    buckets = measures_by_length({"above": {"q": 0.2}, "below": {"q": -0.5}}, {"q": 9})
    (axes,) = draw_by_length(buckets, "lift").axes
    bottom, top = axes.get_ylim()
    assert bottom < -0.5 < 0.2 < top
    (axes,) = draw_by_length(buckets, "lift", shown=["above", "unknown"], axis="place").axes
    assert [bar.get_height() for bar in find(axes.figure, "above")] == [0.2]
    assert not find(axes.figure, "below")
    assert axes.get_ylim()[0] == 0  # what is not shown moves nothing
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


def test_leaders(batch):
    graph = batch[0]
    amount = graph.num_circles
    torch.manual_seed(0)
    attention = torch.rand(4, amount, amount).softmax(-1)
    figure = draw_leaders(attention, graph, [f"w{i}" for i in range(70)])
    (image,) = find(figure, "attention")
    assert np.allclose(image.get_array(), attention.mean(0))
    labels = [label.get_text() for label in image.axes.get_yticklabels()]
    for number, label in enumerate(labels):
        name = "[CLS]" if graph.passage_mask[number] else f"w{int(graph.leader_index[number])}"
        assert label.split() == [name, str(number)]
    assert len(image.axes.lines) == 2  # between passages and friend circles
    render(figure)
    one = draw_leaders(attention[1], graph, title=HOSTILE)
    assert np.allclose(find(one, "attention")[0].get_array(), attention[1])
    render(one)
    words = [HOSTILE] * 70
    render(draw_leaders(attention, graph, words))


def test_refusals(batch):
    with pytest.raises(InputError, match="batch of 4"):
        draw_patterns(batch, patterns())
    with pytest.raises(InputError, match="no circle to draw"):
        draw_circle_sizes({"edge": {0.9: [[], []]}}, 8)
    with pytest.raises(InputError, match="6 sparsities at most, got 7"):
        draw_circle_sizes({"edge": {number / 10: [[1]] for number in range(7)}}, 8)
    with pytest.raises(InputError, match=r"got \[3, 3\]"):
        draw_leaders(torch.ones(3, 3), batch[0])
    with pytest.raises(InputError, match="no circle, so it has no leader"):
        draw_leaders(torch.ones(0, 0), batch[1])
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
