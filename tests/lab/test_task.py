"""What is ranked: each task is loaded once; which questions are asked; what is retrieved."""

from itertools import pairwise

import pytest
from lab.task import load_task, rank_by_first_stage, sampled
from omegaconf import OmegaConf
from tales import write_collection

from socialgraph.data import Split
from socialgraph.data.collection import hash_fraction
from socialgraph.ranking import BM25, QueryLikelihood


def test_splits_that_are_called_by_a_number(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a", "text": "one"}\n{"doc_id": "b", "text": "two"}\n')
    for split in (1, 2, 3):
        (tmp_path / f"queries.{split}.tsv").write_text(f"q{split}\tone\n")
        (tmp_path / f"qrels.{split}.txt").write_text(f"q{split} 0 a 1\n")
        (tmp_path / f"run.bm25.{split}.txt").write_text(f"q{split} Q0 a 1 2.0 x\nq{split} Q0 b 2 1.0 x\n")
    collection = {"_target_": "socialgraph.data.load_folder", "path": str(tmp_path)}
    data = {"collection": collection, "retriever": None, "depth": 2, "runs": {}, "queries": {"dev": None, "test": None},
            "splits": {"train": 1, "dev": 2, "test": 3}}  # fmt: skip
    task = load_task(OmegaConf.create({**data, "label": "x"}))
    assert [list(split.queries) for split in (task.train, task.dev, task.test)] == [["q1"], ["q2"], ["q3"]]
    assert load_task(OmegaConf.create({**data, "label": "x"})) is task  # each is loaded once
    assert (task.first_stage_score("q3", "a"), task.first_stage_score("q1", "b")) == (2.0, 1.0)


def test_questions_that_were_asked_before_are_left_out():
    names = [f"q{n}" for n in range(40)]
    split = Split(
        {name: "words" for name in names},
        {name: {"relevant": 1} for name in names},
        {name: {"other": 2.0} | ({"relevant": 1.0} if n % 4 else {}) for n, name in enumerate(names)},
    )
    every = [sampled(split, None, 2, answerable=True, skipped=skipped).queries.keys() for skipped in range(31)]
    assert every[0] == {name for n, name in enumerate(names) if n % 4}  # the others have no relevant candidate
    assert all(len(before - after) == 1 and after < before for before, after in pairwise(every))
    by_hash = sorted(every[0], key=hash_fraction)
    assert every[10] == set(by_hash[10:])  # those of the lowest hash come first
    first, fresh = (sampled(split, 10, 2, answerable=True, skipped=skipped) for skipped in (0, 10))
    assert first.queries.keys() == every[0] - every[10]
    assert fresh.queries.keys() == fresh.qrels.keys() == fresh.candidates.keys() == every[10] - every[20]


def test_the_best_candidates_are_ranked():
    split = Split({"q": "words"}, {"q": {"low": 1}}, {"q": {"low": 1.0, "high": 3.0, "b": 2.0, "a": 2.0}})
    assert list(sampled(split, None, 2).candidates["q"].items()) == [("high", 3.0), ("a", 2.0)]
    assert not sampled(split, None, 3, answerable=True).queries
    assert sampled(split, None, 4, answerable=True).queries


@pytest.fixture
def task(tmp_path):
    """A task of 12 documents, all of them with a word of every query, and 4 queries in each split."""
    texts = {f"d{n}": " ".join(["common"] * (n + 1) + [f"word{n}"]) for n in range(12)}
    queries = {name: f"common word{n}" for n, name in enumerate(texts)}
    names = list(texts)
    write_collection(tmp_path, texts, queries, train=names[:4], dev=names[4:8], test=names[8:])
    data = {
        "label": "x", "collection": {"_target_": "socialgraph.data.load_folder", "path": str(tmp_path)},
        "retriever": {"_target_": "socialgraph.ranking.BM25"}, "depth": 3, "runs": {},
        "queries": {"dev": 0, "test": 2}, "splits": {"train": "train", "dev": "dev", "test": "test"},
    }  # fmt: skip
    return load_task(OmegaConf.create(data))


def test_candidates_are_retrieved_of_the_queries_that_are_ranked_alone(task, monkeypatch):
    asked = []
    whole = BM25.retrieve

    def retrieve(self, queries, k, exclude=frozenset()):
        asked.append((sorted(queries), k, len(exclude)))
        return whole(self, queries, k, exclude)

    monkeypatch.setattr(BM25, "retrieve", retrieve)
    assert len(task.test.candidates) == 2
    assert not task.dev.queries
    assert [(queries, k < 5, excluded) for queries, k, excluded in asked] == [
        (sorted(task.test.queries), True, 0)
    ]  # neither train nor dev, and no deeper than is ranked
    assert len(task.train.candidates) == 4
    queries, _, excluded = asked[1]
    assert (queries, excluded) == ([f"q-d{n}" for n in range(4)], 8)  # without what another split asks for


def test_a_first_stage_ranks_the_candidates_as_it_would_all_documents(task):
    documents = task.collection.documents
    for retriever in (BM25().fit(documents), QueryLikelihood().fit(documents)):
        every = retriever.retrieve(task.test.queries, len(documents))
        for query, scores in rank_by_first_stage(retriever, task.test).items():
            assert scores == {one: score for one, score in every[query].items() if one in task.test.candidates[query]}
        assert retriever.score("word3 nobody", ["d3", "d4", "gone"]).keys() == {"d3"}
        assert retriever.score("nobody", ["d3"]) == {}
