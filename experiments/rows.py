"""From a recipe to a finished row of a table: train, re-rank, measure. All scripts take these steps."""

from __future__ import annotations

import inspect
import logging
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from hydra.utils import get_class, instantiate
from memory import PeakMemory
from omegaconf import DictConfig, OmegaConf
from torch.utils.data import Subset
from transformers import set_seed

from socialgraph import ranking
from socialgraph.data import Collection, GraphBuilder, Split, TermStatistics, Tokens, TrainingGroups, read_run
from socialgraph.data.collection import Run, hash_fraction, ranked
from socialgraph.partition import Partition
from socialgraph.ranking import Retriever
from socialgraph.ranking.stored import encode_collection, rerank_stored

log = logging.getLogger("socialgraph")


@dataclass
class Task:
    """What all rows share: the collection, the queries that are ranked, their candidates, texts as word pieces."""

    collection: Collection
    train: Split
    dev: Split
    test: Split
    first_stage: str  # what the candidates' source is called
    read: dict[Any, tuple[Tokens, TermStatistics]] = field(default_factory=dict)

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
class Row:
    """What became of a recipe."""

    name: str
    dev: Run
    test: Run
    measures: dict[str, dict[str, float]] = field(default_factory=dict)  # measure -> test query -> value
    dev_measures: dict[str, float] = field(default_factory=dict)  # means
    seconds: float | None = None  # of re-ranking, for each document
    training_seconds: float | None = None
    parameters: int | None = None
    memory: int | None = None  # bytes, at the worst moment of training and re-ranking
    training: list[dict[str, Any]] = field(default_factory=list)
    builder: GraphBuilder | None = None


def load_task(config: DictConfig) -> Task:
    """Load the collection with candidates for every split, those of the first stage where none are given."""
    collection = instantiate(config.data.collection)
    for split, path in config.data.runs.items():
        collection = collection.with_candidates(split, read_run(path))
    retriever = instantiate(config.data.retriever)
    given = collection[config.data.splits.test].has_candidates
    collection = ranking.retrieve_candidates(collection, retriever, config.data.depth)
    train, dev, test = (collection[config.data.splits[part]] for part in ("train", "dev", "test"))
    dev, test = some(dev, config.data.queries.dev), some(test, config.data.queries.test)
    return Task(collection, train, dev, test, "first stage" if given else type(retriever).__name__)


def some(split: Split, amount: int | None) -> Split:
    """Return a split with that many of its queries, those with the lowest hash, in their own order."""
    chosen = set(sorted(split.queries, key=hash_fraction)[:amount])
    return Split(
        {query_id: text for query_id, text in split.queries.items() if query_id in chosen},
        {query_id: grades for query_id, grades in split.qrels.items() if query_id in chosen},
        {query_id: scores for query_id, scores in (split.candidates or {}).items() if query_id in chosen},
    )


def make_row(config: DictConfig, recipe: Recipe, task: Task, checkpoints: Path, models: Path | None = None) -> Row:
    """Turn a recipe into a finished row: train, save, re-rank dev and test, measure.

    Args:
        config: the resolved configuration; its ``recipe`` is not read.
        recipe: what is made.
        task: the collection and its queries.
        checkpoints: folder of the training's checkpoints.
        models: folder where the model is saved under the row's name; None: it is not kept.
    """
    if recipe.config.first_stage is not None:
        row = first_stage_row(recipe, task)
    else:
        row = model_row(config, recipe, task, checkpoints, models)
    row.measures = ranking.evaluate(task.test.qrels, row.test, list(config.measures)).per_query
    row.dev_measures = ranking.evaluate(task.dev.qrels, row.dev, list(config.measures)).mean
    return row


def first_stage_row(recipe: Recipe, task: Task) -> Row:
    """Rank the same candidates as all other rows, by a first stage's scores."""
    retriever = instantiate(recipe.config.first_stage).fit(task.collection.documents)
    dev, test = (order(retriever, task.collection, split) for split in (task.dev, task.test))
    return Row(recipe.name, dev, test)


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


