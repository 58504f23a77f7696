"""From a recipe to a finished row of a table: train, re-rank, measure. All scripts take these steps.

Under torchrun or accelerate launch every process takes them; the first one writes.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from hydra.utils import get_class, instantiate
from memory import PeakMemory
from omegaconf import DictConfig, OmegaConf
from results import plain
from torch.utils.data import Subset
from transformers import set_seed
from unfinished import Training, Unfinished

from socialgraph import ranking
from socialgraph.data import (
    Collection,
    GraphBuilder,
    Split,
    TermStatistics,
    Tokens,
    TrainingGroups,
    WeightCache,
    read_run,
)
from socialgraph.data.collection import Run, hash_fraction, ranked
from socialgraph.errors import OptionError
from socialgraph.partition import Partition
from socialgraph.ranking import Retriever, processes
from socialgraph.ranking.checkpoints import last_whole, step
from socialgraph.ranking.journal import finished
from socialgraph.ranking.stored import VectorStore, encode_collection, rerank_stored

log = logging.getLogger("socialgraph")


@dataclass
class Task:
    """What all rows share: the collection, the queries that are ranked, their candidates, texts as word pieces."""

    collection: Collection
    train: Split
    dev: Split
    tests: dict[str, Split]
    first_stage: str  # what the candidates' source is called
    read: dict[Any, tuple[Tokens, TermStatistics]] = field(default_factory=dict)

    @property
    def test(self) -> Split:
        """The test split, the first where there are several."""
        return next(iter(self.tests.values()))

    def texts(self, backbone: str, document_length: int, query_length: int) -> tuple[Tokens, TermStatistics]:
        """Return the word pieces of all texts and their statistics; each combination is read once."""
        key = (backbone, document_length, query_length)
        if key not in self.read:
            tokens = Tokens.stored(self.collection.documents, *key)
            self.read[key] = tokens, TermStatistics.of(tokens, self.collection.documents)
        return self.read[key]


class Recipe:
    """A recipe (see conf/system.yaml) with its edges and circles made, so that a mistake there shows at once."""

    def __init__(self, config: DictConfig) -> None:
        self.config = config
        self.circles = partition(config.circles) if config.circles is not None else None
        self.edges, self.passages, self.relevance = (
            instantiate(part, _convert_="all") for part in (config.edges, config.passages, config.relevance)
        )
        self.name = str(config.name).format(circles=short(self.circles))


@dataclass
class Ranked:
    """A split's candidates in a row's order."""

    run: Run
    seconds: float | None = None  # for each document
    measures: dict[str, dict[str, float]] = field(default_factory=dict)  # measure -> query -> value


@dataclass
class Row:
    """What became of a recipe."""

    name: str
    dev: Ranked
    tests: dict[str, Ranked]
    training_seconds: float | None = None
    parameters: int | None = None
    memory: int | None = None  # bytes, at the worst moment of training and re-ranking
    training: list[dict[str, Any]] = field(default_factory=list)
    builder: GraphBuilder | None = None

    @property
    def test(self) -> Ranked:
        """The test split, the first where there are several."""
        return next(iter(self.tests.values()))


def test_splits(config: DictConfig) -> list[str]:
    """Return the names of the splits that are ranked at the end."""
    names = config.data.splits.test
    return [names] if isinstance(names, str) else list(names)


def load_task(config: DictConfig) -> Task:
    """Load the collection with candidates for every split, those of the first stage where none are given."""
    collection = instantiate(config.data.collection)
    for split, path in config.data.runs.items():
        collection = collection.with_candidates(split, read_run(path))
    retriever = instantiate(config.data.retriever)
    names = test_splits(config)
    given = collection[names[0]].has_candidates
    collection = ranking.retrieve_candidates(collection, retriever, config.data.depth)
    train, dev = (collection[config.data.splits[part]] for part in ("train", "dev"))
    depth = config.data.depth
    found = config.data.queries.get("found", False)
    dev = some(dev, config.data.queries.dev, depth, found)
    seen = collection[outside].queries if (outside := config.data.queries.get("outside")) else ()
    tests = {name: some(collection[name], config.data.queries.test, depth, found, seen) for name in names}
    return Task(collection, train, dev, tests, "first stage" if given else type(retriever).__name__)


def some(split: Split, amount: int | None, depth: int, found: bool = False, seen: Container[str] = ()) -> Split:
    """Return a split with that many of its queries, those with the lowest hash, and their best candidates.

    Args:
        split: a split.
        amount: of queries; None: all.
        depth: candidates of a query, at most.
        found: leave out queries without a relevant document among them: no order of theirs is better than another.
        seen: queries to leave out.
    """
    candidates = {
        query_id: {document: scores[document] for document in ranked(scores)[:depth]}
        for query_id, scores in (split.candidates or {}).items()
    }
    queries = [
        query for query in split.queries if query not in seen and (not found or has_relevant(split, query, candidates))
    ]
    chosen = set(sorted(queries, key=hash_fraction)[:amount])
    return Split(
        {query_id: text for query_id, text in split.queries.items() if query_id in chosen},
        {query_id: grades for query_id, grades in split.qrels.items() if query_id in chosen},
        {query_id: scores for query_id, scores in candidates.items() if query_id in chosen},
    )


def has_relevant(split: Split, query_id: str, candidates: Run) -> bool:
    """Whether a query's candidates hold a document that is relevant to it."""
    return any(split.qrels.get(query_id, {}).get(document, 0) > 0 for document in candidates.get(query_id, {}))


