import math

import children
import numpy as np
import pytest
import scipy.stats

from socialgraph.data.collection import ranked
from socialgraph.errors import InputError, OptionError
from socialgraph.ranking.evaluate import DEFAULT_MEASURES, evaluate, holm, paired_t_test, parse_measures


def gain(grades):
    return sum(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


def literal(qrels, run, name):
    """Each measure from its definition."""
    kind, depth = name.split("@")
    values = {}
    for query_id, grades in qrels.items():
        ranking = ranked(run.get(query_id, {}))[: int(depth)]
        if kind == "RR":
            ranks = [rank for rank, one in enumerate(ranking, 1) if grades.get(one, 0) >= 1]
            values[query_id] = 1 / ranks[0] if ranks else 0.0
        else:
            ideal = gain(sorted(grades.values(), reverse=True)[: int(depth)])
            values[query_id] = gain([grades.get(one, 0) for one in ranking]) / ideal if ideal else 0.0
    return values


def random_case(seed):
    """Coarse scores, so that ties abound; queries without a run, a run without judgements."""
    draw = np.random.default_rng(seed)
    names = [f"d{n}" for n in range(150)]
    qrels, run = {}, {}
    for number in range(12):
        judged = draw.choice(names, 8, replace=False)
        qrels[f"q{number}"] = {str(one): int(draw.integers(-1, 4)) for one in judged}
        if number % 4:
            found = draw.choice(names, draw.integers(1, 140), replace=False)
            run[f"q{number}"] = {str(one): float(draw.integers(0, 6)) for one in found}
    run["unjudged"] = {"d1": 1.0}
    return qrels, run


@pytest.mark.parametrize("seed", range(3))
def test_measures_are_their_definitions(seed):
    qrels, run = random_case(seed)
    result = evaluate(qrels, run)
    assert tuple(result.per_query) == DEFAULT_MEASURES
    for name in DEFAULT_MEASURES:
        expected = literal(qrels, run, name)
        assert result.per_query[name] == pytest.approx(expected, abs=1e-9)
        assert result.mean[name] == pytest.approx(sum(expected.values()) / len(qrels))


def test_queries_that_the_run_lacks_count_zero():
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}
    result = evaluate(qrels, {"q1": {"a": 1.0}, "q2": {}}, ["RR@10"])
    assert result.per_query["RR@10"] == {"q1": 1.0, "q2": 0.0, "q3": 0.0}
    assert result.mean["RR@10"] == pytest.approx(1 / 3)
    assert evaluate(qrels, {}).mean == dict.fromkeys(DEFAULT_MEASURES, 0.0)
    close = {"a": 1.0, "b": 1.0 + 1e-12}  # no tie, though trec_eval would see one
    assert evaluate({"q": {"b": 1}}, {"q": close}, ["RR@10", "AP"]).mean == {"RR@10": 1.0, "AP": 1.0}


def test_bad_input():
    with pytest.raises(InputError, match="without judgements"):
        evaluate({}, {"q": {"a": 1.0}})
    for score in (math.nan, -math.inf, None, "high", 10**400):
        with pytest.raises(InputError, match=r"the score of document 'a' for query 'q' is (nan|-?inf|None|high|10+)$"):
            evaluate({"q": {"a": 1}}, {"q": {"a": score}})
    for grade in (1.5, None, "high", 1001, -(2**31), math.nan):
        with pytest.raises(InputError, match="query 'q', document 'a': a grade must be a whole number from -1000 to"):
            evaluate({"q": {"a": grade}}, {"q": {"a": 1.0}})
    for document in ("a\0b", "\ud800"):
        with pytest.raises(InputError, match="query 'q': an id holds a NUL, or half of a surrogate pair"):
            evaluate({"q": {document: 1}}, {"q": {document: 1.0}})


@pytest.mark.parametrize("names", ["RR@10", [], [5], ["P"], ["nDCG10"], ["Nonsense@5"], [""], ["INST"]])
def test_measures_are_a_list_of_names_that_can_be_computed(names):
    with pytest.raises(OptionError, match="measure"):
        parse_measures(names)


@pytest.mark.parametrize("name", ["P@0", "nDCG@0", "Judged@0"])
def test_a_cutoff_of_0_is_refused_where_the_process_would_end(name):
    """In a process that lives: trec_eval's assertions end it."""
    with pytest.raises(OptionError, match=f"measure '{name}': a cutoff must be at least 1"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, ["RR@10", name])


ALL_NEGATIVE = """
from socialgraph.ranking import evaluate
for lowest in (-1, -2, -1000):
    qrels = {f"q{n}": {f"d{i}": max(lowest, -1 - i) for i in range(n)} for n in range(1, 11)}
    run = {query_id: dict.fromkeys(grades, 1.0) for query_id, grades in qrels.items()}
    found = evaluate(qrels, run, ["RR@10", "nDCG@10", "AP", "P@5", "Bpref", "Judged@10"]).mean
    assert found == {"RR@10": 0, "nDCG@10": 0, "AP": 0, "P@5": 0, "Bpref": 0, "Judged@10": 1}, found
"""


