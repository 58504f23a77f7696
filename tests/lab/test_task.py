"""What is ranked: each task is loaded once; which questions of a split are asked."""

from itertools import pairwise

from lab import task
from lab.task import load_task, sampled
from omegaconf import OmegaConf

from socialgraph.data import Split
from socialgraph.data.collection import hash_fraction


def test_splits_that_are_called_by_a_number(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a", "text": "one"}\n{"doc_id": "b", "text": "two"}\n')
    for split in (1, 2, 3):
        (tmp_path / f"queries.{split}.tsv").write_text(f"q{split}\tone\n")
        (tmp_path / f"qrels.{split}.txt").write_text(f"q{split} 0 a 1\n")
        (tmp_path / f"run.bm25.{split}.txt").write_text(f"q{split} Q0 a 1 2.0 x\nq{split} Q0 b 2 1.0 x\n")
    collection = {"_target_": "socialgraph.data.load_folder", "path": str(tmp_path)}
    data = {"collection": collection, "retriever": None, "depth": 2, "runs": {}, "queries": {"dev": None, "test": None},
            "splits": {"train": 1, "dev": 2, "test": 3}}  # fmt: skip
    task = load_task(OmegaConf.create(data))
    assert [list(split.queries) for split in (task.train, task.dev, task.tests["3"])] == [["q1"], ["q2"], ["q3"]]


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


def test_a_task_is_loaded_once(monkeypatch):
    monkeypatch.setattr(task, "_LOADED", {})
    monkeypatch.setattr(task, "load_task", lambda data: [data.depth])
    same, other = ({"data": {"label": "a", "depth": "${depth}"}, "depth": depth} for depth in (3, 4))
    first = task.task_of(OmegaConf.create(same))
    assert task.task_of(OmegaConf.create(same)) is first
    assert (first, task.task_of(OmegaConf.create(other))) == ([3], [4])
