"""Splits, the rules that hold for all of them, and how ids are divided."""

import math
import warnings

import pytest

from socialgraph.data import TrainingGroups
from socialgraph.data.collection import (
    Collection,
    Document,
    Split,
    StoredDocuments,
    check_candidates,
    check_scores,
    grade_of,
    hash_fraction,
    hash_split,
    identity,
    ranked,
)
from socialgraph.errors import InputError, OptionError

DOCUMENTS = {name: Document(name, f"text {name}") for name in ("d1", "d2", "d3")}
SPLITS = {
    "train": Split({"a": "one"}, {"a": {"d1": 1}}),
    "dev": Split({"b": "two"}, {"b": {"d2": 2, "d3": 0}}, {"b": {"d1": 1.0}}),
    "test": Split({"c": "three"}, {"c": {"d3": -1}}),
}


def test_a_collection_tells_its_sizes_and_splits():
    small = Collection("small", DOCUMENTS, SPLITS)
    assert "small: 3 documents" in repr(small)
    assert "dev: Split(1 queries, 2 judgements, 1 candidates)" in repr(small)
    assert small.held_out_documents() == {"d2"}
    with pytest.raises(InputError, match="no split 'nope'; there are: train, dev, test"):
        small["nope"]


def test_lazy_parts_are_loaded_once_and_only_when_asked_for():
    calls = []

    def load():
        calls.append(1)
        return {"q": {"d1": 1.0}}

    split = Split({"q": "text"}, {}, load)
    assert split.has_candidates
    assert "not read yet" in repr(split)
    assert not calls
    assert split.candidates == {"q": {"d1": 1.0}}
    assert split.candidates is split.candidates
    assert calls == [1]


def test_with_candidates_leaves_the_original_alone():
    first = Collection("small", DOCUMENTS, SPLITS)
    second = first.with_candidates("test", {"c": {"d1": 1.0}})
    assert not first["test"].has_candidates
    assert second["test"].candidates == {"c": {"d1": 1.0}}
    assert second.documents is first.documents
    assert second["train"] is first["train"]


def test_queries_without_candidates_are_told_of_and_refused_where_there_are_none():
    asked = Collection("c", {}, {"dev": Split({"a": "x", "b": "the"}, {})})
    with pytest.warns(UserWarning, match=r"split dev: 1 of 2 queries have no candidates and count 0 .*: b") as told:
        assert asked.with_candidates("dev", {"a": {"d": 1}})["dev"].candidates == {"a": {"d": 1}}
    assert len(told) == 1
    with pytest.raises(InputError, match="collection c, split dev: none of the 2 queries has a candidate"):
        asked.with_candidates("dev", {"a": {}})


def test_candidates_that_are_no_documents_and_scores_without_order_are_named():
    check_candidates({"b": {"d1": 1.0}}, DOCUMENTS, "here")
    with pytest.raises(InputError, match=r"^here: candidate 'lost' of query 'b' is not in .*it lacks 2 documents"):
        check_candidates({"b": {"d1": 1.0, "lost": 0.5, "gone": 0.1}}, DOCUMENTS, "here")
    for score in (math.nan, -math.inf, "high", 10**400):
        with pytest.raises(InputError, match=r"^run x: the score of document 'd' for query 'q' is "):
            check_scores({"q": {"e": 1.0, "d": score}}, "run x")


def test_ranked_breaks_ties_by_document_id():
    assert ranked({"b": 1.0, "a": 1.0, "c": 3.0}) == ["c", "a", "b"]


def test_the_first_stages_score_reads_no_split_in_vain():
    """The training is asked last, as it may be large, and a split with other queries not at all."""

    def unread():
        pytest.fail("these candidates are not needed")

    splits = {
        "train": Split({"q1": "one", "q3": "three"}, {}, unread), "dev": Split({"q2": "two"}, {}, unread),
        "test": Split({"q1": "one"}, {}, {"q1": {"a": 2.0}}), "bare": Split({"q1": "one"}, {}),
    }  # fmt: skip
    tales = Collection("tales", {}, splits)
    assert tales.first_stage_score("q1", "a") == 2.0
    assert math.isnan(tales.first_stage_score("q9", "a"))
    splits["train"] = Split({"q1": "one", "q3": "three"}, {}, {"q1": {"a": 5.0, "b": 4.0}, "q3": {"a": 3.0}})
    tales = Collection("tales", {}, splits)
    pairs = (("q1", "a"), ("q1", "b"), ("q3", "a"))
    assert [tales.first_stage_score(*pair) for pair in pairs] == [2.0, 4.0, 3.0]


def test_hash_split_is_a_partition_that_new_ids_do_not_move(monkeypatch):
    assert hash_fraction("1") == 0.42002406436877837  # for ever
    ids = [f"q{n}" for n in range(2000)]
    parts = hash_split(ids, (0.6, 0.2, 0.2))
    assert sorted(parts["train"] + parts["dev"] + parts["test"]) == sorted(ids)
    assert [len(part) / len(ids) for part in parts.values()] == pytest.approx([0.6, 0.2, 0.2], abs=0.03)
    for name, part in hash_split(ids[:100], (0.6, 0.2, 0.2)).items():
        assert part == parts[name][: len(part)]
    assert hash_split(ids, (0, 0, 1))["test"] == ids
    # rounding of the shares makes no third part
    monkeypatch.setitem(hash_split.__globals__, "hash_fraction", lambda one: 1 - 2.0**-53)
    assert hash_split(["a"], (0.5, 0.5 - 1e-10, 0.0)) == {"train": [], "dev": ["a"], "test": []}
    for shares in ((0.5, 0.5), (0.5, 0.4, 0.2), (1.2, -0.2, 0)):
        with pytest.raises(OptionError, match="sum 1"):
            hash_split(["a"], shares)


