"""What the reader learns from: passages of training documents, questions about them, and two teachers' scores.

Four collections are mixed. Of each only documents that are relevant to no dev or test question are cut into passages,
and only training questions are asked, so that nothing of a dev or test split is seen. A collection becomes a
:class:`Pool`:

* **Windows**: every document is cut at random places into windows of 48 to 192 word pieces, which do not overlap.
* **Circles**: passages whose words are not contiguous, so that the reader can read friend circles later: friend circles
  of the document's graph, and random spans of it, in document order.
* **Questions**: the training questions, each with the place of its evidence, and questions made from the text itself: a
  sentence, or a few rare words, of a passage.

The teacher's score of question q and passage p is

    t(q, p) = COSINE * cos(q, p) + COVER * BM25(q, p) / (largest possible BM25 of q)

with the sentence encoder's cosine; a passage that holds the evidence gets up to LABEL more, by how much of the evidence
it holds (or how much of it is evidence).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bm25s
import numpy as np
import numpy.typing as npt
import scipy.sparse
import Stemmer
import torch
from bm25s.tokenization import Tokenizer
from torch_geometric.data import Data
from tqdm import tqdm

from socialgraph.data import Collection, GraphBuilder, TermStatistics, Tokens
from socialgraph.data.evidence import Evidence
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.nn import SentenceEncoder
from socialgraph.nn.sequences import passage_sequences
from socialgraph.partition import EdgeCircles

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

#: the teacher's weights, see above
COSINE, COVER, LABEL = 12.0, 6.0, 4.0
#: word pieces of a window, from and to
WINDOW = (48, 192)
#: word pieces of a document that are read
LONGEST = 4096
#: BM25's parameters, over passages
K1, B = 0.9, 0.4


@dataclass
class Question:
    """A question of a pool: its word pieces, and the place of its evidence where that is known."""

    text: str
    ids: list[int]
    document: int = -1  # row among the pool's documents
    start: int = 0  # word pieces of the whole document, from here
    end: int = 0  # ... to before here; 0 where the place is not known
    hidden: int = -1  # the passage it was made from, which is not shown with it


@dataclass
class Pool:
    """Passages and questions of one collection, with what the teachers need.

    Attributes:
        name: of the collection.
        tokens: word pieces of passage p are ``tokens[ptr[p] : ptr[p + 1]]``.
        places: where in its document each of them stands.
        ptr: bounds of the passages.
        document: each passage's document.
        is_window: whether a passage's words are contiguous.
        questions: see :class:`Question`.
        passage_vectors: the sentence encoder's, of length 1.
        question_vectors: likewise.
        cover: BM25 of each word (column) in each passage (row).
        asked: of each question (row) the words (columns): 1 / the sum of their idf, which is the largest BM25.
    """

    name: str
    tokens: Ints
    places: Ints
    ptr: Ints
    document: Ints
    is_window: npt.NDArray[np.bool_]
    questions: list[Question]
    passage_vectors: Floats
    question_vectors: Floats
    cover: scipy.sparse.csc_matrix
    asked: scipy.sparse.csr_matrix

    @property
    def asked_by_people(self) -> int:
        """Number of questions with evidence; they stand before those made from the text."""
        return sum(question.end > 0 for question in self.questions)

    def passage(self, number: int) -> Ints:
        """Return the word pieces of a passage."""
        return self.tokens[self.ptr[number] : self.ptr[number + 1]]

    def teacher(self, number: int, among: Ints) -> tuple[Floats, Floats]:
        """Return the teacher's score of a question for some passages, and the share of evidence that each holds."""
        row = self.asked[number]
        cover = np.asarray(self.cover[:, row.indices] @ row.data).ravel()[among].astype(np.float32)
        cosine = self.passage_vectors[among] @ self.question_vectors[number]
        return COSINE * cosine + COVER * cover, self.held(number, among)

    def held(self, number: int, among: Ints) -> Floats:
        """Return how much of the evidence each passage holds, or how much of the passage is evidence: the larger."""
        question = self.questions[number]
        share = np.zeros(len(among), np.float32)
        if question.end == 0:
            return share
        for place in np.flatnonzero(self.document[among] == question.document):
            p = among[place]
            where = self.places[self.ptr[p] : self.ptr[p + 1]]
            inside = np.count_nonzero((where >= question.start) & (where < question.end))
            share[place] = inside / max(1, min(len(where), question.end - question.start))
        return share


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
    """
    rng = np.random.default_rng(seed)
    held_out = collection.held_out_documents()
    ids = [document_id for document_id in sorted(collection.documents) if document_id not in held_out]
    pieces = Tokens.stored(collection.documents, "minilm", LONGEST)
    texts = [text.numpy().astype(np.int64) for text in pieces.documents(ids, collection.documents)]
    questions = _asked(collection, evidence, ids, pieces)
    passages = list(_windows(texts, rng))
    windows = len(passages)
    passages += list(_spans(texts, rng))
    passages += list(_friends(collection, ids, questions))
    tokens = np.concatenate([texts[d][places] for d, places in passages])
    ptr = np.cumsum([0, *(len(places) for _, places in passages)])
    words = [pieces.tokenizer.decode(texts[d][places]) for d, places in passages]
    questions += list(_made_up(words[:windows], pieces, made_up, rng))
    cover, asked = _bm25(words, [question.text for question in questions])
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


# ---- passages -------------------------------------------------------------------------------------------------------


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


# ---- the teachers ---------------------------------------------------------------------------------------------------


@torch.no_grad()
def vectors(texts: list[Ints], folder: Path | None = None, batch: int = 64) -> Floats:
    """Return the sentence encoder's vectors, of length 1; kept in a file that is named by what they are of."""
    digest = hashlib.sha256(b"".join([text.astype(np.int32).tobytes() + b"." for text in texts])).hexdigest()[:16]
    file = None if folder is None else folder / "vectors" / f"{digest}.npy"
    if file is not None and file.exists():
        return np.load(file, allow_pickle=False).astype(np.float32)
    model = SentenceEncoder.from_backbone("minilm").eval()
    order = np.argsort([len(text) for text in texts], kind="stable")
    result = np.zeros((len(texts), model.token_size), np.float32)
    for start in tqdm(range(0, len(order), batch), "sentence vectors", leave=False, disable=None):
        some = order[start : start + batch]
        graph = as_circles([texts[i] for i in some])
        graph.query_length = torch.ones(len(some), dtype=torch.long)
        with torch.autocast("cpu", torch.bfloat16):
            result[some] = model.vectors(passage_sequences(graph, model.cls_token_id, model.sep_token_id)).numpy()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, result.astype(np.float16), allow_pickle=False)
    return result


