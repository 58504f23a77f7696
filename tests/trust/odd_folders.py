"""Folders of a collection with the mistakes that people make, what is typed, and what is said."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from typing import Any, NamedTuple

from commands import WORDS

SPLITS = {"train": WORDS[:2], "dev": WORDS[2:3], "test": WORDS[3:]}
TEXTS = {word: f"{word} w20 w41 w{50 + place}" for place, word in enumerate(WORDS)}


def lines(*entries: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def corpus(change: Callable[[str], dict[str, Any]]) -> dict[str, bytes]:
    """Return a corpus in which each document is changed, by its id."""
    return {"corpus.jsonl": lines(*({"doc_id": word, "text": TEXTS[word]} | change(word) for word in WORDS))}


def queries(split: str) -> bytes:
    return "".join(f"q-{word}\t{word} w20\n" for word in SPLITS[split]).encode()


def qrels(split: str) -> bytes:
    return "".join(f"q-{word} 0 {word} 1\n" for word in SPLITS[split]).encode()


def runs(score: Callable[[int], float] = lambda place: 9 - place, which: slice = slice(None)) -> dict[str, bytes]:
    """Return candidates for all splits, by the scores of their places; the relevant one comes first."""
    files = {}
    for split, words in SPLITS.items():
        there = {word: [word, *(one for one in WORDS if one != word)] for word in words}
        ranked = {word: some[which] for word, some in there.items()}
        files[f"run.bm25.{split}.txt"] = "".join(
            f"q-{word} Q0 {one} {place + 1} {score(place)} t\n"
            for word in words
            for place, one in enumerate(ranked[word])
        ).encode()
    return files


GOOD: dict[str, Any] = corpus(lambda word: {})
GOOD |= {f"queries.{split}.tsv": queries(split) for split in SPLITS}
GOOD |= {f"qrels.{split}.txt": qrels(split) for split in SPLITS}


def tar(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as packed:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        packed.addfile(entry, io.BytesIO(content))
    return file.getvalue()


class Odd(NamedTuple):
    """Files that are other than those of :data:`GOOD`, and what is said: as an error, or as a warning."""

    files: dict[str, Any]
    error: str | None = None
    warning: str | None = None
    typed: tuple[str, ...] = ()


UNJUDGED = "split test: none of the 3 queries that are ranked is judged, so nothing can be measured; .* qrels.test.txt"
LEFT_OUT = "qrels.test.txt: . queries that this split does not have are left out"
NOT_READ = "files that are not called .* are not read: "
EQUAL = "all orders measure the same"
CASES: dict[str, Odd] = {
    "nothing is odd": Odd({}),
    "judgements of other documents": Odd(
        {"qrels.test.txt": b"q-w3 0 x 1\n"}, UNJUDGED, "1 judgements are on documents",
    ),
    "columns of judgements swapped": Odd({"qrels.test.txt": b"w3 0 q-w3 1\n"}, UNJUDGED, LEFT_OUT),
    "zeros lost": Odd(
        {"queries.test.tsv": b"001\tw3\n002\tw4\n003\tw5\n", "qrels.test.txt": b"1 0 w3 1\n"}, UNJUDGED, LEFT_OUT,
    ),
    "quoted columns": Odd(
        {"queries.test.tsv": b'"q-w3"\t"w3"\n"q-w4"\t"w4"\n"q-w5"\t"w5"\n'}, UNJUDGED, LEFT_OUT,
    ),
    "no judgements of dev": Odd({"qrels.dev.txt": None}, "split dev: none of the 1 queries"),
    "judgements called tsv": Odd(
        {"qrels.test.txt": None, "qrels.test.tsv": qrels("test")}, UNJUDGED, NOT_READ + "qrels.t",
    ),
    "judgements of a split in the plural": Odd({"qrels.tests.txt": b""}, None, NOT_READ + "qrels.tests.txt"),
    "queries called gz": Odd(
        {"queries.test.tsv": None, "queries.test.tsv.gz": gzip.compress(queries("test"))},
        "has no split 'test'; there are: dev, train", NOT_READ + "qrels.test.txt, queries.test.tsv.gz",
    ),
    "runs called trec": Odd({"run.bm25.test.trec": b"x"}, None, NOT_READ + "run.bm25.test.trec"),
    "a backup and other files": Odd({"queries.test.tsv~": b"x", "README.md": b"x", "evidence.tsv": b"x"}),
    "a corpus in a tar": Odd(
        {"corpus.jsonl": None, "corpus.jsonl.gz": tar("corpus.jsonl", GOOD["corpus.jsonl"])},
        "corpus.jsonl.gz:1: expected a JSON",
    ),
    "JSON over many lines": Odd({"corpus.jsonl": b'{\n "doc_id": "w0"\n}\n'}, "corpus.jsonl:1: expected a JSON object"),
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
    "the same text": Odd(corpus(lambda word: {"text": "w3 w4 w5 w20"})),
    "a title that is a number": Odd(corpus(lambda word: {"title": 5}), "'title' must be a string, got int '5'"),
    "candidates": Odd(runs()),
    "the relevant one is no candidate": Odd(runs(which=slice(1, None)), None, f"split test: no query has .*{EQUAL}"),
    "distances as scores": Odd(runs(lambda place: 1 + place), None, "scores of the first query rise .* last document"),
    "equal scores": Odd(runs(lambda place: 1)),
    "grades of 0": Odd({"qrels.test.txt": qrels("test").replace(b" 1\n", b" 0\n")}, None, f"split test: .*{EQUAL}"),
    "queries of the training in the test": Odd(
        {"queries.test.tsv": queries("test") + queries("train")}, None,
        "2 queries have ids of the training's: q-w0, q-w1",
    ),
    "tested on what is trained": Odd(
        {}, None, "models are trained on the queries that test", ("data.splits.train=test",),
    ),
    "tested on dev": Odd({}, None, "weight of the first stage is chosen on the queries", ("data.splits.dev=test",)),
    "candidates of nobody": Odd(
        {},
        r"no run.nobody.<split>.txt\[.gz\]; there are no runs", None, ("data.candidates=nobody",),
    ),
    "test alone, and nothing asked of dev": Odd(
        {name: None for name in GOOD if "train" in name or "dev" in name}, None, None, ("data.queries.dev=0",),
    ),
    "a query that nobody judged": Odd(
        {"queries.test.tsv": queries("test") + b"q-x\tw0 w20\n"}, None,
        "1 of the 4 queries that are ranked are not judged and count nowhere: q-x",
    ),
}  # fmt: skip