class Stored(StoredDocuments):
    """Documents that are read in one pass."""

    def __getitem__(self, doc_id):
        raise AssertionError("one look-up each")

    def __iter__(self):
        return iter(DOCUMENTS)

    def __len__(self):
        return len(DOCUMENTS)

    def stream(self):
        return iter(DOCUMENTS.values())


def test_documents_of_a_store_are_one_pass_and_their_identity_changes_with_any_text():
    assert list(Stored().values()) == list(DOCUMENTS.values())
    assert identity(Stored()) == identity(DOCUMENTS) == identity(dict(DOCUMENTS))
    for other in (Document("d2", "text d2", "title"), Document("d2", "text"), Document("d9", "text d2")):
        assert identity(DOCUMENTS | {"d2": other}) != identity(DOCUMENTS)


def test_a_grade_is_a_whole_number_in_the_range():
    for value in (3, 3.0, "3", True, -1000, 1000):
        assert grade_of(value, "here") == int(value)
        assert type(grade_of(value, "here")) is int
    for value in (1.5, "1.5", "", None, [], 1001, -1001, math.nan, math.inf):
        with pytest.raises(InputError, match=r"^here: a grade must be a whole number from -1000 to 1000, got "):
            grade_of(value, "here")


class Elsewhere(Stored):
    """Documents whose ids are only known when they are looked up, as those of ir_datasets."""

    knows_ids = False

    def __getitem__(self, doc_id):
        return DOCUMENTS[doc_id]


JUDGED = {"q": {"d1": 1, "gone": 2}, "r": {"lost": 1}}


def test_a_judgement_on_a_document_that_does_not_exist_is_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="collection c, split train: 2 judgements are on documents .*: gone, lost"):
        found = Collection("c", DOCUMENTS, {"train": Split({"q": "x", "r": "y"}, JUDGED)})
    assert found["train"].qrels == {"q": {"d1": 1}}
    assert JUDGED["q"] == {"d1": 1, "gone": 2}  # whose they are keeps them


def test_where_a_look_at_documents_costs_much_judgements_stay_and_training_does_without_them():
    candidates = {query: {"d2": 2.0, "d3": 1.0} for query in ("q", "r")}
    train = Collection("c", Elsewhere(), {"train": Split({"q": "x", "r": "y"}, JUDGED, candidates)})["train"]
    assert train.qrels == JUDGED
    groups = TrainingGroups(train, size=12, negatives=2)
    told = r"query 'r': 1 documents are relevant to a training query and left out, as the corpus lacks them: lost"
    with pytest.warns(UserWarning, match=told):
        drawn = [group for group in groups]
    assert {(group.query_id, group.document_ids[0]) for group in drawn} == {("q", "d1")}


ARGUMENT = "Being vegetarian helps the environment"
ARGUMENTS = {"env-pro01a": Document("env-pro01a", ARGUMENT, "animals"), "env-con01a": Document("env-con01a", "No"),
             "7": Document("7", ARGUMENT), "8": Document("8", "seven")}  # fmt: skip
CANDIDATES = {
    "env-pro01a": {"env-pro01a": 9.0, "env-con01a": 1.0},
    "7": {"7": 9.0, "8": 1.0},
    "8": {"8": 2.0, "7": 1.0},
}
ASKED = {"env-pro01a": "Being  vegetarian helps the environment", "7": ARGUMENT, "8": "what is seven"}


@pytest.mark.parametrize("read", ["at once", "later", "afterwards"])
@pytest.mark.parametrize(
    ("option", "own"), [(None, {"env-pro01a", "7"}), (True, {"env-pro01a", "7", "8"}), (False, set())]
)
def test_a_query_that_is_a_document_is_no_candidate_of_itself(option, own, read):
    """As in ArguAna; the number 8 is both a query and a document by accident."""
    given = {"at once": CANDIDATES, "later": lambda: CANDIDATES, "afterwards": None}[read]
    split = Split(ASKED, {"env-pro01a": {"env-con01a": 1}}, given)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        arguana = Collection("arguana", ARGUMENTS, {"test": split}, option)
        found = arguana["test"].candidates or arguana.without_identical("test", CANDIDATES)
    assert {one for one in ASKED if one not in found[one]} == own
    assert all(found[one].items() <= CANDIDATES[one].items() and found[one] for one in ASKED)
    messages = [str(one.message) for one in told]
    assert len(messages) == (1 if own else 0)
    if own:
        assert f"split test: {len(own)} queries are documents themselves" in messages[0]
        assert "ignore_identical_ids=False" in messages[0]


def test_a_query_that_is_judged_to_be_its_own_document_keeps_it():
    split = Split(ASKED, {"7": {"7": 1}}, {"7": CANDIDATES["7"]})
    assert Collection("same", ARGUMENTS, {"test": split})["test"].candidates == {"7": CANDIDATES["7"]}


def test_a_training_learns_nothing_against_the_query_itself():
    split = Split(ASKED, {"env-pro01a": {"env-con01a": 1}, "7": {"env-con01a": 1}}, CANDIDATES)
    with pytest.warns(UserWarning, match="no candidates of their own"):
        train = Collection("arguana", ARGUMENTS, {"train": split})["train"]
    with pytest.warns(UserWarning, match="2 of 3 training queries have no relevant"):
        drawn = [group.document_ids for group in TrainingGroups(train, size=4)]
    assert all(group == ["env-con01a", "8"] for group in drawn)
