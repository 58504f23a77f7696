"""How the reader is taught: groups of passages of one question, and the teachers' scores of them.

A step takes some questions. Each has a group of passages: one that holds the evidence, some that the teacher takes for
good, one of the same document, some at random. The reader scores each passage from its [CLS], having read it together
with the question, and learns the distribution over the group that the teachers give:

    t = w_cosine * cosine + w_cover * cover + w_evidence * evidence
    loss = KL(softmax(t) || softmax(s)) + margin * mean((s - mean(s) - (t - mean(t)))^2)

with what the teachers say (pool.py) and their weights, ``training.teachers``. The same divergence is taken once more
with the group's passages put together at random, 2 or 4 to a document: the linear layer reads the largest value of each
feature of their states, and a document's target is its best passage's. So states can be pooled by maximum, as
PARADE-max and Socialformer pool them, before anything is trained. All weights but word and position embeddings are
learned.
"""

from __future__ import annotations

import copy
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from lab.reader.pool import Ints, Pool, as_circles
from omegaconf import DictConfig, OmegaConf
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor
from torch.nn.functional import kl_div, log_softmax, softmax
from tqdm import tqdm

from socialgraph.data.files import atomic_write
from socialgraph.errors import CheckpointError
from socialgraph.nn import MaxP
from socialgraph.nn.sequences import circle_sequences

log = logging.getLogger("socialgraph")

#: what AdamW knows of each weight
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass
class Group:
    """A question, its passages and the teachers' score of each."""

    question: list[int]
    passages: list[Ints]
    target: Tensor
    leaders: list[int] | None = None  # the word whose state is scored; None: [CLS]


def draw(pools: dict[str, Pool], options: DictConfig, step: int) -> list[Group]:
    """Return the groups of a step, a function of seed and step alone."""
    rng = np.random.default_rng((options.seed, step))
    names = list(options.shares)
    weights = np.array([options.shares[name] for name in names], float)
    chosen = rng.choice(len(names), size=options.questions, p=weights / weights.sum())
    longest = 96 if step < options.short * options.steps else 10_000
    return [draw_group(pools[names[i]], options, rng, longest) for i in chosen]


