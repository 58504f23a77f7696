"""Documents and questions as word pieces, in files that are small enough to send to a machine with a GPU.

A :class:`Shard` is what hard negatives are looked for in: documents of one source, and questions of which it is known
where in which document the answer stands. Of a page of documentation questions are made like this, and what is asked is
taken out of the text:

* a heading, alone or behind the page's title: answered by the section below it;
* a sentence of a longer section, or a few of its words: answered by that section.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from lab.reader.sources import Page

from socialgraph.backbone import load_tokenizer
from socialgraph.data.batches import batches
from socialgraph.data.files import atomic_write

Ints = npt.NDArray[np.int64]

#: word pieces of a question, and of a shard, at most
QUESTION, SHARD = 40, 1_500_000
#: a heading that stands in more sections of a source says nothing by itself
GENERIC = 4


@dataclass
class Shard:
    """Documents, one after the other, and questions about them.

    Attributes:
        tokens: word pieces of all documents.
        document_length: of each document, ``[D]``.
        asked: word pieces of all questions.
        asked_length: of each question, ``[Q]``.
        document: the row of each question's document.
        start: in its document, where the answer begins.
        end: before where it ends; 0 where it is not known.
        circle: word pieces of friend circles, as places in ``tokens``; one circle after the other.
        circle_length: of each circle.
    """

    tokens: Ints
    document_length: Ints
    asked: Ints
    asked_length: Ints
    document: Ints
    start: Ints
    end: Ints
    circle: Ints
    circle_length: Ints

    def write(self, file: Path) -> None:
        """Write to a file, compressed."""
        with atomic_write(file, "wb") as out:
            np.savez_compressed(out, **vars(self))

    @classmethod
    def read(cls, file: Path) -> Shard:
        """Read what :meth:`write` wrote."""
        with np.load(file, allow_pickle=False) as arrays:
            return cls(**arrays)


@dataclass
class Text:
    """A document in pieces, and its questions: (text, first piece of the answer, before its last piece)."""

    pieces: list[str]
    questions: list[tuple[str, int, int]]


def ask(page: Page, generic: set[str], rng: np.random.Generator) -> Text:
    """Return a page as a text with questions; see the top of this file."""
    text = Text([], [])
    for section in page.sections:
        first, asked, heading = len(text.pieces), list[str](), section.heading
        if 2 <= len(heading.split()) <= 40 and heading not in generic and rng.random() < 0.85:
            asked.append(heading if rng.random() < 0.7 or heading == page.title else f"{page.title} {heading}")
        elif heading:
            text.pieces.append(heading)
            if heading in generic and rng.random() < 0.2:
                asked.append(f"{page.title} {heading}")
        body = section.text
        if len(body) > 500 and rng.random() < 0.6:
            sentence, body = take_sentence(body, rng)
            asked += [sentence] if sentence else []
        if body.strip():
            text.pieces.append(body)
            text.questions += [(question, first, len(text.pieces)) for question in asked]
    return text


def take_sentence(text: str, rng: np.random.Generator) -> tuple[str, str]:
    """Return a sentence, three times out of ten only some of its words, and the text without it."""
    found = [m for m in re.finditer(r"(?<=[.!?]\s)[A-Z][^.!?|\n]{40,220}[.?!](?=\s)", text)]
    if not found:
        return "", text
    sentence = found[int(rng.integers(len(found)))]
    asked, rest = sentence[0], text[: sentence.start()] + text[sentence.end() :]
    long = list(dict.fromkeys(re.findall(r"\w{5,}", asked)))
    if rng.random() < 0.3 and len(long) >= 3:
        asked = " ".join(rng.permutation(long)[: int(rng.integers(2, 6))])
    return asked, rest


def texts_of(pages: Iterable[Page], seed: int = 0) -> Iterator[Text]:
    """Yield the pages of a source as texts with questions; what many of them ask says nothing and is left out."""
    rng, pages = np.random.default_rng(seed), list(pages)
    count = Counter(section.heading for page in pages for section in page.sections)
    generic = {heading for heading, often in count.items() if often >= GENERIC}
    texts = [ask(page, generic, rng) for page in pages]
    often = Counter(question for text in texts for question, _, _ in text.questions)
    for text in texts:
        if text.pieces:
            yield Text(text.pieces, [one for one in text.questions if often[one[0]] < GENERIC])


def shards_of(texts: Iterable[Text], size: int = SHARD) -> Iterator[Shard]:
    """Yield texts as shards of about so many word pieces; one without a question is left out."""
    tokenizer = load_tokenizer("minilm").backend_tokenizer
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # word pieces of English documentation have about four characters
    for some in batches(texts, lambda text: sum(map(len, text.pieces)), 4 * size):
        shard = tokenised(list(some), tokenizer)
        if len(shard.document):
            yield shard


def tokenised(texts: list[Text], tokenizer: Any) -> Shard:
    """Return texts as a shard."""
    encode = tokenizer.encode_batch_fast
    pieces = [one.ids for one in encode([piece for text in texts for piece in text.pieces], add_special_tokens=False)]
    asked = [one.ids for one in encode([q for t in texts for q, _, _ in t.questions], add_special_tokens=False)]
    length = np.array([len(piece) for piece in pieces])
    rows = np.repeat(np.arange(len(texts)), [len(text.pieces) for text in texts])
    ends = np.cumsum(length)
    first = np.cumsum([0] + [len(text.pieces) for text in texts])
    begin = np.concatenate([[0], ends])
    where = np.array([
        (row, begin[first[row] + a] - begin[first[row]], begin[first[row] + b] - begin[first[row]])
        for row, text in enumerate(texts) for _, a, b in text.questions
    ]).reshape(-1, 3)  # fmt: skip
    kept = np.array([len(ids) > 0 for ids in asked], bool) & (where[:, 2] > where[:, 1])
    asked = [ids[:QUESTION] for ids, keep in zip(asked, kept, strict=True) if keep]
    empty = np.zeros(0, np.int64)
    return Shard(
        np.concatenate([np.array(piece, np.int64) for piece in pieces]), np.bincount(rows, length).astype(np.int64),
        np.concatenate([empty, *(np.array(ids) for ids in asked)]), np.array([len(ids) for ids in asked], np.int64),
        *where[kept].T.astype(np.int64), empty, empty,
    )  # fmt: skip
