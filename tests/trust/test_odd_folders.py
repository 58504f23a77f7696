"""Folders with the mistakes that people make: what is wrong is said before anything is ranked, in one line each."""

from __future__ import annotations

import gzip
import json
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from commands import WORDS, composed_from
from hydra.errors import HydraException
from lab.command import in_one_line
from lab.task import load_task
from omegaconf.errors import OmegaConfBaseException

from socialgraph.errors import SocialgraphError
from socialgraph.ranking import evaluate

SPLITS = {"train": WORDS[:2], "dev": WORDS[2:3], "test": WORDS[3:]}


def corpus(change: Callable[[str], dict[str, Any]]) -> dict[str, bytes]:
    """Return a corpus in which each document is changed, by its id."""
    entries = ({"doc_id": word, "text": f"{word} w20 w41 w{50 + i}"} | change(word) for i, word in enumerate(WORDS))
    return {"corpus.jsonl": b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)}


def queries(split: str) -> bytes:
    return "".join(f"q-{word}\t{word} w20\n" for word in SPLITS[split]).encode()


def qrels(split: str) -> bytes:
    return "".join(f"q-{word} 0 {word} 1\n" for word in SPLITS[split]).encode()


def runs(score: Callable[[int], float] = lambda place: 9 - place, first: int = 0) -> dict[str, bytes]:
    """Return candidates for all splits, by the scores of their places; the relevant one has the place 0."""
    files = {}
    for split, words in SPLITS.items():
        ranked = {word: [word, *(one for one in WORDS if one != word)][first:] for word in words}
        files[f"run.bm25.{split}.txt"] = "".join(
            f"q-{word} Q0 {one} {place + 1} {score(place)} t\n"
            for word in words
            for place, one in enumerate(ranked[word])
        ).encode()
    return files


GOOD: dict[str, Any] = corpus(lambda word: {})
GOOD |= {f"queries.{split}.tsv": queries(split) for split in SPLITS}
GOOD |= {f"qrels.{split}.txt": qrels(split) for split in SPLITS}


class Odd(NamedTuple):
    """Files that are other than those of :data:`GOOD`, and what is said: as an error, or as a warning."""

    files: dict[str, Any]
    error: str | None = None
    warning: str | None = None
    typed: tuple[str, ...] = ()


UNJUDGED = "split test: none of the 3 queries that are ranked is judged, so nothing can be measured; .* qrels.test.txt"
NOT_READ = "files that are not called .* are not read: "
EQUAL = "all orders measure the same"
CASES: dict[str, Odd] = {
    "nothing is odd": Odd({}),
    "a backup and other files": Odd({"queries.test.tsv~": b"x", "README.md": b"x", "evidence.tsv": b"x"}),
    "columns of judgements swapped": Odd(
        {"qrels.test.txt": b"w3 0 q-w3 1\n"}, UNJUDGED,
        "qrels.test.txt: . queries that this split does not have are left out",
    ),
    "no judgements of dev": Odd({"qrels.dev.txt": None}, "split dev: none of the 1 queries"),
    "judgements called tsv": Odd(
        {"qrels.test.txt": None, "qrels.test.tsv": qrels("test")}, UNJUDGED, NOT_READ + "qrels.t",
    ),
    "queries called gz": Odd(
        {"queries.test.tsv": None, "queries.test.tsv.gz": gzip.compress(queries("test"))},
        "has no split 'test'; there are: dev, train", NOT_READ + "qrels.test.txt, queries.test.tsv.gz",
    ),
    "runs called trec": Odd({"run.bm25.test.trec": b"x"}, None, NOT_READ + "run.bm25.test.trec"),
    "a heading of judgements": Odd(
        {"qrels.test.txt": b"query 0 document grade\n"}, "qrels.test.txt:1: the grade must be a whole",
    ),
    "a heading of queries": Odd(
        {"queries.test.tsv": b"id\ttext\n" + queries("test")}, None, "1 queries match no document: id",
    ),
    "titles alone": Odd(corpus(lambda word: {"title": word, "text": ""}), None, "6 documents have no text"),
    "no text at all": Odd(
        corpus(lambda word: {"text": ""}), "nothing to index: 6 documents, and none of them has a word",
        "6 documents have no text",
    ),
    "candidates": Odd(runs()),
    "the relevant one is no candidate": Odd(runs(first=1), None, f"split test: no query has .*{EQUAL}"),
    "distances as scores": Odd(runs(lambda place: 1 + place), None, "scores of the first query rise .* last document"),
    "grades of 0": Odd({"qrels.test.txt": qrels("test").replace(b" 1\n", b" 0\n")}, None, f"split test: .*{EQUAL}"),
    "queries of the training in the test": Odd(
        {"queries.test.tsv": queries("test") + queries("train")}, None,
        "2 queries have ids of the training's: q-w0, q-w1",
    ),
    "tested on what is trained": Odd(
        {}, None, "models are trained on the queries that test", ("data.splits.train=test",),
    ),
    "tested on dev": Odd({}, None, "weight of BM25 is chosen on the queries", ("data.splits.dev=test",)),
    "candidates of nobody": Odd(
        {}, r"no run.nobody.<split>.txt\[.gz\]; there are no runs", None, ("data.candidates=nobody",),
    ),
    "test alone, and nothing asked of dev": Odd(
        {name: None for name in GOOD if "train" in name or "dev" in name}, None, None, ("data.queries.dev=0",),
    ),
    "a query that nobody judged": Odd(
        {"queries.test.tsv": queries("test") + b"q-x\tw0 w20\n"}, None,
        "1 of the 4 queries that are ranked are not judged and count nowhere: q-x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_folder_is_loaded_as_all_commands_do_and_its_mistake_is_told(tmp_path, name):
    odd, error = CASES[name], None
    for file, content in (GOOD | odd.files).items():
        if content is not None:
            (tmp_path / file).write_bytes(content)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            task = load_task(composed_from("data=folder", f"data.path={tmp_path}", *odd.typed).data)
            _, split = task.dev, task.test
            assert 0 <= evaluate(split.qrels, split.candidates, ["RR@10"]).mean["RR@10"] <= 1
        except (SocialgraphError, HydraException, OmegaConfBaseException) as caught:
            error = in_one_line(caught)
    said = [str(one.message) for one in warned if issubclass(one.category, UserWarning)]
    assert all(text.isprintable() for text in said)
    assert (error is None) == (odd.error is None), error
    assert odd.error is None or re.search(odd.error, error), error
    assert any(re.search(odd.warning, one) for one in said) if odd.warning else odd.error or not said
