"""What training compares."""

import pytest

from socialgraph.data import Split, TrainingGroups
from socialgraph.errors import InputError, OptionError

QUERIES = {f"q{i}": f"text {i}" for i in range(5)}
QRELS = {"q0": {"a": 1, "x": 0}, "q1": {"b": 2}, "q2": {"c": 1, "d": 1}, "q3": {"e": 0}}
CANDIDATES = {q: {d: 1.0 for d in "abcdefghijx"} for q in ("q0", "q1", "q2", "q3")}


def groups(**options):
    with pytest.warns(UserWarning, match="2 of 5 training queries have no relevant document"):
        return TrainingGroups(Split(QUERIES, QRELS, CANDIDATES), **{"size": 12, "negatives": 7, **options})


def test_one_relevant_document_first_and_seven_that_are_not():
    for group in groups():
        assert QRELS[group.query_id][group.document_ids[0]] > 0
        assert len(set(group.document_ids)) == 8
        assert all(QRELS[group.query_id].get(d, 0) <= 0 for d in group.document_ids[1:])
        assert set(group.document_ids) <= set(CANDIDATES[group.query_id])


def test_every_query_once_before_any_twice():
    order = [group.query_id for group in (groups()[i] for i in range(12))]
    for epoch in range(4):
        assert sorted(order[3 * epoch : 3 * epoch + 3]) == ["q0", "q1", "q2"]
    assert len({tuple(order[i : i + 3]) for i in range(0, 12, 3)}) > 1


def test_a_group_is_a_function_of_seed_and_index():
    assert [groups()[i] for i in range(12)] == [groups(size=100)[i] for i in range(12)]
    assert [groups()[i] for i in range(12)] != [groups(seed=1)[i] for i in range(12)]


def test_each_group_is_a_draw_of_its_own():
    """Queries whose candidates are the same do not get the same ones, nor does a query in every epoch."""
    names = [f"q{n}" for n in range(20)]
    alike = Split(dict.fromkeys(names, "t"), {name: {"a": 1} for name in names},
                  {name: dict.fromkeys("bcdefghijk", 1.0) for name in names})  # fmt: skip
    drawn = [tuple(group.document_ids) for group in TrainingGroups(alike, size=40, negatives=3)]
    assert len(set(drawn)) > 30  # of 720


def test_fewer_candidates_make_a_smaller_group():
    group = TrainingGroups(Split({"q": "t"}, {"q": {"a": 1}}, {"q": {"b": 2.0, "c": 1.0}}), size=1)[0]
    assert group.document_ids[0] == "a"
    assert sorted(group.document_ids[1:]) == ["b", "c"]


def test_nothing_to_learn_from_is_an_error():
    for split in (Split(QUERIES, {}, CANDIDATES), Split(QUERIES, QRELS)):
        with pytest.raises(InputError, match="none of the 5 training queries"):
            TrainingGroups(split, size=1)
    with pytest.raises(OptionError):
        TrainingGroups(Split(QUERIES, QRELS, CANDIDATES), size=0)
