import math

import pytest

from socialgraph.errors import InputError, OptionError
from socialgraph.ranking.evaluate import evaluate
from socialgraph.ranking.interpolate import DEFAULT_GRID, choose_weight, interpolate, weight_curve

FIRST = {"q": {"a": 10.0, "b": 6.0, "c": 2.0}}
SECOND = {"q": {"a": -1.0, "b": 1.0, "c": 0.0}}


def test_scores_are_the_weighted_min_max():
    assert interpolate(FIRST, SECOND, 0.75) == {"q": pytest.approx({"a": 0.75, "b": 0.625, "c": 0.125})}


@pytest.mark.parametrize(("weight", "order"), [(1.0, "abc"), (0.0, "bca"), (0.75, "abc"), (0.5, "bac")])
def test_documents_come_best_first(weight, order):
    assert "".join(interpolate(FIRST, SECOND, weight)["q"]) == order


@pytest.mark.parametrize(("scale", "shift"), [(8, -64), (2.0**-30, 0)])
def test_scale_and_shift_of_a_run_do_not_matter(scale, shift):
    moved = {"q": {doc_id: scale * score + shift for doc_id, score in SECOND["q"].items()}}
    assert interpolate(FIRST, moved, 0.5) == interpolate(FIRST, SECOND, 0.5)


def test_equal_scores_and_lone_documents_become_zero():
    equal = interpolate({"q": {"b": 3.0, "a": 3.0}}, {"q": {"a": 0.0, "b": 1.0}}, 0.5)
    assert equal == {"q": {"b": 0.5, "a": 0.0}}
    assert interpolate({"q": {"a": 2.0, "b": 1.0}}, {"q": {"c": 5.0, "b": 1.0}}, 0.5) == {
        "q": {"a": 0.5, "c": 0.5, "b": 0.0}
    }


def test_a_query_of_one_run_keeps_its_order():
    mixed = interpolate({"q1": {"a": 1.0, "b": 2.0}}, {"q2": {"c": 1.0, "d": 2.0}}, 0.9)
    assert list(mixed["q1"]) == ["b", "a"]
    assert list(mixed["q2"]) == ["d", "c"]
    assert mixed["q2"]["d"] == 1.0


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_weights_out_of_range_are_refused(weight):
    with pytest.raises(OptionError, match="from 0 to 1"):
        interpolate(FIRST, SECOND, weight)


def test_the_best_weight_of_the_grid_is_chosen():
    # Relevant is what neither run alone has on top, but their mixture has.
    first = {"q": {"a": 10.0, "b": 9.0, "c": 0.0}}
    second = {"q": {"c": 10.0, "b": 9.0, "a": 0.0}}
    qrels = {"q": {"b": 1}}
    curve = weight_curve(first, second, qrels, "RR@10")
    assert tuple(curve) == DEFAULT_GRID
    assert (curve[0.0], curve[0.5], curve[1.0]) == (0.5, 1.0, 0.5)
    best = choose_weight(first, second, qrels, "RR@10")
    assert best == min(weight for weight, value in curve.items() if value == 1.0)
    assert evaluate(qrels, interpolate(first, second, best)).mean["RR@10"] == 1.0
    assert choose_weight(first, second, qrels, "RR@10", grid=(1.0, 0.8, 0.6)) == 0.6


def test_means_that_differ_by_rounding_are_equal(monkeypatch):
    monkeypatch.setitem(choose_weight.__globals__, "weight_curve", lambda *_: {0.0: 0.3, 0.5: 0.1 + 0.2})
    assert choose_weight(FIRST, SECOND, {"q": {"a": 1}}) == 0.0


def test_without_a_difference_the_second_run_is_kept():
    assert choose_weight(FIRST, FIRST, {"q": {"a": 1}}) == 0.0
    with pytest.raises(InputError, match="grid"):
        choose_weight(FIRST, SECOND, {"q": {"a": 1}}, grid=())