def draw_group(pool: Pool, options: DictConfig, rng: np.random.Generator, longest: int) -> Group:
    """Draw a question and a group of passages, half of them hard."""
    split = pool.asked_by_people  # questions made from the text stand behind the others
    is_made_up = rng.random() < options.made_up
    if not 0 < split < len(pool.questions):
        is_made_up = split == 0  # there is one kind only
    number = int(rng.integers(split, len(pool.questions)) if is_made_up else rng.integers(split))
    question = pool.questions[number]
    fits = (np.diff(pool.ptr) <= longest) & (np.arange(len(pool.document)) != question.hidden)
    fits |= not fits.any()  # of a collection of few passages all may be too long, ...
    of_circles = rng.random() < options.circles
    if not (fits & (pool.is_window != of_circles)).any():
        of_circles = not of_circles  # ... and one of short texts has no circles
    among = np.flatnonzero(fits & (pool.is_window != of_circles))
    weight = options.teachers
    cosine, cover, share = pool.teachers(number, among)
    score = weight.cosine * cosine + weight.cover * cover
    total = score + weight.evidence * share
    order = np.argsort(-total)
    n = options.passages
    picked = list(order[: 1 + int(rng.integers(2))])  # the best by both teachers
    holds = np.flatnonzero(share > 0.3)
    picked += list(rng.permutation(holds)[:1])
    hard = np.argsort(-score)[:30]
    picked += list(rng.permutation(hard)[: n // 2 - 1])
    own = np.flatnonzero(pool.document[among] == question.document)
    picked += list(rng.permutation(own)[:1])
    picked += list(rng.permutation(order[30:400])[:2])
    picked = list(dict.fromkeys(picked))[: n - 1]
    rest = rng.permutation(len(among))[: 2 * n]
    picked = list(dict.fromkeys([*picked, *rest]))[:n]
    here = np.array(picked)
    passages = [pool.passage(p) for p in among[here]]
    leaders = None
    if of_circles and rng.random() < options.leaders:
        leaders = [int(rng.integers(len(p) // 4, len(p) - len(p) // 4)) for p in passages]
    return Group(question.ids[:40], passages, torch.from_numpy(total[here]), leaders)


def read(model: MaxP, groups: list[Group]) -> Tensor:
    """Return the state that is scored of every passage of the groups, ``[passages, E]``, one group after the other."""
    graph = as_circles([passage for group in groups for passage in group.passages])
    questions = [torch.tensor(group.question) for group in groups for _ in group.passages]
    word = torch.tensor([-1 if g.leaders is None else g.leaders[i] for g in groups for i in range(len(g.passages))])
    graph.query_ids, graph.query_length = torch.cat(questions), torch.tensor([len(q) for q in questions])
    graph.passage_mask, graph.leader_index = word < 0, graph.leader_index + word.clamp(min=0)
    sequences = circle_sequences(graph, model.cls_token_id, model.sep_token_id, leader="central")
    return model.leaders(sequences).float()


def loss_of(model: MaxP, states: Tensor, groups: list[Group], options: DictConfig, step: int) -> Tensor:
    """Return the mean of the groups' losses."""
    rng = np.random.default_rng((options.seed, step, 1))
    losses = []
    for x, group in zip(states.split([len(g.passages) for g in groups]), groups, strict=True):
        s, t = model.score(x).squeeze(-1), group.target
        loss = divergence(s, t) + options.margin * ((s - s.mean()) - (t - t.mean())).square().mean()
        together = 2 * int(rng.integers(1, 3))
        if options.pooled and len(t) % together == 0:
            order = torch.from_numpy(rng.permutation(len(t))).view(-1, together)
            s = model.score(x[order].amax(1)).squeeze(-1)
            loss = loss + options.pooled * divergence(s, t[order].amax(1))
        losses.append(loss)
    return torch.stack(losses).mean()


def divergence(scores: Tensor, target: Tensor) -> Tensor:
    """Return KL(softmax(target) || softmax(scores))."""
    return kl_div(log_softmax(scores, 0), softmax(target, 0), reduction="sum")


class Training:
    """A training that can be killed and goes on: weights, their average, Adam's state and the log in one folder.

    Args:
        pools: collection -> its passages.
        options: ``training`` of conf/reader.yaml, and ``shares``: collection -> how often it is asked.
        folder: where everything goes.
    """

    def __init__(self, pools: dict[str, Pool], options: DictConfig, folder: Path) -> None:
        self.pools, self.options, self.file = pools, options, folder / "training.safetensors"
        torch.manual_seed(options.seed)
        self.model = MaxP.from_backbone("minilm", dropout=0.0)
        self.model.embedding.word.requires_grad_(False)
        self.model.embedding.position.requires_grad_(False)
        self.learned = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(self.learned.values(), options.learning_rate, weight_decay=0.01)
        self.average = {name: p.detach().clone() for name, p in self.learned.items()}
        self.step, self.seconds, self.log = 0, 0.0, list[dict[str, float]]()
        if self.file.exists():
            self.resume()

    def rate(self, step: int) -> float:
        """Return the learning rate's factor: it rises, stays, and falls to 0."""
        o = self.options
        left = (o.steps - step) / max(1.0, o.decay * o.steps)
        return min(1.0, (step + 1) / o.warm_up, left)

    def train(self, save_every: int = 100) -> None:
        """Train from where it stands to the end."""
        self.model.train()
        begun, losses = time.time() - self.seconds, []
        steps = range(self.step, self.options.steps)
        for step in tqdm(steps, "training", initial=self.step, total=self.options.steps, disable=None):
            losses.append(self.learn(draw(self.pools, self.options, step)))
            if self.step % save_every == 0 or self.step == self.options.steps:
                self.seconds = time.time() - begun
                self.log.append({"step": self.step, "loss": float(np.mean(losses)), "seconds": self.seconds})
                log.info("step %d: loss %.3f", self.step, self.log[-1]["loss"])
                losses = []
                self.save()

    def learn(self, groups: list[Group]) -> float:
        """Take one step; return its loss."""
        for part in self.optimizer.param_groups:
            part["lr"] = self.options.learning_rate * self.rate(self.step)
        with torch.autocast("cpu", torch.bfloat16):
            states = read(self.model, groups)
        loss = loss_of(self.model, states, groups, self.options, self.step)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.learned.values(), 1.0)
        self.optimizer.step()
        self.step += 1
        keep = min(self.options.average, self.step / (self.step + 10))  # a young average forgets its first steps
        with torch.no_grad():
            for name, p in self.learned.items():
                self.average[name].lerp_(p, 1 - keep)
        return loss.item()

    def averaged(self) -> MaxP:
        """Return the model with the average of the weights."""
        model = copy.deepcopy(self.model)
        model.load_state_dict(self.average, strict=False)
        return model.eval()

    def save(self) -> None:
        """Write everything to one file, whole or not at all."""
        about = {"step": self.step, "seconds": self.seconds, "log": self.log}
        about["options"] = OmegaConf.to_container(self.options)
        tensors = {}
        for name, p in self.learned.items():
            tensors |= {f"weight {name}": p.detach(), f"average {name}": self.average[name]}
            tensors |= {f"{moment} {name}": self.optimizer.state[p][moment] for moment in MOMENTS}
        with atomic_write(self.file, "wb") as file:
            file.write(
                save({name: tensor.contiguous() for name, tensor in tensors.items()}, {"json": json.dumps(about)})
            )

    def resume(self) -> None:
        """Read what :meth:`save` wrote.

        Raises:
            CheckpointError: it is of a training with other options.
        """
        with safe_open(self.file, "pt") as file:
            about = json.loads(file.metadata()["json"])
            if about["options"] != OmegaConf.to_container(self.options):
                raise CheckpointError(f"{self.file}: of a training with other options; remove it")
            # cloned, because sums over memory that starts at an odd place round in another order
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  (no dict)
        for name, p in self.learned.items():
            p.data, self.average[name] = tensors[f"weight {name}"], tensors[f"average {name}"]
            known = {moment: tensors.get(f"{moment} {name}") for moment in MOMENTS}
            self.optimizer.state[p] = {moment: value for moment, value in known.items() if value is not None}
        self.step, self.seconds, self.log = about["step"], about["seconds"], about["log"]
