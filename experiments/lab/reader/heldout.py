"""Documentation as collections to test on, and the scores of each window of each candidate.

Questions are titles or headings, which are taken out of the text wherever they stand; the relevant document is the page
they came from. Candidates are BM25's first 10, and only questions are asked whose page is among them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lab.reader.groups import cover_of, packed, vectors
from lab.reader.shards import QUESTION
from lab.reader.sources import Page
from torch import Tensor

from socialgraph.data import Collection, Document, Split, Tokens
from socialgraph.data.collection import ranked
from socialgraph.nn import MaxP, SentenceEncoder
from socialgraph.nn.sequences import circle_sequences

#: word pieces of a window, and of a document that are read; candidates of a question
WIDTH, LONGEST, DEPTH = 128, 3072, 10


def collection_of(name: str, pages: Iterable[Page], titles: bool, split: str = "test", each: int = 2) -> Collection:
    """Return pages as a collection.

    Args:
        name: of the collection.
        pages: its documents.
        titles: ask the titles of pages; else headings of sections, those of the longest ones of each page.
        split: of the questions.
        each: at most so many headings of a page.
    """
    pages = list(pages)
    count = Counter(heading for page in pages for heading in {page.title, *(s.heading for s in page.sections)})
    asked: dict[str, tuple[int, str]] = {}
    for number, page in enumerate(pages):
        by_length = sorted(page.sections, key=lambda section: -len(section.text))
        some = [page.title] if titles else [s.heading for s in by_length if len(s.text) > 300]
        fit = [one for one in some if 3 <= len(one.split()) <= 25 and count[one] <= (2 if titles else 1)]
        for one in fit[:each]:
            asked.setdefault(one, (number, f"{name}-{len(asked)}"))
    documents = {}
    for number, page in enumerate(pages):
        lines = [line for s in page.sections for line in (s.heading, *s.text.split("\n")) if line]
        kept = [line for line in lines if re.sub(r"^[A-Z\d]*\d[.\d]* ", "", line.strip()) not in asked]
        documents[f"{name}/{number}"] = Document(f"{name}/{number}", "\n".join(kept))
    queries = {query_id: text for text, (_, query_id) in asked.items()}
    qrels = {query_id: {f"{name}/{number}": 1} for number, query_id in asked.values()}
    return Collection(name, documents, {split: Split(queries, qrels)})


@dataclass
class Candidates:
    """Questions and their candidates as word pieces.

    Attributes:
        asked: word pieces of all questions.
        asked_length: of each question, ``[Q]``.
        tokens: word pieces of all documents that are a candidate.
        length: of each document, ``[D]``.
        document: rows of each question's candidates, ``[Q, DEPTH]``; -1 where there are fewer.
        first_stage: BM25's scores of them.
        relevant: which are relevant.
    """

    asked: np.ndarray
    asked_length: np.ndarray
    tokens: np.ndarray
    length: np.ndarray
    document: np.ndarray
    first_stage: np.ndarray
    relevant: np.ndarray

    @classmethod
    def of(cls, collection: Collection, split: Split) -> Candidates:
        """Return the questions of a split, which has candidates."""
        pieces, candidates = Tokens("minilm", LONGEST, QUESTION), split.candidates or {}
        asked = [pieces.query(text).numpy().astype(np.uint16) for text in split.queries.values()]
        best = [ranked(candidates[query])[:DEPTH] for query in split.queries]
        ids = sorted({one for some in best for one in some})
        row = {document_id: number for number, document_id in enumerate(ids)}
        texts = [text.numpy().astype(np.uint16) for text in pieces.documents(ids, collection.documents)]
        document = np.full((len(asked), DEPTH), -1, np.int32)
        score, relevant = np.zeros(document.shape, np.float32), np.zeros(document.shape, bool)
        for q, (query, some) in enumerate(zip(split.queries, best, strict=True)):
            document[q, : len(some)] = [row[one] for one in some]
            score[q, : len(some)] = [candidates[query][one] for one in some]
            relevant[q, : len(some)] = [split.qrels[query].get(one, 0) > 0 for one in some]
        lengths = (np.array([len(one) for one in many], np.int32) for many in (asked, texts))
        a, t = lengths
        return cls(np.concatenate(asked), a, np.concatenate(texts), t, document, score, relevant)

    def head(self, amount: int) -> Candidates:
        """Return the first questions, and the documents that are candidates of theirs."""
        document = self.document[:amount]
        used = np.unique(document[document >= 0])
        ptr = np.cumsum([0, *self.length])
        row = np.zeros(len(self.length), np.int32)
        row[used] = np.arange(len(used))
        return Candidates(
            self.asked[: self.asked_length[:amount].sum()], self.asked_length[:amount],
            np.concatenate([self.tokens[ptr[one] : ptr[one + 1]] for one in used]), self.length[used],
            np.where(document >= 0, row[document], -1), self.first_stage[:amount], self.relevant[:amount],
        )  # fmt: skip

    def write(self, file: Path) -> None:
        """Write to a file."""
        np.savez_compressed(file, **{part.name: getattr(self, part.name) for part in fields(self)})

    @classmethod
    def read(cls, file: Path) -> Candidates:
        """Read what :meth:`write` wrote."""
        with np.load(file, allow_pickle=False) as arrays:
            return cls(**{part.name: arrays[part.name] for part in fields(cls)})


@dataclass
class Windows:
    """The windows of all pairs of a question and a candidate, pair by pair."""

    tokens: Tensor
    ptr: Tensor  # bounds of the windows of documents
    window: Tensor  # of each pair's windows, the row of ptr
    question: Tensor  # and the question
    place: Tensor  # and the number of the window in its document
    pair: Tensor  # and the pair, q * DEPTH + candidate
    asked: Tensor
    asked_ptr: Tensor


def windows_of(candidates: Candidates, device: torch.device) -> Windows:
    """Cut all candidates into windows."""
    count = np.maximum(1, -(-candidates.length // WIDTH))
    first = np.cumsum([0, *count])
    sizes = np.full(first[-1], WIDTH)
    sizes[first[1:] - 1] = candidates.length - (count - 1) * WIDTH
    pairs = np.flatnonzero(candidates.document.ravel() >= 0)
    document = candidates.document.ravel()[pairs]
    pair = np.repeat(pairs, count[document])
    place = np.arange(len(pair)) - np.repeat(np.cumsum(count[document]) - count[document], count[document])
    window = np.repeat(first[document], count[document]) + place
    arrays = (
        candidates.tokens.astype(np.int64), np.cumsum([0, *sizes]), window, pair // DEPTH, place, pair,
        candidates.asked.astype(np.int64), np.cumsum([0, *candidates.asked_length]),
    )  # fmt: skip
    return Windows(*(torch.from_numpy(x).to(device) for x in arrays))


@torch.no_grad()
def encoder_scores(encoder: SentenceEncoder, windows: Windows, batch: int) -> Tensor:
    """Return the cosine of each pair's windows."""
    asked = vectors(encoder, windows.asked, windows.asked_ptr, batch)
    passages = vectors(encoder, windows.tokens, windows.ptr, batch)
    return (asked[windows.question] * passages[windows.window]).sum(1)


