"""A run from its configuration to its files: a system is put together, trained, re-ranks and is measured.

Under torchrun or accelerate launch every process takes the same steps; the first one writes.
"""

from __future__ import annotations

import logging
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf
from transformers import TrainingArguments, set_seed

from lab.results import Results
from lab.rows import Run
from lab.task import Task, instantiate_as, load_task, rank_by_first_stage, read_texts
from socialgraph import ranking
from socialgraph.backbone import has_bfloat16
from socialgraph.data import Cache, GraphBuilder, Split, TrainingGroups
from socialgraph.data.collection import Run as Ranking
from socialgraph.data.files import check_room, file_name
from socialgraph.errors import OptionError, counted, first_line
from socialgraph.ranking import Retriever, processes
from socialgraph.ranking.interpolate import DEFAULT_WEIGHT
from socialgraph.recipes.build import PARTS, Parts, build_named
from socialgraph.recipes.compose import merged

log = logging.getLogger("socialgraph")

#: arguments of the library's trainer that follow from other options
ELSEWHERE = {
    "seed": "seed", "bf16": "trainer.bf16", "save_steps": "trainer.save_every", "save_strategy": "trainer.save_every",
    "output_dir": "hydra.run.dir", "use_cpu": "CUDA_VISIBLE_DEVICES", "resume_from_checkpoint": "hydra.run.dir",
}  # fmt: skip

#: measure -> query -> value
Measures = dict[str, dict[str, float]]
#: does the work of a run: a ranking, and what its JSON says beside the ranking
Work = Callable[[Run, "System", Task], tuple[Ranking, dict[str, Any]]]


class System:
    """A recipe with its edges and circles made, so that a mistake there shows at once; its model is made once.

    Args:
        config: of a row.

    Raises:
        OptionError: a class or the library's trainer does not take an option.
    """

    def __init__(self, config: DictConfig) -> None:
        self.config = config
        values: dict[str, Any] = OmegaConf.to_container(config.recipe, resolve=True)  # type: ignore[assignment]
        self.values = {**values, **merged(config.recipe)}
        self.typed = {name: typed_as(config.recipe, name) for name in (*PARTS, "model", "first_stage")}
        self.parts = Parts.of(self.values, typed=self.typed)
        kind = type(self.parts.circles).__name__.removesuffix("Circles").lower()  # "edge" for EdgeCircles, and so on
        self.name = str(config.recipe.name).replace("{circles}", kind)
        self.is_first_stage = values["first_stage"] is not None
        if not self.is_first_stage and values["model"] is None:
            raise OptionError("recipe.model and recipe.first_stage are null: nothing ranks")
        self.bf16 = bf16(config)
        self.is_trainable = not self.is_first_stage and values["training"] is not None and config.trainer.groups > 0
        self.arguments = training_arguments(config) if self.is_trainable else {}

    @cached_property
    def model(self) -> torch.nn.Module:
        """Its model, as it is before training."""
        model: torch.nn.Module = build_named(self.values["model"], self.typed["model"])
        return model.to(device())

    def builder(self, task: Task, cache: Cache | None = None) -> GraphBuilder:
        """Return what builds its graphs; its models read no edges."""
        config, recipe = self.config, self.config.recipe
        backbone = recipe.model.get("backbone", config.backbone)  # a model may have word pieces of its own
        tokens, statistics = read_texts(task.collection, backbone, recipe.document_length, config.query_length)
        return self.parts.builder(
            task.collection.documents, tokens, statistics, seed=config.seed, device=device(), cache=cache,
            check=config.check, first_stage=task.first_stage_score,
        )  # fmt: skip

    def train(self, builder: GraphBuilder, groups: TrainingGroups, folder: Path) -> list[dict[str, Any]]:
        """Train the model, stage by stage where the recipe has stages; return the log, a dict a line.

        A killed training goes on in its folder.
        """
        from socialgraph.ranker.training import train_stages  # the library's trainer, which is slow to import

        trainer = self.config.trainer
        return train_stages(
            self.model, builder, groups, folder, self.values,
            resume=True, bf16=self.bf16, use_cpu=builder.device.type == "cpu", seed=self.config.seed,
            save_strategy="steps" if trainer.save_every else "no", save_steps=trainer.save_every or 1,
            **per_process(self.arguments, processes.count()),
        )  # fmt: skip

    def rerank(self, split: Split, builder: GraphBuilder, journal: Path) -> Ranking:
        """Return a split's candidates in the model's order; a killed re-ranking goes on from its journal."""
        return ranking.rerank(
            self.model, builder, split.queries, split.candidates or {}, self.config.trainer.token_budget,
            bf16=self.bf16, journal=journal, distributed=True,
        )  # fmt: skip

    def save(self, folder: Path, builder: GraphBuilder, groups: TrainingGroups, task: Task, lines: list[Any]) -> None:
        """Save the trained model with all that it needs to rank texts, see :class:`socialgraph.Ranker`."""
        from socialgraph.ranker import Ranker
        from socialgraph.ranker.training import record

        values = {**self.values, "name": self.name, "query_length": self.config.query_length, "seed": self.config.seed}
        told = record(task.collection, groups, self.values["training"]["loss"], self.arguments, lines)
        ranker = Ranker(values, self.parts, self.model, builder.tokens, builder.statistics, {"training": told})
        ranker.save_pretrained(folder)