def as_circles(texts: list[Ints]) -> Data:
    """Return texts as circles of a graph, each of a document of its own; the first word leads."""
    size = torch.tensor([len(text) for text in texts])
    circle = torch.repeat_interleave(size)
    return Data(
        input_ids=torch.from_numpy(np.concatenate(texts)), batch=circle, leader_index=size.cumsum(0) - size,
        circle_index=torch.stack([torch.arange(len(circle)), circle]),
    )  # fmt: skip


def _bm25(passages: list[str], questions: list[str]) -> tuple[scipy.sparse.csc_matrix, scipy.sparse.csr_matrix]:
    """Return BM25 of words in passages, ``[passages, words]``, and each question's words, by its largest BM25."""
    words = Tokenizer(stopwords="english", stemmer=Stemmer.Stemmer("english"))
    held = words.tokenize(passages, update_vocab=True, return_as="tuple", show_progress=False)
    index = bm25s.BM25(k1=K1, b=B, method="lucene")
    index.index(held, show_progress=False)
    scores = index.scores
    shape = len(passages), len(scores["indptr"]) - 1
    cover = scipy.sparse.csc_matrix((scores["data"], scores["indices"], scores["indptr"]), shape)
    frequency = np.diff(scores["indptr"])  # passages with a word; its BM25 stays below its idf
    idf = np.log1p((len(passages) - frequency + 0.5) / (frequency + 0.5))
    asked = scipy.sparse.lil_matrix((len(questions), shape[1]), dtype=np.float32)
    listed = words.tokenize(questions, update_vocab=False, return_as="ids", show_progress=False)
    for row, ids in enumerate(listed):
        known = sorted({word for word in ids if word < shape[1]})
        asked[row, known] = 1 / max(idf[known].sum(), 1e-9)
    return cover, asked.tocsr()