def make_row(
    config: DictConfig, recipe: Recipe, task: Task, unfinished: Unfinished, models: Path | None = None,
    cache: WeightCache | None = None,
) -> Row:  # fmt: skip
    """Turn a recipe into a finished row: train, save, re-rank dev and test, measure.

    Args:
        config: the resolved configuration; its ``recipe`` is not read.
        recipe: what is made.
        task: the collection and its queries.
        unfinished: what was done of it before, and where to keep what is done now.
        models: folder where the model is saved under the row's name; None: it is not kept.
        cache: keeps the weights of costly patterns; None: the row computes its own.
    """
    if recipe.config.first_stage is not None:
        row = first_stage_row(recipe, task)
    else:
        row = model_row(config, recipe, task, unfinished, models, cache)
    for split, done in ((task.dev, row.dev), *((task.tests[name], row.tests[name]) for name in task.tests)):
        done.measures = ranking.evaluate(split.qrels, done.run, list(config.measures)).per_query
    return row


def first_stage_row(recipe: Recipe, task: Task) -> Row:
    """Rank the same candidates as all other rows, by a first stage's scores."""
    retriever = instantiate(recipe.config.first_stage).fit(task.collection.documents)
    dev, *tests = (Ranked(order(retriever, task.collection, split)) for split in (task.dev, *task.tests.values()))
    return Row(recipe.name, dev, dict(zip(task.tests, tests, strict=True)))


def order(retriever: Retriever, collection: Collection, split: Split) -> Run:
    """Return the candidates of a split in the order of a first stage; those without a word of the query come last."""
    candidates = split.candidates or {}
    named = {document for scores in candidates.values() for document in scores}
    found = retriever.retrieve(split.queries, max(1, len(named)), set(collection.documents) - named)
    run: Run = {}
    for query_id, scores in candidates.items():
        known = found.get(query_id, {})
        last = min(known.values(), default=0.0) - 1
        mine = {document: known.get(document, last) for document in scores}
        run[query_id] = {document: mine[document] for document in ranked(mine)}
    return run


def model_row(
    config: DictConfig, recipe: Recipe, task: Task, unfinished: Unfinished, models: Path | None,
    cache: WeightCache | None,
) -> Row:  # fmt: skip
    """Train a recipe's model and re-rank with it."""
    processes.count()  # under torchrun this gives each process its GPU
    device = "cuda" if torch.cuda.is_available() else "cpu"
    memory = PeakMemory()
    builder = graph_builder(config, recipe, task, device, cache)
    set_seed(config.seed)
    model = instantiate(recipe.config.model).to(device)
    if config.trainer.compile:
        model.compile_layers()
    size = sum(parameter.numel() for parameter in model.parameters())
    groups = TrainingGroups(task.train, config.trainer.groups, config.trainer.negatives, config.seed)
    log.info("%s: training %.1f M parameters on %d groups, %s", recipe.name, size / 1e6, len(groups), device)
    training = unfinished.trained(
        model, lambda: train(config, recipe.config, task, model, builder, groups, unfinished.training)
    )
    log.info("%s: trained in %.0f s", recipe.name, training.seconds)
    if models is not None and processes.is_first():
        model.save_pretrained(models / plain(recipe.name))
    found = {
        split: rerank(config, recipe.config, queries, model, builder, unfinished.journal(split))
        for split, queries in {config.data.splits.dev: task.dev, **task.tests}.items()
    }
    return Row(
        recipe.name, found[config.data.splits.dev], {name: found[name] for name in task.tests}, training.seconds,
        size, memory.read(), training.log, builder,
    )  # fmt: skip


def graph_builder(
    config: DictConfig, recipe: Recipe, task: Task, device: str, cache: WeightCache | None = None
) -> GraphBuilder:
    """Return what builds the graphs of a recipe."""
    tokens, statistics = task.texts(config.backbone, recipe.config.document_length, config.query_length)
    builder = GraphBuilder(
        task.collection.documents, tokens, statistics, recipe.edges, recipe.circles, recipe.passages,
        recipe.relevance, recipe.config.joint, seed=config.seed, device=device, cache=cache,
    )  # fmt: skip
    if builder.lazy is None:
        builder.lazy = True  # no model reads the edges
    return builder


