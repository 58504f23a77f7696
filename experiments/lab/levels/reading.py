"""Level 2, reading: a sentence encoder and a reader score every circle as it stands, and nothing is trained.

The words of a circle, in the order of the text, are a sequence. The encoder (``sentence_backbone``) takes the cosine of
its vector and the query's; the reader (``backbone``) reads it together with the query, its score is that of [CLS]. A
document has the mean of its circles' scores, or the largest one. Only questions with a relevant document among their
candidates are asked: no order of the others is better than another.

A strategy is compared with others of the same number of sequences for each document (k), which is what BERT's time goes
into.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from omegaconf import DictConfig
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from lab.circles import drawn, pairs_of, timed
from lab.levels.scores import KeptScores
from lab.rows import Run
from lab.system import System, bf16, device
from lab.task import Task
from socialgraph import ranking
from socialgraph.backbone import load_tokenizer
from socialgraph.data import Cache, Split
from socialgraph.data.collection import Run as Ranking
from socialgraph.data.files import cache_folder
from socialgraph.data.graph import circle_document
from socialgraph.errors import InputError, OptionError
from socialgraph.nn import BertRanker, MaxP, SentenceEncoder
from socialgraph.ranking.identity import weights_digest

#: measures of a ranking, and how a document's score comes from those of its circles
MEASURES, POOLS = ("RR@10", "nDCG@10"), ("mean", "max")


def read(run: Run, system: System, task: Task) -> tuple[Ranking, dict[str, Any]]:
    """Score the candidates of some questions by their circles.

    Raises:
        InputError: no question of the split has a relevant document among its candidates.
        OptionError: the encoder has other word pieces than the reader.
    """
    began, config, asked = time.perf_counter(), run.config, questions(run, task)
    builder = system.builder(task, Cache.on_disk())
    readers = {name: READERS[name](config) for name in run.level["readers"]}
    pairs, budget = pairs_of(asked), config.trainer.token_budget
    runs: dict[str, Ranking] = {f"{name} {how}": {} for name in readers for how in POOLS}
    sequences: dict[str, float] = dict.fromkeys(asked.queries, 0.0)
    spent: dict[str, float] = {}
    with torch.inference_mode():
        for batch, graph in drawn(builder, pairs, budget, f"reading, {run.row.label}", spent):
            document = circle_document(graph).cpu()
            for name, scored in readers.items():
                with timed(spent, name):
                    score = scored(graph)
                for how in POOLS:
                    pooled = pool(score, document, len(batch), how).tolist()
                    for (query, _, candidate), value in zip(batch, pooled, strict=True):
                        runs[f"{name} {how}"].setdefault(query, {})[candidate] = value
            circles = torch.bincount(document, minlength=len(batch)).tolist()
            for (query, _, _), amount in zip(batch, circles, strict=True):
                sequences[query] += amount / len(asked.candidates[query])
    for scored in readers.values():
        scored.save()
    measures = {
        f"{measure} {who}": values
        for who, ordered in runs.items()
        for measure, values in ranking.evaluate(asked.qrels, ordered, MEASURES).per_query.items()
    }
    measures["sequences"] = sequences
    return next(iter(runs.values())), {
        "measures": measures,
        "seconds_per_document": (time.perf_counter() - began) / len(pairs),
        "graph_seconds_per_document": spent["graph"] / len(pairs),
        "newly_read": max(scored.new for scored in readers.values()),
        **{f"{name}_seconds": spent[name] for name in readers},
    }


def questions(run: Run, task: Task) -> Split:
    """Return some questions of the test split with a relevant candidate, those with the lowest hash.

    Raises:
        InputError: there is none.
    """
    skipped = run.level["skipped"]
    asked = task.answerable(run.level["amount"], skipped)
    if not asked.queries:
        more = f" behind the first {skipped} (levels.reading.skipped)" if skipped else ""
        where = f"{task.data.label}, split {task.data.splits.test}"
        raise InputError(f"{where}: no question{more} has a relevant document among its candidates")
    return asked


def pool(score: Tensor, document: Tensor, count: int, how: str) -> Tensor:
    """Return the mean or the largest of each document's scores, ``[count]``; what has no circle comes last."""
    pooled = scatter(score.double(), document, dim_size=count, reduce=how)
    return torch.where(torch.bincount(document, minlength=count) > 0, pooled, -1e4)


def encoder(config: DictConfig) -> KeptScores:
    """Return what gives each circle the cosine of its text and the query.

    Raises:
        OptionError: the encoder has other word pieces than the reader.
    """
    if load_tokenizer(config.sentence_backbone).get_vocab() != load_tokenizer(config.backbone).get_vocab():
        raise OptionError(
            f"sentence_backbone={config.sentence_backbone} has other word pieces than the backbone {config.backbone}, "
            "so it cannot read the same circles"
        )
    return kept(SentenceEncoder.from_backbone(config.sentence_backbone), config)


def reader(config: DictConfig) -> KeptScores:
    """Return what gives each circle the score of [CLS], having read it together with the query.

    The score layer of a backbone that has none is random, by the seed alone.
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(config.seed)
        model = MaxP.from_backbone(config.backbone)
    return kept(model, config)


#: who scores circles; a measure of this level, such as "RR@10 reader mean", names the one that it is of
READERS = {"encoder": encoder, "reader": reader}


def kept(model: BertRanker, config: DictConfig) -> KeptScores:
    """Return a model's scores of circles, kept under the digest of its weights."""
    model.eval().to(device())
    half = bf16(config)

    def scored(graph: Data) -> Tensor:
        with torch.autocast(device(), torch.bfloat16, enabled=half):
            return model.circle_scores(graph)

    name = f"{type(model).__name__}-{weights_digest(model)[:16]}{'-bf16' * half}.safetensors"
    return KeptScores(cache_folder() / "sequences" / name, scored)
