"""What a reader is worth: MaxP over windows, beside BM25 and the sentence encoder, nothing trained.

Questions are those whose relevant document is among BM25's first candidates, drawn by hash. A document is cut into
windows of ``window`` word pieces; its score is that of its best window. Mixtures add z-scores within the question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from lab.reader.passages import Ints, vectors
from lab.reader.training import Group, read
from omegaconf import DictConfig
from torch import Tensor
from tqdm import tqdm

from socialgraph.data import Collection, Tokens
from socialgraph.data.collection import hash_fraction, ranked
from socialgraph.nn import MaxP
from socialgraph.ranking import BM25


@dataclass
class Task:
    """Questions, their candidates with first-stage scores, and the place of the relevant one."""

    name: str
    questions: list[list[int]]
    candidates: list[list[str]]
    bm25: list[Tensor]
    relevant: list[list[int]]
    windows: dict[str, list[Ints]]


def make_task(
    collection: Collection, split: str, count: int, candidates: int = 10, length: int = 1024, window: int = 128
) -> Task:
    """Choose questions by hash and cut their candidates into windows."""
    part, tokens = collection[split], Tokens("minilm", max_document_length=length)
    runs = part.candidates
    if runs is None:
        runs = BM25().fit(collection.documents).retrieve(part.queries, k=candidates)
    task = Task(f"{collection.name} {split}", [], [], [], [], {})
    for query_id in sorted(part.queries, key=lambda q: hash_fraction(f"reader {q}")):
        first = ranked(runs.get(query_id, {}))[:candidates]
        grades = part.qrels.get(query_id, {})
        good = [place for place, d in enumerate(first) if grades.get(d, 0) > 0]
        if not good or len(first) < 2 or len(task.questions) == count:
            continue
        task.questions.append(tokens.query(part.queries[query_id]).tolist())
        task.candidates.append(first)
        task.bm25.append(torch.tensor([runs[query_id][d] for d in first]))
        task.relevant.append(good)
        for d in first:
            if d not in task.windows:
                ids = tokens.document(collection.documents[d]).numpy().astype(np.int64)
                task.windows[d] = [ids[i : i + window] for i in range(0, max(len(ids), 1), window)]
    return task


def sentence_scores(task: Task) -> list[Tensor]:
    """Return each question's candidates' best cosine."""
    names = sorted(task.windows)
    found = vectors([w for d in names for w in task.windows[d]])
    bounds = np.cumsum([0, *(len(task.windows[d]) for d in names)])
    place = {d: slice(bounds[i], bounds[i + 1]) for i, d in enumerate(names)}
    asked = vectors([np.array(q) for q in task.questions])
    return [
        torch.tensor([float((found[place[d]] @ q).max()) for d in some])
        for q, some in zip(asked, task.candidates, strict=True)
    ]


@torch.no_grad()
def reader_scores(task: Task, model: MaxP, batch: int = 64) -> list[Tensor]:
    """Return each question's candidates' best window, as the reader scores it."""
    model.eval()
    scores = []
    asked = tqdm(task.questions, task.name, leave=False, disable=None)
    for question, found in zip(asked, task.candidates, strict=True):
        windows = [w for d in found for w in task.windows[d]]
        out = []
        for i in range(0, len(windows), batch):
            with torch.autocast("cpu", torch.bfloat16):
                states = read(model, [Group(question, windows[i : i + batch], Tensor(), Tensor())])
            out.append(model.score(states).squeeze(-1))
        parts = torch.cat(out).split([len(task.windows[d]) for d in found])
        scores.append(torch.stack([part.max() for part in parts]))
    return scores


def reciprocal_ranks(task: Task, scores: list[Tensor]) -> npt.NDArray[np.float64]:
    """Return 1 / rank of each question's first relevant candidate; ties go by document id."""
    values = []
    for s, good, names in zip(scores, task.relevant, task.candidates, strict=True):
        order = sorted(range(len(names)), key=lambda i: (-float(s[i]), names[i]))
        values.append(1 / (1 + min(order.index(g) for g in good)))
    return np.array(values)


def mixed(one: list[Tensor], other: list[Tensor], weight: float = 0.5) -> list[Tensor]:
    """Return the sum of z-scores within each question."""
    def z(s: Tensor) -> Tensor:
        return (s - s.mean()) / s.std().clamp(min=1e-6)

    return [(1 - weight) * z(a) + weight * z(b) for a, b in zip(one, other, strict=True)]


def table(task: Task, model: MaxP) -> dict[str, npt.NDArray[np.float64]]:
    """Return the reciprocal ranks of BM25, the sentence encoder, the reader, and the last two mixed with BM25."""
    sentence, reader = sentence_scores(task), reader_scores(task, model)
    systems = {"BM25": task.bm25, "sentence encoder": sentence, "reader": reader}
    systems |= {f"{name} + BM25": mixed(task.bm25, systems[name]) for name in ("sentence encoder", "reader")}
    return {name: reciprocal_ranks(task, scores) for name, scores in systems.items()}


def measured(collections: Mapping[str, Collection], model: MaxP, options: DictConfig, title: str) -> str:
    """Return a Markdown table: RR@10 on each collection's splits.

    Args:
        collections: by name.
        model: the reader.
        options: splits, questions, candidates, length.
        title: of the table.
    """
    lines: list[str] = []
    for name, collection in collections.items():
        for split in options.splits:
            task = make_task(collection, split, options.questions, options.candidates, options.length)
            means = {system: values.mean() for system, values in table(task, model).items()}
            if not lines:
                lines = [f"| {title} | questions | {' | '.join(means)} |", f"|---|{'---:|' * (len(means) + 1)}"]
            figures = " | ".join(f"{value:.3f}" for value in means.values())
            lines.append(f"| {name} {split} | {len(task.questions)} | {figures} |")
    return "\n".join(lines)
