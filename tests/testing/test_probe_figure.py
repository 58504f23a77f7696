"""Pictures of probes show the numbers that were found, and refuse what cannot be compared."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from socialgraph.errors import InputError, OptionError
from socialgraph.partition import Windows
from socialgraph.testing import ModelProbe, Probe, probe
from socialgraph.testing.probe_figure import draw_model_probes, draw_probes
from socialgraph.testing.probe_model import Carried, Sort


def small(size: int, documents: int = 4) -> Probe:
    return probe(Windows(size), length=256, distances=(2, 60), distractors=(0, 1), documents=documents)


@pytest.mark.parametrize("by", ["circle", "leaders"])
def test_a_line_is_what_was_found(by: str) -> None:
    probes = [small(16), small(64)]
    figure = draw_probes(probes, by)
    panels = figure.axes
    assert [axes.get_title() for axes in panels[:2]] == ["no distractors", "1 distractor"]
    sorts = [(kind, count) for kind in ("fact", "halves") for count in (0, 1)]
    for axes, sort in zip(panels, sorts, strict=True):
        for one, marks in zip(probes, axes.collections, strict=True):
            (line,) = [line for line in axes.lines if line.get_gid() == one.partition]
            met = [getattr(row, by) for row in one.rows if (row.kind, row.distractors) == sort]
            assert line.get_ydata().tolist() == [m.share for m in met]
            hollow = (marks.get_facecolors() == to_rgba("white")).all(1)
            assert hollow.tolist() == [not m.clear for m in met]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [one.partition for one in probes]


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(OptionError, match="by must be circle or leaders, got 'words'"):
        draw_probes([small(16)], by="words")
    with pytest.raises(InputError, match="use the same"):
        draw_probes([small(16), small(16, documents=5)])
    with pytest.raises(InputError, match="1 to 6 partitions can be drawn in one figure, got 0"):
        draw_probes([])


def carried(model: str, *shares: list[float], steps: int = 100) -> ModelProbe:
    sorts = (Sort("fact"), Sort("halves", 32, 4))
    return ModelProbe(model, steps, [Carried(*row) for row in zip(sorts, shares, strict=True)])


def test_each_seed_of_a_model_has_a_mark() -> None:
    probes = [carried("MaxP", [0.8, 0.9], [0.5, 0.6]), carried("PARADE", [1.0, 1.0], [0.7, 0.4])]
    figure = draw_model_probes(probes, names=["one", "two"])
    (axes,) = figure.axes
    for marks, shares in zip(axes.collections, ([0.8, 0.9, 0.5, 0.6], [1.0, 1.0, 0.7, 0.4]), strict=True):
        assert np.asarray(marks.get_offsets())[:, 1].tolist() == shares
    assert [text.get_text() for text in axes.get_xticklabels()] == ["fact", "halves, 32 apart\n4 distractors"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "two"]
    assert axes.get_ylim()[0] <= 0.4


def test_models_that_cannot_be_compared_are_refused() -> None:
    one = carried("MaxP", [0.8], [0.5])
    with pytest.raises(InputError, match="1 models and 2 names"):
        draw_model_probes([one], names=["a", "b"])
    with pytest.raises(InputError, match="other sorts or steps"):
        draw_model_probes([one, carried("PARADE", [0.8], [0.5], steps=200)])