@torch.no_grad()
def cover_scores(windows: Windows) -> Tensor:
    """Return the share of BM25 of each pair's windows."""
    cover = cover_of(windows.tokens, windows.ptr, windows.asked, windows.asked_ptr)
    return cover[windows.question, windows.window]


@torch.no_grad()
def reader_scores(model: MaxP, windows: Windows, batch: int) -> Tensor:
    """Return the reader's score of each pair's windows."""
    size = windows.ptr.diff()[windows.window]
    result = torch.empty(len(size), device=size.device)
    for some in size.argsort().split(batch):
        graph = packed(windows.tokens, windows.ptr, windows.window[some])
        question = windows.question[some]
        graph.query_length = windows.asked_ptr.diff()[question]
        graph.query_ids = packed(windows.asked, windows.asked_ptr, question).input_ids
        graph.passage_mask = torch.ones(len(some), dtype=torch.bool, device=size.device)
        sequences = circle_sequences(graph, model.cls_token_id, model.sep_token_id, leader="cls")
        with torch.autocast(size.device.type, torch.bfloat16):
            states = model.leaders(sequences)
        result[some] = model.score(states.float()).squeeze(-1)
    return result


def document_scores(scores: np.ndarray, windows: Windows, shape: tuple[int, int], **reading: Any) -> np.ndarray:
    """Return the best window's score of each pair, ``[Q, DEPTH]``; -inf where there is no candidate.

    Args:
        scores: of each pair's windows.
        windows: all windows.
        shape: of the result.
        reading: ``first=n``: of the first n windows; ``best=n, cover=...``: of the n windows that BM25 ranks highest.
    """
    pair, place = windows.pair.cpu().numpy(), windows.place.cpu().numpy()
    kept = place < reading["first"] if "first" in reading else np.ones(len(pair), bool)
    if "best" in reading:
        order = np.lexsort((place, -reading["cover"], pair))
        start = np.searchsorted(pair[order], pair[order])
        kept = np.zeros(len(pair), bool)
        kept[order] = np.arange(len(pair)) - start < reading["best"]
    result = np.full(shape, -np.inf, np.float32)
    np.maximum.at(result.reshape(-1), pair[kept], scores[kept])
    return result


def scaled(scores: np.ndarray) -> np.ndarray:
    """Return each question's scores scaled to [0, 1]; 0 where all are equal."""
    real = np.isfinite(scores)
    low = np.where(real, scores, np.inf).min(1, keepdims=True)
    high = np.where(real, scores, -np.inf).max(1, keepdims=True)
    wide = np.where(high > low, high - low, 1.0)
    return np.where(real, (scores - low) / wide, -np.inf)


def reciprocal_ranks(scores: np.ndarray, candidates: Candidates) -> np.ndarray:
    """Return 1 / rank of each question's first relevant candidate; of equals, the first stage's first is first."""
    order = np.argsort(-scores, axis=1, kind="stable")
    found = np.take_along_axis(candidates.relevant, order, 1)
    return np.where(found.any(1), 1 / (found.argmax(1) + 1), 0.0)
