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
from collections.abc import Callable
from math import comb
from statistics import fmean
from typing import Any

import torch
from omegaconf import DictConfig
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import cumsum, index_to_mask, scatter

from lab.execute import System, bf16, device
from lab.levels.runs import built, timed
from lab.rows import Run
from lab.task import Task, load_task, sampled
from socialgraph import ranking
from socialgraph.backbone import load_tokenizer
from socialgraph.data import Cache, Split
from socialgraph.data.cache import content_key
from socialgraph.data.collection import Run as Ranking
from socialgraph.data.graph import circle_document, circle_size
from socialgraph.errors import InputError, OptionError
from socialgraph.nn import BertRanker, MaxP, SentenceEncoder
from socialgraph.nn.selection import select
from socialgraph.partition.ties import mix
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
    builder, cache = system.builder(task, Cache.on_disk()), Cache.on_disk()
    readers = {name: READERS[name](config, cache) for name in config.levels.reading.readers}
    candidates = asked.candidates or {}
    pairs = [(query, asked.queries[query], document) for query, scores in candidates.items() for document in scores]
    runs: dict[str, Ranking] = {f"{name} {how}": {} for name in readers for how in POOLS}
    sequences: dict[str, float] = dict.fromkeys(asked.queries, 0.0)
    spent: dict[str, float] = {}
    with torch.inference_mode():
        for batch, graph in built(builder, pairs, config.trainer.token_budget, f"reading, {run.row.label}", spent):
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
                sequences[query] += amount / len(candidates[query])
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
    level = run.config.levels.reading
    whole = task.collection[task.data.splits.test]
    asked = sampled(whole, level.amount, task.data.depth, answerable=True, skipped=level.skipped)
    if not asked.queries:
        more = f" behind the first {level.skipped} (levels.reading.skipped)" if level.skipped else ""
        where = f"{task.data.label}, split {task.data.splits.test}"
        raise InputError(f"{where}: no question{more} has a relevant document among its candidates")
    return asked


def pool(score: Tensor, document: Tensor, count: int, how: str) -> Tensor:
    """Return the mean or the largest of each document's scores, ``[count]``; what has no circle comes last."""
    pooled = scatter(score.double(), document, dim_size=count, reduce=how)
    return torch.where(torch.bincount(document, minlength=count) > 0, pooled, -1e4)


def random_order(run: Run) -> str:
    """Return what a random order of the candidates gets, in words."""
    chance = random_reciprocal_rank(questions(run, load_task(run.config.data)))
    return f"\nA random order of the candidates has RR@10 {chance:.4f}.\n"


def random_reciprocal_rank(split: Split, cut: int = 10) -> float:
    """Return the mean reciprocal rank of a random order of the candidates, by the chance of each first place.

    With r of n candidates relevant the first of them is at place k with the chance C(n - k, r - 1) / C(n, r).
    """
    values = []
    for query, candidates in (split.candidates or {}).items():
        n, r = len(candidates), len(candidates.keys() & split.relevant(query))
        chances = (comb(n - k, r - 1) / (k * comb(n, r)) for k in range(1, min(cut, n) + 1)) if r else ()
        values.append(sum(chances))
    return fmean(values)


# --- who reads --------------------------------------------------------------------------------------------------------


class CachedScores:
    """A reader of circles whose scores are kept in the cache: a second strategy costs only the circles that are new.

    A score is found by the reader's name and 64 bits of the word pieces of query and circle: among a million sequences,
    two share these with a chance of 3 in 10^8.

    Args:
        name: of the reader, with a digest of its weights.
        reader: graph with circles -> the score of each circle for its document's query, ``[C]``.
        cache: where scores are kept.
    """

    def __init__(self, name: str, reader: Callable[[Data], Tensor], cache: Cache) -> None:
        self.name, self.reader, self.cache = content_key(b"scores of circles", name.encode()), reader, cache
        self.new = 0  # sequences that were read

    def __call__(self, graph: Data) -> Tensor:
        """Return the score of each circle, ``[C]`` float32 on the CPU."""
        content = content_of(graph).cpu().numpy().tobytes()
        keys = [self.name + content[start : start + 8] for start in range(0, len(content), 8)]
        known = self.cache.get(keys)
        first = {key: place for place, key in reversed([*enumerate(keys)]) if key not in known}  # of equals one is read
        if first:
            keep = index_to_mask(torch.tensor(sorted(first.values())), len(keys))
            read = self.reader(select(graph, keep.to(graph.batch.device))).float().cpu().numpy()
            unknown = sorted(first, key=first.__getitem__)
            new = {key: score.tobytes() for key, score in zip(unknown, read, strict=True)}
            self.cache.put(new)
            self.new += len(new)
            known |= new
        return torch.frombuffer(bytearray(b"".join(known[key] for key in keys)), dtype=torch.float32)


def content_of(graph: Data) -> Tensor:
    """Return a number for each circle that says which word pieces it and its query have, in which order: ``[C]``."""
    asked = _sums(graph.query_ids, graph.query_length)
    said = _sums(graph.input_ids[graph.circle_index[0]], circle_size(graph))
    return mix(mix(said) + mix(asked[circle_document(graph)] + 1))


def _sums(ids: Tensor, size: Tensor) -> Tensor:
    """Return a number for each of several lists of word pieces, one behind the other. Whole numbers, any order."""
    owner = torch.repeat_interleave(size)
    place = torch.arange(owner.numel(), device=ids.device) - cumsum(size)[owner]
    return scatter(mix(mix(ids.long() + 1) + place), owner, dim_size=size.numel(), reduce="sum")


def encoder(config: DictConfig, cache: Cache) -> CachedScores:
    """Return what gives each circle the cosine of its text and the query.

    Raises:
        OptionError: the encoder has other word pieces than the reader.
    """
    if load_tokenizer(config.sentence_backbone).get_vocab() != load_tokenizer(config.backbone).get_vocab():
        raise OptionError(
            f"sentence_backbone={config.sentence_backbone} has other word pieces than the backbone {config.backbone}, "
            "so it cannot read the same circles"
        )
    return cached(SentenceEncoder.from_backbone(config.sentence_backbone), config, cache)


def reader(config: DictConfig, cache: Cache) -> CachedScores:
    """Return what gives each circle the score of [CLS], having read it together with the query.

    The score layer of a backbone that has none is random, by the seed alone.
    """
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(config.seed)
        model = MaxP.from_backbone(config.backbone)
    return cached(model, config, cache)


#: who scores circles; a measure of this level, such as "RR@10 reader mean", names the one that it is of
READERS = {"encoder": encoder, "reader": reader}


def cached(model: BertRanker, config: DictConfig, cache: Cache) -> CachedScores:
    """Return a model's scores of circles, kept under the digest of its weights."""
    model.eval().to(device())
    half = bf16(config)

    def scored(graph: Data) -> Tensor:
        with torch.autocast(device(), torch.bfloat16, enabled=half):
            return model.circle_scores(graph)

    return CachedScores(f"{type(model).__name__} {weights_digest(model)} {half}", scored, cache)