def test_grades_below_zero_alone_do_not_kill_the_process(tmp_path):
    """The measures' library writes before its table of grades where none is 0 or more: in a process of its own."""
    (tmp_path / "program.py").write_text(ALL_NEGATIVE)
    done = children.run(tmp_path / "program.py")
    assert done.returncode == 0, done.stderr[-500:]


def test_high_grades_and_other_kinds_of_whole_numbers_count():
    found = evaluate({"q": {"a": 1000, "b": "1", "c": np.int64(-1000)}}, {"q": {"b": 2.0, "a": 1.0}}, ["nDCG@10"])
    ideal = 1000 + 1 / math.log2(3)
    assert found.per_query["nDCG@10"]["q"] == pytest.approx((1 + 1000 / math.log2(3)) / ideal)


def values(numbers):
    return {f"q{n}": float(number) for n, number in enumerate(numbers)}


@pytest.mark.filterwarnings("error")
def test_t_test_without_variance_is_clear():
    same = values([0.1, 0.5, 1.0])
    assert paired_t_test(same, same) == type(paired_t_test(same, same))(0.0, 0.0, 1.0, 3, (0.0, 0.0), 0.0)
    assert not paired_t_test(same, same).significant()
    better = paired_t_test(values([1, 2, 3]), values([0, 1, 2]))
    assert (better.difference, better.statistic, better.p_value) == (1.0, math.inf, 0.0)
    assert paired_t_test(values([0, 1]), values([1, 2])).statistic == -math.inf
    clusters = {"q0": "x", "q1": "x", "q2": "y", "q3": "y"}  # whose sums may not vary where their queries do
    same = paired_t_test(values([1, 0, 0.5, 0.5]), values([0.5] * 4), clusters)
    assert (same.difference, same.statistic, same.p_value, same.interval) == (0.0, 0.0, 1.0, (0.0, 0.0))


@pytest.mark.parametrize("clusters", [7, None])
def test_the_t_test_is_the_formula(clusters):
    draw = np.random.default_rng(1)
    d = draw.random(40) - 0.4
    group = np.arange(40) if clusters is None else draw.integers(clusters, size=40)
    names = None if clusters is None else {f"q{n}": f"c{c}" for n, c in enumerate(group)}
    test = paired_t_test(values(d), dict(reversed(values(np.zeros(40)).items())), names)
    sums = np.array([(d - d.mean())[group == c].sum() for c in np.unique(group)])
    error = math.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / 40
    wide = scipy.stats.t.ppf(0.975, len(sums) - 1) * error
    assert (test.queries, test.difference) == (40, pytest.approx(d.mean()))
    assert test.error == pytest.approx(error)
    assert test.statistic == pytest.approx(d.mean() / error)
    assert test.interval == pytest.approx((d.mean() - wide, d.mean() + wide))
    assert test.p_value == pytest.approx(2 * scipy.stats.t.sf(abs(d.mean() / error), len(sums) - 1))


def test_t_test_refuses_what_cannot_be_paired():
    with pytest.raises(InputError, match="2 queries are in one result only: q2, q9"):
        paired_t_test(values([1, 2, 3]), values([1, 2]) | {"q9": 1.0})
    with pytest.raises(InputError, match="two queries or more, got 1"):
        paired_t_test(values([1]), values([2]))


def test_holm_by_hand():
    # sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1 -> 0.02, 0.03, 0.06, and 0.04 must not fall below 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.4]) == pytest.approx([0.8, 0.8])
    assert holm([0.7, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
    with pytest.raises(OptionError, match="from 0 to 1"):
        holm([0.5, float("nan")])


def test_a_document_with_the_querys_id_is_passed_over_as_in_beir():
    """As in ArguAna, where a query is a document. Numbers coincide by accident; what is judged relevant counts."""
    qrels = {"argument-1": {"a": 1}, "7": {"a": 1}, "same": {"same": 1}}
    run = {name: {name: 2.0, "a": 1.0} for name in qrels}
    with pytest.warns(UserWarning, match="1 queries find a document of their own id, .*: argument-1"):
        assert evaluate(qrels, run, ["RR@10"]).per_query["RR@10"] == {"argument-1": 1.0, "7": 0.5, "same": 1.0}
    with pytest.warns(UserWarning, match="3 queries find a document of their own id"):
        found = evaluate(qrels, run, ["RR@10"], ignore_identical_ids=True)
    assert found.per_query["RR@10"] == {"argument-1": 1.0, "7": 1.0, "same": 0.0}
    found = evaluate(qrels, run, ["RR@10"], ignore_identical_ids=False)
    assert found.per_query["RR@10"] == {"argument-1": 0.5, "7": 0.5, "same": 1.0}


def test_ids_that_are_numbers_come_back():
    found = evaluate({1: {10: 1, 11: 0}}, {1: {11: 2.0, 10: 1.0}}, ["RR@10"])
    assert found.per_query == {"RR@10": {1: 0.5}}
    with pytest.raises(InputError, match="the ids 10 and '10' are one as strings"):
        evaluate({1: {10: 1, "10": 0}}, {1: {10: 2.0}}, ["RR@10"])
