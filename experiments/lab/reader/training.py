"""How the reader is taught: it scores passages from [CLS], having read each together with the question.

It learns the distribution over a group of passages that the teachers give (groups.py):

    loss = KL(softmax(t) || softmax(s)) + margin * mean((s - mean(s) - (t - mean(t)))^2)

The same divergence is taken once more with the group's passages put together at random, 2 or 4 to a document: the
linear layer reads the largest value of each feature of their states, and a document's target is its best passage's. So
states can be pooled by maximum, as PARADE-max and Socialformer pool them, before anything is trained. In half of the
groups whose words are not contiguous a word in the middle is scored, as leaders of circles are. All weights but word
and position embeddings are learned.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from lab.reader.groups import SIZE, Groups, cover_of, draw, evidence_of, packed, passages_of, vectors
from lab.reader.shards import Shard
from torch import Tensor
from torch.nn.functional import log_softmax, softmax
from torch_geometric.utils import cumsum

from socialgraph.nn import MaxP, SentenceEncoder
from socialgraph.nn.sequences import circle_sequences

log = logging.getLogger("socialgraph")


@dataclass
class Lessons:
    """All groups of all shards, and the texts that they are about.

    Attributes:
        tokens: word pieces of all passages of all shards, ``[T]`` int32.
        ptr: bounds of the passages.
        asked: word pieces of all questions.
        asked_ptr: bounds of the questions.
        groups: rows of ``ptr`` and ``asked_ptr``.
    """

    tokens: Tensor
    ptr: Tensor
    asked: Tensor
    asked_ptr: Tensor
    groups: Groups

    @classmethod
    def joined(cls, several: list[Lessons]) -> Lessons:
        """Return the lessons of several shards as one."""
        passages = np.cumsum([0, *(len(one.ptr) - 1 for one in several)]).tolist()
        questions = np.cumsum([0, *(len(one.asked_ptr) - 1 for one in several)]).tolist()
        moved = [
            replace(one.groups, question=one.groups.question + q, passage=one.groups.passage + p)
            for one, q, p in zip(several, questions, passages, strict=False)
        ]
        return cls(
            torch.cat([one.tokens for one in several]), cumsum(torch.cat([one.ptr.diff() for one in several])),
            torch.cat([one.asked for one in several]), cumsum(torch.cat([one.asked_ptr.diff() for one in several])),
            Groups.joined(moved),
        )  # fmt: skip


@torch.no_grad()
def lessons_of(shard: Shard, encoder: SentenceEncoder, options: Any, seed: int, repeats: float = 1.0) -> Lessons:
    """Return the groups of a shard.

    Args:
        shard: documents and questions.
        encoder: the first teacher.
        options: ``training`` of conf/reader.yaml.
        seed: of the cuts and the draws.
        repeats: how many groups each question has, on average.
    """
    device = next(encoder.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    passages = passages_of(shard, np.random.default_rng(seed), device)
    tokens = torch.from_numpy(shard.tokens).to(device)[passages.node]
    asked = torch.from_numpy(shard.asked).to(device)
    asked_ptr = cumsum(torch.from_numpy(shard.asked_length).to(device))
    document = torch.from_numpy(shard.document).to(device)
    cosine = vectors(encoder, asked, asked_ptr, options.encoded) @ vectors(
        encoder, tokens, passages.ptr, options.encoded
    ).T  # fmt: skip
    cover, evidence = cover_of(tokens, passages.ptr, asked, asked_ptr), evidence_of(passages, shard, device)
    drawn = []
    for scattered, amount in ((False, repeats * (1 - options.circles)), (True, repeats * options.circles)):
        columns = slice(passages.windows, None) if scattered else slice(passages.windows)
        while amount > 0 and len(passages.ptr) - 1 > (passages.windows + SIZE if scattered else 0):
            groups = draw(
                cosine[:, columns], cover[:, columns], evidence[:, columns], passages, document,
                options.teachers, generator, scattered,
            )  # fmt: skip
            some = torch.nonzero(torch.rand(len(document), generator=generator, device=device) < amount)[:, 0]
            drawn.append(groups[some])
            amount -= 1
    return Lessons(tokens.int(), passages.ptr, asked.int(), asked_ptr, Groups.joined(drawn))


def states_of(model: MaxP, lessons: Lessons, groups: Groups, word: Tensor) -> Tensor:
    """Return the state that is scored of every passage of some groups, ``[G, SIZE, E]``.

    Args:
        model: the reader.
        lessons: the texts.
        groups: some of its groups.
        word: which word's state is scored, of each passage, ``[G * SIZE]``; -1 for [CLS].
    """
    passage = groups.passage.flatten()
    graph = packed(lessons.tokens, lessons.ptr, passage)
    graph.input_ids = graph.input_ids.long()
    question = groups.question.repeat_interleave(SIZE)
    graph.query_length = lessons.asked_ptr.diff()[question]
    graph.query_ids = packed(lessons.asked, lessons.asked_ptr, question).input_ids.long()
    graph.passage_mask, graph.leader_index = word < 0, graph.leader_index + word.clamp(min=0)
    sequences = circle_sequences(graph, model.cls_token_id, model.sep_token_id, leader="central")
    return model.leaders(sequences).float().view(-1, SIZE, model.hidden_size)


def loss_of(model: MaxP, states: Tensor, target: Tensor, options: Any, together: int) -> Tensor:
    """Return the mean of the groups' losses; ``together`` passages are pooled."""
    score = model.score(states).squeeze(-1)
    real = target.isfinite()
    loss = divergence(score, target).mean()
    s, t = (x - (x * real).sum(1, keepdim=True) / real.sum(1, keepdim=True) for x in (score, zeroed(target)))
    loss = loss + options.margin * ((s - t).square() * real).sum() / real.sum()
    order = torch.rand(target.shape, device=target.device).argsort(1).view(len(target), -1, together)
    pooled = states.gather(1, order.view(len(target), SIZE, 1).expand_as(states))
    pooled = model.score(pooled.view(*order.shape, -1).amax(2)).squeeze(-1)
    best = target.gather(1, order.view(len(target), SIZE)).view(order.shape).amax(2)
    return loss + options.pooled * divergence(pooled, best).mean()


