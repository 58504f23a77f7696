"""The same work has no differences; other work says in each phrase what was and what is."""

import json

import pytest

from socialgraph.ranking import differences


def test_the_same_work_has_no_differences_after_json():
    work = {"seed": 1, "trainer": {"lengths": (512, 30), "bf16": None}, "names": []}
    assert differences(json.loads(json.dumps(work)), work) == []


def test_each_difference_is_a_phrase_with_its_dotted_name():
    old = {"seed": 1, "trainer": {"learning_rate": 1e-5, "steps": 3}, "data": "pydocs"}
    new = {"seed": 2, "trainer": {"learning_rate": 1e-5, "steps": 4}, "data": {"name": "pydocs"}}
    assert differences(old, new) == [
        "seed was 1, is 2",
        "trainer.steps was 3, is 4",
        "data was 'pydocs', is {'name': 'pydocs'}",
    ]


@pytest.mark.parametrize("value", [0, False, "", [], 1.5])
def test_only_none_equals_what_is_missing(value):
    assert differences({}, {"new": None}) == differences({"old": None}, {}) == []
    assert differences({}, {"new": value}) == [f"new was None, is {value!r}"]
    assert differences({"gone": value}, {}) == [f"gone was {value!r}, is None"]


def test_long_values_are_cut():
    (phrase,) = differences({"text": "a" * 1000}, {"text": "b" * 1000})
    assert len(phrase) < 160
    assert phrase.startswith("text was 'aaa")
    assert "..., is 'bbb" in phrase
