import math

import pytest

from socialgraph.errors import InputError, OptionError
from socialgraph.ranking.evaluate import evaluate
from socialgraph.ranking.interpolate import choose_weight, interpolate

FIRST = {"q": {"a": 10.0, "b": 6.0, "c": 2.0}}
SECOND = {"q": {"a": -1.0, "b": 1.0, "c": 0.0}}


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (0.75, {"a": 0.75, "b": 0.625, "c": 0.125}),
        (0.5, {"b": 0.75, "a": 0.5, "c": 0.25}),
        (0.0, {"b": 1.0, "c": 0.5, "a": 0.0}),
    ],
)
def test_scores_are_the_weighted_min_max_best_first(weight, expected):
    found = interpolate(FIRST, SECOND, weight)
    assert found == {"q": pytest.approx(expected)}
    assert list(found["q"]) == list(expected)


@pytest.mark.parametrize(("scale", "shift"), [(8, -64), (2.0**-30, 0), (1e308, 0)])
def test_scale_and_shift_of_a_run_do_not_matter(scale, shift):
    moved = {"q": {doc_id: scale * score + shift for doc_id, score in SECOND["q"].items()}}
    assert interpolate(FIRST, moved, 0.5) == {"q": pytest.approx(interpolate(FIRST, SECOND, 0.5)["q"])}


def test_equal_scores_and_documents_and_queries_of_one_run():
    equal = interpolate({"q": {"b": 3.0, "a": 3.0}}, {"q": {"a": 0.0, "b": 1.0}}, 0.5)
    assert equal == {"q": {"b": 0.5, "a": 0.0}}
    lone = interpolate({"q": {"a": 2.0, "b": 1.0}}, {"q": {"c": 5.0, "b": 1.0}}, 0.5)
    assert lone == {"q": {"a": 0.5, "c": 0.5, "b": 0.0}}
    mixed = interpolate({"q1": {"a": 1.0, "b": 2.0}}, {"q2": {"c": 1.0, "d": 2.0}}, 0.9)
    assert mixed == {"q1": {"b": 1.0, "a": 0.0}, "q2": {"d": 1.0, "c": 0.0}}


def test_bad_weights_scores_and_grids():
    for weight in (-0.1, 1.1, math.nan):
        with pytest.raises(OptionError, match="from 0 to 1"):
            interpolate(FIRST, SECOND, weight)
    with pytest.raises(InputError, match="interpolation: the score of document 'a' for query 'q' is nan"):
        interpolate(FIRST, {"q": {"a": math.nan}}, 0.5)
    with pytest.raises(InputError, match="grid"):
        choose_weight(FIRST, SECOND, {"q": {"a": 1}}, grid=())


def test_the_smallest_of_the_best_weights_is_chosen():
    # Relevant is what neither run alone has on top, but their mixture has.
    first = {"q": {"a": 10.0, "b": 9.0, "c": 0.0}}
    second = {"q": {"c": 10.0, "b": 9.0, "a": 0.0}}
    qrels = {"q": {"b": 1}}
    best = choose_weight(first, second, qrels, "RR@10")
    means = {step: evaluate(qrels, interpolate(first, second, step / 20)).mean["RR@10"] for step in range(21)}
    assert (means[0], means[20]) == (0.5, 0.5)
    assert best == min(step for step, mean in means.items() if mean == 1.0) / 20
    assert choose_weight(first, second, qrels, "RR@10", grid=(1.0, 0.8, 0.6)) == 0.6
    assert choose_weight(FIRST, FIRST, {"q": {"a": 1}}) == 0.0