def typed_as(recipe: DictConfig, part: str) -> str:
    """Return the option by which the user names a part of a recipe: "partition" where circles are ``${partition}``."""
    written = str(OmegaConf.to_container(recipe, resolve=False)[part])  # type: ignore[index, call-overload]
    group = re.fullmatch(r"\$\{(\w+)\}", written)
    return group[1] if group else f"recipe.{part}"


def training_arguments(config: DictConfig) -> dict[str, Any]:
    """Return the arguments of the library's trainer, having made them, so that a mistake shows before it begins.

    Raises:
        OptionError: the library does not take an argument, or it follows from another option.
    """
    arguments: dict[str, Any] = {}
    for group in ("trainer", "recipe.training"):
        own = OmegaConf.to_container(OmegaConf.select(config, f"{group}.arguments"), resolve=True)
        for name in own:
            if name in ELSEWHERE:
                raise OptionError(f"{group}.arguments.{name} follows from another option: {ELSEWHERE[name]}")
        arguments |= own  # type: ignore[arg-type]
    try:
        with warnings.catch_warnings(action="ignore"):
            TrainingArguments(output_dir="unused", use_cpu=True, **arguments)
    except (TypeError, ValueError, ImportError) as error:
        raise OptionError(f"trainer.arguments: {first_line(error)}") from error
    return arguments


