"""Figures 4 and 5, quality by sequences, and buckets: what is drawn, not how it looks."""

import numpy as np
import pytest
from artists import find, no_warnings, render, texts
from lab.figures import draw_circle_sizes, draw_patterns, quality_and_sequences
from lab.report import Comparison, Line, buckets
from lab.rows import Row
from omegaconf import OmegaConf

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
    with pytest.raises(InputError, match="no circle to draw"):
        draw_circle_sizes({"edge": {0.9: [[], []]}}, 8)


def test_a_bound_belongs_to_the_bucket_above_it():
    found = buckets([9, 511, 512, 2048], [512, 2048])
    assert list(found) == ["under 512", "under 512", "512 to 2,047", "2,048 and more"]
    for bounds in ([2, 1], []):
        with pytest.raises(OptionError, match="bounds must ascend, and there must be one, got"):
            buckets([1], bounds)


def quality(*rows):
    """Draw rows of options, a measure and a number of sequences."""
    lines = []
    for options, value, sequences in rows:
        label = ", ".join(one if key == "partition" else f"{key}={one}" for key, one in options.items())
        measures = {"RR@10": {"q": value}, "sequences": {"q": sequences}}
        lines.append(Line(Row(label, (), label, beside={"options": options}), [{"measures": measures}]))
    report = {"significance": {"to": ["other"], "measures": []}}
    config = OmegaConf.create({"measures": ["RR@10", "sequences"], "report": report})
    return quality_and_sequences(Comparison(config, lines))


def test_rows_that_differ_in_k_alone_make_a_curve_and_others_a_mark():
    curves = [({"partition": name, "partition.k": k}, 0.5, float(k)) for name in ("edge", "my.Own") for k in "42"]
    figure = quality(*curves, ({"partition": "windows", "partition.k": "null"}, 0.9, 32.0))
    drawn = {line.get_label(): line.get_xydata().tolist() for line in figure.axes[0].lines}
    assert drawn == {"edge": [[2, 0.5], [4, 0.5]], "my.Own": [[2, 0.5], [4, 0.5]], "windows, all": [[32, 0.9]]}
    assert [one.get_label() for one in quality(*(({"partition.k": k}, 0.5, 1.0) for k in "24")).axes[0].lines] == [
        "circles"
    ]
    assert quality(*(({"partition": name, "partition.k": "4"}, 0.5, 4.0) for name in ("edge", "node"))) is None