def train(
    config: DictConfig, recipe: DictConfig, task: Task, model: torch.nn.Module, builder: GraphBuilder,
    groups: TrainingGroups, folder: Path,
) -> Training:  # fmt: skip
    """Train the model, stage by stage where the recipe has stages."""
    history: list[dict[str, Any]] = []
    arguments = OmegaConf.to_container(config.trainer.arguments) | OmegaConf.to_container(recipe.training.arguments)
    seconds = 0.0
    for stage, part in stages(recipe.stages, len(groups)):
        if stage:
            log.info("%s: stage %s, %d groups", recipe.name, stage, len(part))
        place, start = folder / stage if stage else folder, time.perf_counter()
        before = last_whole(place)
        lines = ranking.train(
            model, builder, Subset(groups, part), task.train.queries, place,
            loss=recipe.training.loss, head_learning_rate=recipe.training.head_learning_rate, stage=stage,
            resume=True, bf16=bf16(config), use_cpu=builder.device.type == "cpu", seed=config.seed,
            **shared_out(arguments, processes.count()), **saving(config.trainer.save_every),
        )  # fmt: skip
        history += [{"stage": stage, **line} if stage else line for line in lines]
        seconds += whole_time(time.perf_counter() - start, 0 if before is None else step(before), lines[-1]["step"])
    return Training(history, seconds)


def whole_time(seconds: float, first: int, last: int) -> float:
    """Return what all steps would have taken at the pace of those after ``first``; nothing, if there were none."""
    return seconds * last / (last - first) if last > first else 0.0


def saving(every: int) -> dict[str, Any]:
    """Return the library's arguments for a checkpoint every so many steps; 0: none."""
    return {"save_strategy": "steps", "save_steps": every} if every else {"save_strategy": "no"}


def shared_out(arguments: dict[str, Any], among: int) -> dict[str, Any]:
    """Return a process's share of the training arguments: batches count the groups of all processes together.

    So the number of processes changes how long a training takes, and not what is trained.

    Raises:
        OptionError: a batch cannot be divided among so many.
    """
    batch, steps = arguments.get("per_device_train_batch_size", 8), arguments.get("gradient_accumulation_steps", 1)
    if steps % among == 0:
        return arguments | {"gradient_accumulation_steps": steps // among}
    if batch % among == 0:
        return arguments | {"per_device_train_batch_size": batch // among}
    raise OptionError(
        f"a step of {batch} x {steps} groups cannot be divided among {among} processes: choose a multiple, such as "
        f"trainer.arguments.per_device_train_batch_size={among * batch}"
    )


def stages(shares: DictConfig | None, groups: int) -> Iterator[tuple[str | None, range]]:
    """Yield each stage of training with its groups: consecutive, by its share, one group at least."""
    if shares is None:
        yield None, range(groups)
        return
    total, before = sum(shares.values()), 0.0
    for stage, share in shares.items():
        first, last = round(groups * before / total), round(groups * (before + share) / total)
        first = min(first, groups - 1)
        yield str(stage), range(first, max(first + 1, last))
        before += share


def rerank(
    config: DictConfig, recipe: DictConfig, split: Split, model: torch.nn.Module, builder: GraphBuilder, journal: Path
) -> Ranked:
    """Return a split's candidates in the model's order, and the seconds for each document.

    With stored vectors the time is that of re-ranking, without reading the documents once before it.
    """
    candidates, options = split.candidates or {}, {"bf16": bf16(config), "journal": journal}
    began, known = time.perf_counter(), sum(map(len, finished(journal).values()))
    if recipe.stored:
        named = sorted({document for scores in candidates.values() for document in scores})
        vectors = journal.with_name(f"{journal.name}-vectors")
        if not processes.from_first(vectors.exists()):
            encode_collection(model, builder, named, vectors, config.trainer.token_budget, bf16=bf16(config))
        began = time.perf_counter()
        run = rerank_stored(model, VectorStore(vectors), builder, split.queries, candidates, **options)
    else:
        run = ranking.rerank(
            model, builder, split.queries, candidates, token_budget=config.trainer.token_budget, **options
        )
    seconds, pairs = time.perf_counter() - began, sum(map(len, run.values()))
    return Ranked(run, seconds / (pairs - known) if pairs > known else None)


def partition(config: DictConfig) -> Partition:
    """Return the partition, leaving out options of the default that a class of the user's own does not take."""
    try:
        taken = inspect.signature(get_class(config._target_)).parameters
    except (ImportError, ValueError) as error:
        raise OptionError(f"partition._target_={config._target_}: {str(error).splitlines()[0]}") from error
    names = [name for name in config if not str(name).startswith("_")]
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values()):
        return instantiate(config)
    left_out = [name for name in names if name not in taken]
    written = str(OmegaConf.to_container(config, resolve=False))
    unused = [str(name) for name in left_out if f"${{partition.{name}}}" not in written]  # see partition/random.yaml
    if unused:
        log.warning("%s takes no %s: left out", config._target_, ", ".join(unused))
    options: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    return instantiate({name: value for name, value in options.items() if name not in left_out})


def short(circles: Partition | None) -> str:
    """Return "edge" for EdgeCircles, and so on."""
    return type(circles).__name__.removesuffix("Circles").lower()


def bf16(config: DictConfig) -> bool:
    """Tell whether to compute in bfloat16: "auto" where the hardware does; elsewhere it is slower than float32."""
    if config.trainer.bf16 != "auto":
        return bool(config.trainer.bf16)
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    found = torch.cpu.get_capabilities()
    return bool(found.get("avx512_bf16") or found.get("amx_bf16") or found.get("bf16"))
