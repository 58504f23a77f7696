"""Passages of a shard, what three teachers say of them, and groups of passages that the reader learns to rank.

Of question q and passage p the teachers say

    cosine:    the sentence encoder's cos(q, p)
    cover:     BM25(q, p) / (largest possible BM25 of q), over word pieces; whole words by their stems
    evidence:  how much of the answer p holds, or how much of p is answer: the larger; 0 where it is not known

and their weighted sum is what the reader learns. All is computed for whole shards at once, on a GPU if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from lab.reader.shards import Shard
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import cumsum

from socialgraph.backbone import load_tokenizer
from socialgraph.nn import SentenceEncoder
from socialgraph.nn.sequences import passage_sequences

#: word pieces of a window, from and to
WINDOW = (48, 192)
#: BM25's parameters, over passages
K1, B = 0.9, 0.4
#: passages of a group
SIZE = 8


@dataclass
class Passages:
    """Passages of a shard: windows of its documents first, then passages whose words are not contiguous.

    Attributes:
        node: the place in the shard's tokens of each word piece, passage by passage, ascending in each.
        ptr: bounds of the passages.
        document: each passage's document.
        windows: how many of them are windows.
    """

    node: Tensor
    ptr: Tensor
    document: Tensor
    windows: int


def passages_of(shard: Shard, rng: np.random.Generator, device: torch.device) -> Passages:
    """Cut documents at random places into windows, and add friend circles and random spans."""
    bounds = np.cumsum([0, *shard.document_length])
    cuts = np.cumsum(rng.integers(*WINDOW, size=1 + len(shard.tokens) * 2 // sum(WINDOW) * 2))
    edges = np.union1d(bounds, cuts[cuts < bounds[-1]])
    long = np.diff(edges) >= 16
    first, size = edges[:-1][long], np.diff(edges)[long]
    nodes = np.repeat(first - np.cumsum(size) + size, size) + np.arange(size.sum())
    spans, span_size = spans_of(bounds, max(1, len(first) // 6), rng)
    node = np.concatenate([nodes, shard.circle, spans])
    sizes = np.concatenate([size, shard.circle_length, span_size])
    ptr = np.cumsum([0, *sizes])
    document = np.searchsorted(bounds, node[ptr[:-1]], side="right") - 1
    tensors = (torch.from_numpy(x).to(device) for x in (node, ptr, document))
    return Passages(*tensors, windows=len(first))


def spans_of(bounds: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return passages of short spans from a wider part of a document: 2 to 12 words each, at random places."""
    nodes, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    long = np.flatnonzero(np.diff(bounds) >= 256)
    for run in (2, 4, 8, 12) if len(long) else ():
        amount, spans = count // 4 + 1, 96 // run
        chosen = rng.choice(long, amount)
        length = np.diff(bounds)[chosen]
        slot = (np.minimum(length, 96 * rng.integers(2, 8, amount)) // spans)[:, None]  # one span in each
        first = bounds[chosen] + rng.integers(0, length - slot[:, 0] * spans + 1)
        start = first[:, None] + slot * np.arange(spans) + rng.integers(0, np.maximum(slot - run, 0) + 1)
        node = start[..., None] + np.arange(run)
        fits = slot[:, 0] >= run
        nodes.append(node[fits].ravel())
        sizes.append(np.full(fits.sum(), spans * run))
    return np.concatenate(nodes), np.concatenate(sizes)


@torch.no_grad()
def vectors(model: SentenceEncoder, tokens: Tensor, ptr: Tensor, batch: int) -> Tensor:
    """Return the sentence encoder's vectors of texts, of length 1, ``[N, E]``.

    Args:
        model: the sentence encoder.
        tokens: word pieces of all texts.
        ptr: bounds of the texts.
        batch: texts at once.
    """
    size = ptr.diff()
    order = size.argsort()
    result = torch.empty(len(size), model.hidden_size, device=tokens.device)
    for some in order.split(batch):
        graph = packed(tokens, ptr, some)
        graph.query_length = torch.ones(len(some), dtype=torch.long, device=tokens.device)
        with torch.autocast(tokens.device.type, torch.bfloat16):
            result[some] = model.vectors(passage_sequences(graph, model.cls_token_id, model.sep_token_id)).float()
    return result


def packed(tokens: Tensor, ptr: Tensor, some: Tensor) -> Data:
    """Return some texts as circles of a graph, each of a document of its own; the first word leads."""
    size = ptr.diff()[some]
    circle = torch.repeat_interleave(size)
    bounds = cumsum(size)
    place = torch.arange(len(circle), device=circle.device) - bounds[circle] + ptr[some][circle]
    return Data(
        input_ids=tokens[place], batch=circle, leader_index=bounds[:-1],
        circle_index=torch.stack([torch.arange(len(circle), device=circle.device), circle]),
    )  # fmt: skip


@lru_cache
def terms() -> Tensor:
    """Return the term that each word piece is for BM25: its stem's number; 0 for stop words and marks."""
    import Stemmer  # here alone, so that what was computed elsewhere can be read

    from socialgraph.lexical import STOPWORDS_EN_PLUS

    vocabulary = load_tokenizer("minilm").get_vocab()
    stem = Stemmer.Stemmer("english").stemWord
    number: dict[str, int] = {}
    term = torch.zeros(max(vocabulary.values()) + 1, dtype=torch.long)
    for piece, row in vocabulary.items():
        if piece.strip("#").isalnum() and piece not in STOPWORDS_EN_PLUS:
            word = piece if piece.startswith("##") else stem(piece)
            term[row] = number.setdefault(word, len(number) + 1)
    return term


def cover_of(words: Tensor, ptr: Tensor, asked: Tensor, asked_ptr: Tensor) -> Tensor:
    """Return the share of each question's BM25 that each passage has, ``[Q, P]``.

    Args:
        words: word pieces of all passages.
        ptr: bounds of the passages.
        asked: word pieces of all questions.
        asked_ptr: bounds of the questions.
    """
    term = terms().to(words.device)
    known, column = torch.unique(term[asked], return_inverse=True)
    place = torch.searchsorted(known, term[words]).clamp(max=len(known) - 1)
    of_passage = torch.repeat_interleave(ptr.diff())
    met = (known[place] == term[words]) & (term[words] > 0)
    count = torch.zeros(len(ptr) - 1, len(known), device=words.device)
    count.index_put_((of_passage[met], place[met]), torch.ones((), device=words.device), accumulate=True)
    frequency = (count > 0).sum(0)
    idf = torch.log1p((len(count) - frequency + 0.5) / (frequency + 0.5)) * (known > 0)
    size = ptr.diff().float()
    count /= count + K1 * (1 - B + B * size / size.mean())[:, None]
    weight = torch.zeros(len(asked_ptr) - 1, len(known), device=words.device)
    weight[torch.repeat_interleave(asked_ptr.diff()), column] = 1.0
    weight *= idf
    return (weight / weight.sum(1, keepdim=True).clamp(min=1e-9)) @ count.T


def evidence_of(passages: Passages, shard: Shard, device: torch.device) -> Tensor:
    """Return each question's share of evidence in each passage, ``[Q, P]``."""
    bounds = torch.from_numpy(np.cumsum([0, *shard.document_length])).to(device)
    document, start, end = (torch.from_numpy(x).to(device) for x in (shard.document, shard.start, shard.end))
    amount, wide = len(passages.ptr) - 1, len(shard.tokens) + 1
    size = passages.ptr.diff()
    key = torch.repeat_interleave(size) * wide + passages.node  # ascends, because nodes do in each passage
    share = torch.zeros(len(document), amount, device=device)
    question, passage = torch.nonzero(document[:, None] == passages.document[None], as_tuple=True)
    low = bounds[document[question]]
    inside = torch.searchsorted(key, passage * wide + low + end[question])
    inside -= torch.searchsorted(key, passage * wide + low + start[question])
    least = torch.minimum(size[passage], (end - start)[question].clamp(min=1))
    share[question, passage] = inside / least
    return share


@dataclass
class Groups:
    """Groups of SIZE passages of one question each.

    Attributes:
        question: ``[G]``, the question of each.
        passage: ``[G, SIZE]``.
        target: what the teachers say, ``[G, SIZE]``; -inf where a passage stands twice in a group.
        scattered: whether the words of the group's passages are not contiguous, ``[G]``.
    """

    question: Tensor
    passage: Tensor
    target: Tensor
    scattered: Tensor

    def __getitem__(self, some: Tensor) -> Groups:
        """Return some of the groups."""
        return Groups(*(part[some] for part in vars(self).values()))

    @classmethod
    def joined(cls, several: Sequence[Groups]) -> Groups:
        """Return several as one."""
        return cls(*(torch.cat(parts) for parts in zip(*(vars(one).values() for one in several), strict=True)))


def draw(
    cosine: Tensor, cover: Tensor, evidence: Tensor, passages: Passages, document: Tensor,
    weights: dict[str, float], generator: torch.Generator, scattered: bool,
) -> Groups:  # fmt: skip
    """Draw a group for each question: half of its passages are hard ones.

    Args:
        cosine: what the sentence encoder says of windows, or of scattered passages, ``[Q, P]``.
        cover: what BM25 says.
        evidence: how much of the answer they hold.
        passages: all passages; the columns are the windows, or those behind them.
        document: the row of each question's document.
        weights: of the three teachers.
        generator: of random numbers.
        scattered: whether these are the passages behind the windows.
    """
    device = cosine.device

    def random(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=device)

    score = weights["cosine"] * cosine + weights["cover"] * cover
    total = score + weights["evidence"] * evidence
    rows, columns = score.shape
    first = passages.windows if scattered else 0
    owner = passages.document[first : first + columns]
    best = total.topk(min(2, columns)).indices
    hard = score.topk(min(400, columns)).indices
    deep = hard.shape[1]

    def pick(among: Tensor, low: int, high: int) -> Tensor:
        place = (low + random(rows) * (max(low + 1, min(high, among.shape[1])) - low)).long()
        return among.gather(1, place.clamp(max=among.shape[1] - 1)[:, None])

    holds = ((evidence > 0.3) * random(rows, columns)).max(1)
    own = ((owner[None] == document[:, None]) * random(rows, columns)).max(1)
    anywhere = (random(rows, 1) * columns).long().clamp(max=columns - 1)
    chosen = torch.cat([
        pick(best, 0, 2), torch.where(holds.values > 0, holds.indices, hard[:, 0])[:, None],
        pick(hard, 0, 8), pick(hard, 0, 30), pick(hard, 0, 30),
        torch.where(own.values > 0, own.indices, anywhere[:, 0])[:, None],
        pick(hard, min(30, deep - 1), 400), anywhere,
    ], 1)  # fmt: skip
    target = total.gather(1, chosen)
    order = chosen.sort(dim=1, stable=True)
    twice = torch.zeros_like(chosen, dtype=torch.bool)
    twice[:, 1:] = order.values.diff(dim=1) == 0
    target[torch.zeros_like(twice).scatter(1, order.indices, twice)] = -torch.inf
    everyone = torch.arange(rows, device=device)
    return Groups(everyone, first + chosen, target, torch.full((rows,), scattered, device=device))
