"""A collection as the reader learns it: passages, questions about them, and what three teachers say of each pair.

Of question q and passage p they say

    cosine:    the sentence encoder's cos(q, p)
    cover:     BM25(q, p) / (largest possible BM25 of q)
    evidence:  how much of the evidence p holds, or how much of p is evidence: the larger; 0 where it is not known
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse
import Stemmer
import torch
from torch_geometric.data import Data
from tqdm import tqdm

from socialgraph.data.files import atomic_write
from socialgraph.lexical import Tokenizer, bm25s
from socialgraph.nn import SentenceEncoder
from socialgraph.nn.sequences import passage_sequences

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

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

    def teachers(self, number: int, among: Ints) -> tuple[Floats, Floats, Floats]:
        """Return cosine, cover and evidence of a question and some passages, see the top of this file."""
        row = self.asked[number]
        cover = np.asarray(self.cover[:, row.indices] @ row.data).ravel()[among].astype(np.float32)
        cosine = self.passage_vectors[among] @ self.question_vectors[number]
        return cosine, cover, self.evidence(number, among)

    def evidence(self, number: int, among: Ints) -> Floats:
        """Return the share of evidence of some passages."""
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


@torch.no_grad()
def vectors(texts: list[Ints], folder: Path, batch: int = 64) -> Floats:
    """Return the sentence encoder's vectors, of length 1; kept in a file that is named by what they are of."""
    digest = hashlib.sha256(b"".join([text.astype(np.int32).tobytes() + b"." for text in texts])).hexdigest()[:16]
    file = folder / "vectors" / f"{digest}.npy"
    if file.exists():
        return np.load(file, allow_pickle=False).astype(np.float32)
    model = SentenceEncoder.from_backbone("minilm").eval()
    order = np.argsort([len(text) for text in texts], kind="stable")
    result = np.zeros((len(texts), model.hidden_size), np.float32)
    for start in tqdm(range(0, len(order), batch), "sentence vectors", leave=False, disable=None):
        some = order[start : start + batch]
        graph = as_circles([texts[i] for i in some])
        graph.query_length = torch.ones(len(some), dtype=torch.long)
        with torch.autocast("cpu", torch.bfloat16):
            result[some] = model.vectors(passage_sequences(graph, model.cls_token_id, model.sep_token_id)).numpy()
    kept = result.astype(np.float16)
    with atomic_write(file, "wb") as handle:
        np.save(handle, kept, allow_pickle=False)
    return kept.astype(np.float32)  # as they will be read again: a resumed training has the same teacher


def as_circles(texts: list[Ints]) -> Data:
    """Return texts as circles of a graph, each of a document of its own; the first word leads."""
    size = torch.tensor([len(text) for text in texts])
    circle = torch.repeat_interleave(size)
    return Data(
        input_ids=torch.from_numpy(np.concatenate(texts)), batch=circle, leader_index=size.cumsum(0) - size,
        circle_index=torch.stack([torch.arange(len(circle)), circle]),
    )  # fmt: skip


def cover_of(passages: list[str], questions: list[str]) -> tuple[scipy.sparse.csc_matrix, scipy.sparse.csr_matrix]:
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