def zeroed(target: Tensor) -> Tensor:
    """Return targets with 0 where there is none."""
    return torch.where(target.isfinite(), target, 0.0)


def divergence(score: Tensor, target: Tensor) -> Tensor:
    """Return KL(softmax(target) || softmax(score)) of each row; a target of -inf takes its score out."""
    real = target.isfinite()
    p, s = softmax(target, 1), log_softmax(score.masked_fill(~real, -1e4), 1)
    return (p * (log_softmax(zeroed(target).masked_fill(~real, -1e4), 1) - s)).sum(1)


def batches(count: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield rows of groups in random order, again and again."""
    while True:
        for some in torch.randperm(count, generator=generator).split(size):
            if len(some) == min(size, count):
                yield some


def train(model: MaxP, lessons: Lessons, options: Any) -> None:
    """Train for ``options.steps``; the learning rate falls to 0 towards the end.

    Args:
        model: the reader, on its device; word and position embeddings stay.
        lessons: on the same device.
        options: ``training`` of conf/reader.yaml.
    """
    device = lessons.ptr.device
    model.train()
    model.embedding.word.requires_grad_(False)
    model.embedding.position.requires_grad_(False)
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, options.learning_rate, weight_decay=0.01, fused=device.type == "cuda")
    generator = torch.Generator().manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    begun, total = time.monotonic(), torch.zeros((), device=device)
    order = batches(len(lessons.groups.question), options.questions, generator)
    for step, some in enumerate(islice(order, options.steps)):
        groups = lessons.groups[some.to(device)]
        rate = min(1.0, (step + 1) / options.warm_up, (1 - step / options.steps) / options.decay)
        for part in optimizer.param_groups:
            part["lr"] = options.learning_rate * rate
        size = lessons.ptr.diff()[groups.passage.flatten()]
        middle = (size * (0.25 + 0.5 * torch.rand(len(size), device=device))).long()
        leads = groups.scattered.repeat_interleave(SIZE) & (some.to(device).repeat_interleave(SIZE) % 2 == 0)
        with torch.autocast(device.type, torch.bfloat16):
            states = states_of(model, lessons, groups, torch.where(leads, middle, -1))
        loss = loss_of(model, states, groups.target, options, 2 * int(rng.integers(1, 3)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        total += loss.detach()
        if (step + 1) % options.report == 0:
            log.info("step %d: loss %.3f, %.0f s", step + 1, total.item() / options.report, time.monotonic() - begun)
            total.zero_()
    model.eval()