def model_row(config: DictConfig, recipe: Recipe, task: Task, checkpoints: Path, models: Path | None) -> Row:
    """Train a recipe's model and re-rank with it."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    memory = PeakMemory()
    builder = graph_builder(config, recipe, task, device)
    set_seed(config.seed)
    model = instantiate(recipe.config.model).to(device)
    if config.trainer.compile:
        model.compile_layers()
    row = Row(recipe.name, {}, {}, builder=builder)
    row.parameters = sum(parameter.numel() for parameter in model.parameters())
    groups = TrainingGroups(task.train, config.trainer.groups, config.trainer.negatives, config.seed)
    log.info("%s: training %.1f M parameters on %d groups, %s", row.name, row.parameters / 1e6, len(groups), device)
    began = time.perf_counter()
    row.training = train(config, recipe.config, task, model, builder, groups, checkpoints / recipe.name)
    row.training_seconds = time.perf_counter() - began
    log.info("%s: trained in %.0f s", row.name, row.training_seconds)
    if models is not None:
        model.save_pretrained(models / recipe.name)
    row.dev, _ = rerank(config, recipe.config, task.dev, model, builder)
    row.test, row.seconds = rerank(config, recipe.config, task.test, model, builder)
    row.memory = memory.read()
    return row


def graph_builder(config: DictConfig, recipe: Recipe, task: Task, device: str) -> GraphBuilder:
    """Return what builds the graphs of a recipe."""
    tokens, statistics = task.texts(config.backbone, recipe.config.document_length, config.query_length)
    builder = GraphBuilder(
        task.collection.documents, tokens, statistics, recipe.edges, recipe.circles, recipe.passages,
        recipe.relevance, recipe.config.joint, seed=config.seed, device=device,
    )  # fmt: skip
    if builder.lazy is None:
        builder.lazy = True  # no model reads the edges
    return builder


def train(
    config: DictConfig, recipe: DictConfig, task: Task, model: torch.nn.Module, builder: GraphBuilder,
    groups: TrainingGroups, folder: Path,
) -> list[dict[str, Any]]:  # fmt: skip
    """Train the model, stage by stage where the recipe has stages; return the log."""
    history: list[dict[str, Any]] = []
    arguments = OmegaConf.to_container(config.trainer.arguments) | OmegaConf.to_container(recipe.training.arguments)
    for stage, part in stages(recipe.stages, len(groups)):
        checkpoints = folder / stage if stage else folder
        if stage:
            log.info("%s: stage %s, %d groups", folder.name, stage, len(part))
        lines = ranking.train(
            model, builder, Subset(groups, part), task.train.queries, checkpoints,
            loss=recipe.training.loss, head_learning_rate=recipe.training.head_learning_rate, stage=stage,
            resume=config.trainer.resume and any(checkpoints.glob("checkpoint-*")),
            bf16=bf16(config), use_cpu=builder.device.type == "cpu", seed=config.seed, **arguments,
        )  # fmt: skip
        history += [{"stage": stage, **line} if stage else line for line in lines]
    return history


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
    config: DictConfig, recipe: DictConfig, split: Split, model: torch.nn.Module, builder: GraphBuilder
) -> tuple[Run, float]:
    """Return a split's candidates in the model's order, and the seconds for each document.

    With stored vectors the time is that of re-ranking, without reading the documents once before it.
    """
    candidates, budget = split.candidates or {}, config.trainer.token_budget
    options = {"token_budget": budget, "bf16": bf16(config)}
    if recipe.stored:
        with tempfile.TemporaryDirectory() as folder:
            named = sorted({document for scores in candidates.values() for document in scores})
            store = encode_collection(model, builder, named, Path(folder) / "vectors", **options)
            began = time.perf_counter()
            run = rerank_stored(model, store, builder, split.queries, candidates, bf16=options["bf16"])
            seconds = time.perf_counter() - began
            del store
    else:
        began = time.perf_counter()
        run = ranking.rerank(model, builder, split.queries, candidates, **options)
        seconds = time.perf_counter() - began
    return run, seconds / max(1, sum(map(len, run.values())))


def partition(config: DictConfig) -> Partition:
    """Return the partition, leaving out options of the default that a class of the user's own does not take."""
    taken = inspect.signature(get_class(config._target_)).parameters
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
