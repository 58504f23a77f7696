"""From a source's contents to a folder that :func:`socialgraph.data.load_folder` reads.

Beside the files that it names there are ``evidence.tsv.gz`` (where a question's answer stands), ``LICENSE``,
``NOTICE``, and what the source adds. Lengths and places are in word pieces of ``text`` alone, without title and special
tokens.
"""

from __future__ import annotations

import json
import logging
import shutil
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from socialgraph.backbone import OFFLINE, load_tokenizer
from socialgraph.data.collection import Document, Queries, Run
from socialgraph.data.files import atomic_write
from socialgraph.data.sources.source import BOUNDS, Contents, Question, Source, bucket, sha1
from socialgraph.data.trec import write_qrels

logger = logging.getLogger(__name__)

#: candidates for each question
DEPTH = 100


class FirstStage(Protocol):
    """What finds the candidates, such as :class:`socialgraph.ranking.BM25`."""

    def fit(self, documents: Mapping[str, Document]) -> Self:
        """Index the documents."""

    def retrieve(self, queries: Queries, k: int) -> Run:
        """Return for each query its best documents, best first."""


class Pieces:
    """Where each document's word pieces begin and end, in characters of its text."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        encode = load_tokenizer(OFFLINE).backend_tokenizer  # BERT's, uncased; whole texts, no special tokens
        encode.no_truncation()
        encode.no_padding()
        texts = [document.text for document in documents.values()]
        self._offsets = {
            doc_id: encoding.offsets
            for doc_id, encoding in zip(documents, encode.encode_batch(texts, add_special_tokens=False), strict=True)
        }
        self.lengths = {doc_id: len(offsets) for doc_id, offsets in self._offsets.items()}

    def span(self, question: Question) -> tuple[int, int] | None:
        """Return the question's place in word pieces, end excluded."""
        if question.place is None:
            return None
        offsets = self._offsets[question.doc_id]
        start = bisect_right(offsets, question.place[0], key=lambda one: one[1])  # the first that ends after it
        return start, bisect_left(offsets, question.place[1], key=lambda one: one[0])


def write_folder(source: Source, contents: Contents, licence: Path, folder: Path, first_stage: FirstStage) -> None:
    """Write all files of a collection.

    Args:
        source: what is made.
        contents: what was read.
        licence: the source's own file.
        folder: it is there and empty.
        first_stage: finds the candidates.
    """
    logger.info("%s: counting the word pieces of %d documents", source.name, len(contents.documents))
    pieces = Pieces(contents.documents)
    where = contents.splits(pieces.lengths)
    splits = {part: [one for one in contents.questions if where[one.doc_id] == part] for part in _PARTS}
    _write_texts(source, contents, pieces, folder)
    shutil.copyfile(licence, folder / "LICENSE")
    runs = _candidates(contents.documents, splits, first_stage)
    for part, size in source.balanced.items():
        chosen = _balanced(splits[part], pieces.lengths, runs[part] if source.only_found else None, size)
        splits[f"{part}_bal"] = chosen
        runs[f"{part}_bal"] = {one.query_id: runs[part][one.query_id] for one in chosen}
    for part, questions in splits.items():
        _write_split(part, questions, runs[part], folder)


_PARTS = ("train", "dev", "test")


def _write_texts(source: Source, contents: Contents, pieces: Pieces, folder: Path) -> None:
    corpus = "".join(json.dumps(_entry(one), ensure_ascii=False) + "\n" for one in contents.documents.values())
    _write(folder / "corpus.jsonl.gz", corpus)
    lines = ["qid\tdoc_id\tstart_tok\tend_tok\n"]
    for one in sorted(contents.questions):
        if span := pieces.span(one):
            lines.append(f"{one.query_id}\t{one.doc_id}\t{span[0]}\t{span[1]}\n")
    _write(folder / "evidence.tsv.gz", "".join(lines))
    _write(folder / "NOTICE", source.notice)
    for name, text in contents.tables.items():
        _write(folder / name, text)


def _entry(document: Document) -> dict[str, str]:
    title = {"title": document.title} if document.title else {}
    return {"doc_id": document.doc_id, **title, "text": document.text}


def _candidates(
    documents: dict[str, Document], splits: dict[str, list[Question]], first_stage: FirstStage
) -> dict[str, Run]:
    """Return the candidates of each split.

    Those of train come from an index of the documents that are relevant to no question of dev or test, so that training
    on its negatives never shows a model a document of the test.
    """
    held_out = {one.doc_id for part in ("dev", "test") for one in splits[part]}
    rest = {doc_id: document for doc_id, document in documents.items() if doc_id not in held_out}
    runs = {}
    for some, parts in ((documents, ("dev", "test")), (rest, ("train",))):
        first_stage.fit(some)
        for part in parts:
            asked = {one.query_id: one.text for one in splits[part]}
            runs[part] = fill(first_stage.retrieve(asked, DEPTH), asked, some)
    return runs


def fill(run: Run, queries: Queries, documents: Mapping[str, Any]) -> Run:
    """Return the run with documents that share no word with the query after all others, score 0, by id, up to `DEPTH`.

    So every question has as many candidates as every other.
    """
    everyone = sorted(documents)
    whole = {}
    for query_id in queries:
        scores = run.get(query_id, {})
        missing = (doc_id for doc_id in everyone if doc_id not in scores)
        extra = [doc_id for doc_id, _ in zip(missing, range(DEPTH - len(scores)), strict=False)]
        whole[query_id] = scores | dict.fromkeys(extra, 0.0)
    return whole


def _balanced(questions: list[Question], lengths: Mapping[str, int], run: Run | None, size: int) -> list[Question]:
    """Return for each bucket of the relevant document's length `size` questions, drawn by a hash of their ids."""
    chosen = []
    for number in range(len(BOUNDS) + 1):
        drawn = sorted(
            (one for one in questions if bucket(lengths[one.doc_id]) == number), key=lambda one: sha1(one.query_id)
        )
        chosen += [one for one in drawn if run is None or one.doc_id in run[one.query_id]][:size]
    return sorted(chosen)


def _write_split(part: str, questions: list[Question], run: Run, folder: Path) -> None:
    _write(folder / f"queries.{part}.tsv", "".join(f"{one.query_id}\t{one.text}\n" for one in questions))
    write_qrels(folder / f"qrels.{part}.txt", {one.query_id: {one.doc_id: 1} for one in questions})
    _write(
        folder / f"run.bm25.{part}.txt.gz",
        "".join(
            f"{query_id} Q0 {doc_id} {rank} {score:.4f} bm25\n"
            for query_id, scores in run.items()
            for rank, (doc_id, score) in enumerate(scores.items(), start=1)
        ),
    )


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text)