def per_process(arguments: dict[str, Any], count: int) -> dict[str, Any]:
    """Return a process's training arguments: batches count the groups of all processes together.

    So the number of processes changes how long a training takes, and not what is trained.

    Raises:
        OptionError: a batch cannot be divided among so many.
    """
    batch, steps = arguments.get("per_device_train_batch_size", 8), arguments.get("gradient_accumulation_steps", 1)
    if steps % count == 0:
        return arguments | {"gradient_accumulation_steps": steps // count}
    if batch % count == 0:
        return arguments | {"per_device_train_batch_size": batch // count}
    raise OptionError(
        f"a step of {batch} x {steps} groups cannot be divided among {count} processes: choose a multiple, such as "
        f"trainer.arguments.per_device_train_batch_size={count * batch}"
    )


def device() -> str:
    """Return where models compute."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def bf16(config: DictConfig) -> bool:
    """Tell whether to compute in bfloat16: "auto" where the hardware does."""
    if config.trainer.bf16 not in (True, False, "auto"):
        raise OptionError(f"trainer.bf16 must be true, false or auto, got {config.trainer.bf16!r}")
    return has_bfloat16(device()) if config.trainer.bf16 == "auto" else bool(config.trainer.bf16)


# --- runs -------------------------------------------------------------------------------------------------------------


def check_rows(runs: Sequence[Run]) -> None:
    """Make the edges and circles of the runs that are not finished, so that a mistake shows before the first one.

    Raises:
        OptionError: a class, or the library's trainer, does not take an option.
        InputError: there is no split to train on.
    """
    for run in runs:
        if run.result() is None and System(run.config).is_trainable and run.kind in ("", "untrained"):
            _ = load_task(run.config.data).collection[str(run.config.data.splits.train)]


def run_rows(runs: Sequence[Run], work: Work | None = None) -> None:
    """Execute the runs that are not finished; what another process is at is left to it."""
    waiting = processes.from_first([place for place, run in enumerate(runs) if run.result() is None])
    for number, place in enumerate(waiting, 1):
        run_row(runs[place], work, f"[{number}/{len(waiting)}] ")


def run_row(run: Run, work: Work | None = None, prefix: str = "") -> None:
    """Execute a run, or go on with it where it was killed; unless it is finished, or another process is at it."""
    folder = run.unfinished.parent
    with locked(folder) as is_mine:
        if not is_mine:
            log.info("%s%s: another process is at it", prefix, run.name)
            return
        value, reason = processes.from_first(run.find())
        if value is None:
            if reason != "new":
                log.info("%s%s: %s; again", prefix, run.name, reason)
            if run.unfinished.exists():
                log.info("going on with %s", run.unfinished)
            began, task = time.perf_counter(), load_task(run.config.data)
            set_seed(run.config.seed)  # for edges and circles that are born at random
            system = System(run.config)
            ordered, value = (work or train_and_rank)(run, system, task)
            value = {
                "name": system.name, "collection": task.collection.name, "dev_measures": {}, "interpolated": None,
                "training_seconds": None, "parameters": None, "peak_memory_bytes": None, "training": [],
                **value, "seconds": time.perf_counter() - began, "config": run.depends,
            }  # fmt: skip
            if processes.is_first():
                Results(run.folder).write(run.name, ordered, value)
            reached = ", ".join(f"{name} {mean:.3f}" for name, mean in means(value["measures"]).items())
            log.info("%s%s: %s; %.0f s", prefix, run.name, reached, value["seconds"])
        processes.wait()
        if processes.is_first():
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # others may be in work
                folder.parent.rmdir()


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold a run's folder, of one process or of several together; tell whether it could be held.

    The lock is the operating system's: a process that dies lets go of it.

    Raises:
        OutputError: the folder cannot be written.
    """
    lock = FileLock(folder / ".lock")
    is_mine = True
    if processes.is_first():
        try:
            check_room(folder)
            lock.acquire(timeout=0)
        except (Timeout, FileNotFoundError):  # held; or finished by another process, which removes it just now
            is_mine = False
    try:
        yield processes.from_first(is_mine)
    finally:
        lock.release()


def train_and_rank(run: Run, system: System, task: Task) -> tuple[Ranking, dict[str, Any]]:
    """Train a system and re-rank with it; what learns nothing is ranked as it is."""
    config, folder, dev, test = run.config, run.unfinished, task.dev, task.test
    if system.is_first_stage:
        first = instantiate_as(system.values["first_stage"], "recipe.first_stage", Retriever).fit(
            task.collection.documents
        )
        on_dev, ordered = rank_by_first_stage(first, dev), rank_by_first_stage(first, test)
        alone = {"interpolated": None, "seconds_per_document": None}
        return ordered, {**evaluated(config, dev, on_dev, test, ordered), **alone}
    processes.count()  # under torchrun this gives each process its GPU
    if device() == "cuda":
        torch.cuda.reset_peak_memory_stats()
    # a training finds the costly weights of what was ranked before it, in this process or in another one
    weights = run.folder / ".weights" / file_name(run.row.name)
    builder = system.builder(task, Cache(weights) if config.get("untrained") else None)
    set_seed(config.seed)
    model, lines, training = system.model, list[dict[str, Any]](), Clock()
    if system.is_trainable:
        groups = TrainingGroups(task.train, config.trainer.groups, config.trainer.negatives, config.seed)
        with timed(folder / "training") as training:
            lines = system.train(builder, groups, folder / "training")
        log.info("%s: trained on %s", system.name, counted(len(groups), "group"))
        if config.get("keep_models") and processes.is_first():
            system.save(run.folder / "models" / file_name(run.name), builder, groups, task, lines)
    on_dev = system.rerank(dev, builder, folder / "scores" / "dev")
    with timed(folder / "scores" / "test") as reranking:
        ordered = system.rerank(test, builder, folder / "scores" / "test")
    pairs = sum(map(len, ordered.values()))
    return ordered, {
        **evaluated(config, dev, on_dev, test, ordered),
        "seconds_per_document": reranking.seconds / pairs if reranking.seconds and pairs else None,
        "training_seconds": training.seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if device() == "cuda" else None,
        "training": lines,
    }


@dataclass
class Clock:
    """The seconds that a block took; None where it went on from what was there before."""

    seconds: float | None = None


@contextmanager
def timed(folder: Path) -> Iterator[Clock]:
    """Take the time of a block, which goes on where the folder of its work is there."""
    clock, goes_on, began = Clock(), processes.from_first(folder.exists()), time.perf_counter()
    yield clock
    clock.seconds = None if goes_on else time.perf_counter() - began


def evaluated(config: DictConfig, dev: Split, on_dev: Ranking, test: Split, ordered: Ranking) -> dict[str, Any]:
    """Return what is measured of a system, alone and mixed with the first stage.

    The weight of the mixture is the one that is best on dev by the first measure, or the default where no query of dev
    is ranked.
    """

    def measured(split: Split, run: Ranking) -> Measures:
        return ranking.evaluate(split.qrels, run, list(config.measures)).per_query

    weight, dev_measures = DEFAULT_WEIGHT, dict[str, float]()
    if dev.queries:
        dev_measures = means(measured(dev, on_dev))
        weight = ranking.choose_weight(dev.candidates or {}, on_dev, dev.qrels, config.measures[0])
    mixed = measured(test, ranking.interpolate(test.candidates or {}, ordered, weight))
    return {
        "measures": measured(test, ordered),
        "dev_measures": dev_measures,
        "interpolated": {"weight": weight, "measures": {str(config.data.splits.test): mixed}},
    }


def means(measures: Measures) -> dict[str, float]:
    """Return measure -> mean over the queries."""
    return {name: fmean(values.values()) for name, values in measures.items()}
