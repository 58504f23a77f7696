"""What the reader learns from, cut from the documents of a collection.

Four collections are mixed. Of each only documents that are relevant to no dev or test question are cut into passages,
and only training questions are asked, so that nothing of a dev or test split is seen. A collection becomes a
:class:`~lab.reader.pool.Pool`:

* **Windows**: every document is cut at random places into windows of 48 to 192 word pieces, which do not overlap.
* **Circles**: passages whose words are not contiguous, so that the reader can read friend circles later: friend circles
  of the document's graph, and random spans of it, in document order.
* **Questions**: the training questions, each with the place of its evidence, and questions made from the text itself: a
  sentence, or a few rare words, of a passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from lab.reader.pool import Ints, Pool, Question, cover_of, vectors
from tqdm import tqdm

from socialgraph.data import Cache, Collection, GraphBuilder, TermStatistics, Tokens
from socialgraph.data.evidence import Evidence
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import InputError
from socialgraph.partition import EdgeCircles

#: word pieces of a window, from and to
WINDOW = (48, 192)
#: word pieces of a document that are read
LONGEST = 4096


def make_pool(
    collection: Collection, evidence: dict[str, Evidence], folder: Path, seed: int = 0, made_up: int = 4000
) -> Pool:
    """Cut a collection's training documents into passages, embed them, and collect its questions.

    Args:
        collection: with the split "train", whose questions are asked.
        evidence: query id -> place of its answer.
        folder: where vectors are kept.
        seed: of the cuts.
        made_up: questions made from the text.

    Raises:
        InputError: there is no passage, or no question, to learn from.
    """
    rng = np.random.default_rng(seed)
    held_out = collection.held_out_documents()
    ids = [document_id for document_id in sorted(collection.documents) if document_id not in held_out]
    pieces = Tokens("minilm", LONGEST, cache=Cache.on_disk())
    texts = [text.numpy().astype(np.int64) for text in pieces.documents(ids, collection.documents)]
    questions = _asked(collection, evidence, ids, pieces)
    passages = list(_windows(texts, rng))
    windows = len(passages)
    passages += list(_spans(texts, rng))
    passages += list(_friends(collection, ids, questions))
    if not passages:
        told = "every document is empty or answers a dev or test question"
        raise InputError(f"{collection.name}: nothing to learn from: {told}")
    tokens = np.concatenate([texts[d][places] for d, places in passages])
    ptr = np.cumsum([0, *(len(places) for _, places in passages)])
    words = [pieces.tokenizer.decode(texts[d][places]) for d, places in passages]
    questions += list(_made_up(words[:windows], pieces, made_up, rng))
    if not questions:
        raise InputError(
            f"{collection.name}: no question to learn from: evidence.tsv knows the answer of none of the split train; "
            "made_up=1000 makes some from the text"
        )
    cover, asked = cover_of(words, [question.text for question in questions])
    return Pool(
        collection.name, tokens, np.concatenate([places for _, places in passages]), ptr,
        np.array([d for d, _ in passages]), np.arange(len(passages)) < windows, questions,
        vectors([texts[d][places] for d, places in passages], folder),
        vectors([np.array(question.ids) for question in questions], folder),
        cover, asked,
    )  # fmt: skip


def _asked(
    collection: Collection, evidence: dict[str, Evidence], ids: list[str], pieces: Tokens
) -> list[Question]:  # fmt: skip
    """Return the questions whose evidence is known and lies in one of the documents."""
    row = {document_id: number for number, document_id in enumerate(ids)}
    questions = []
    for query_id, text in collection["train"].queries.items():
        asked, place = pieces.query(text).tolist(), evidence.get(query_id)
        if place is not None and place.document_id in row and asked:
            place = place.in_full_text(collection.documents[place.document_id], pieces)
            questions.append(Question(text, asked, row[place.document_id], place.start, place.end))
    return questions


def _windows(texts: list[Ints], rng: np.random.Generator) -> Iterator[tuple[int, Ints]]:
    """Yield (document, places): every document cut at random places."""
    for document, text in enumerate(texts):
        start = 0
        while start < len(text):
            end = min(len(text), start + int(rng.integers(*WINDOW)))
            if end - start >= 16 or start == 0:
                yield document, np.arange(start, end)
            start = end


def _spans(texts: list[Ints], rng: np.random.Generator, each: int = 3) -> Iterator[tuple[int, Ints]]:
    """Yield (document, places): short spans from a wider part of the document, in document order."""
    for document, text in enumerate(texts):
        for _ in range(min(each, len(text) // 256)):
            size, run = int(rng.integers(*WINDOW)), int(rng.integers(1, 12))
            reach = min(len(text), size * int(rng.integers(2, 8)))
            first = int(rng.integers(0, len(text) - reach + 1))
            starts = rng.choice(reach, size=max(1, min(reach, size // run)), replace=False)
            places = np.unique((starts[:, None] + np.arange(run)).clip(max=reach - 1)) + first
            yield document, places


def _friends(
    collection: Collection, ids: list[str], questions: list[Question], most: int = 900, k: int = 8
) -> Iterator[tuple[int, Ints]]:
    """Yield (document, places): friend circles of the graphs of questions and their documents, one for a document."""
    tokens = Tokens("minilm", max_document_length=min(LONGEST, 2048))
    documents = {document_id: collection.documents[document_id] for document_id in ids}
    statistics = TermStatistics.of(tokens, documents)
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()], sparsity=0.93)
    builder = GraphBuilder(documents, tokens, statistics, edges, EdgeCircles(k=k))
    first: dict[int, Question] = {}
    for question in questions:
        first.setdefault(question.document, question)
    chosen = list(first.items())[:most]
    for start in tqdm(range(0, len(chosen), 4), f"{collection.name}: circles", leave=False, disable=None):
        pairs = chosen[start : start + 4]
        batch = builder([(str(d), question.text, ids[d]) for d, question in pairs])
        node, circle = batch.circle_index.numpy()
        owner = batch.batch[batch.leader_index].numpy()
        for c in range(len(owner)):
            members = node[circle == c]
            if len(members) >= 16:
                yield pairs[owner[c]][0], members - int(batch.ptr[owner[c]])


def _made_up(words: list[str], pieces: Tokens, count: int, rng: np.random.Generator) -> Iterator[Question]:
    """Yield questions made from windows: half a sentence of one, half a few of its long words."""
    for number in rng.choice(len(words), size=min(count, len(words)), replace=False):
        if rng.random() < 0.5:
            phrases = [s.strip() for s in re.split(r"[.!?;|]\s", words[number]) if 5 <= len(s.split()) <= 24]
        else:
            long = list(dict.fromkeys(re.findall(r"[a-z]{5,}", words[number])))
            phrases = [" ".join(rng.permutation(long)[: int(rng.integers(2, 5))])] if len(long) >= 4 else []
        if phrases:
            text = str(phrases[int(rng.integers(len(phrases)))])
            # shown three times out of ten: a copy is easy, but the reader should know one
            yield Question(text, pieces.query(text).tolist(), hidden=int(number) if rng.random() < 0.7 else -1)
