"""A system, put together from its recipe (socialgraph/recipes) for a task."""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from transformers import TrainingArguments

from lab.task import Task, read_texts
from socialgraph import ranking
from socialgraph.backbone import has_bfloat16
from socialgraph.data import Cache, GraphBuilder, Split, TrainingGroups
from socialgraph.data.collection import Run as Ranking
from socialgraph.errors import OptionError, first_line
from socialgraph.ranker import Ranker
from socialgraph.ranker.training import record, train_stages
from socialgraph.ranking import processes
from socialgraph.recipes.build import PARTS, Parts, build_named
from socialgraph.recipes.compose import merged

#: arguments of the library's trainer that follow from other options
ELSEWHERE = {
    "seed": "seed", "bf16": "trainer.bf16", "save_steps": "trainer.save_every", "save_strategy": "trainer.save_every",
    "output_dir": "hydra.run.dir", "use_cpu": "CUDA_VISIBLE_DEVICES", "resume_from_checkpoint": "hydra.run.dir",
}  # fmt: skip


@dataclass
class Training:
    """How a training went: its log, one dict a line, and the seconds it took, None where it went on from before."""

    log: list[dict[str, Any]]
    seconds: float | None


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
        bf16(config)
        if not self.is_first_stage and values["model"] is None:
            raise OptionError("recipe.model and recipe.first_stage are null: nothing ranks")
        self.is_trainable = not self.is_first_stage and values["training"] is not None and config.trainer.groups > 0
        if self.is_trainable:
            self.arguments = training_arguments(config)

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

    def train(self, builder: GraphBuilder, groups: TrainingGroups, folder: Path) -> Training:
        """Train the model, stage by stage where the recipe has stages; a killed training goes on in its folder."""
        trainer = self.config.trainer
        goes_on = processes.from_first(folder.exists())
        start = time.perf_counter()
        log = train_stages(
            self.model, builder, groups, folder, self.values,
            resume=True, bf16=bf16(self.config), use_cpu=builder.device.type == "cpu", seed=self.config.seed,
            save_strategy="steps" if trainer.save_every else "no", save_steps=trainer.save_every or 1,
            **per_process(self.arguments, processes.count()),
        )  # fmt: skip
        return Training(log, None if goes_on else time.perf_counter() - start)

    def rerank(self, split: Split, builder: GraphBuilder, journal: Path) -> tuple[Ranking, float | None]:
        """Return a split's candidates in the model's order, and the seconds for each; None where it went on."""
        goes_on, began = processes.from_first(journal.exists()), time.perf_counter()
        ordered = ranking.rerank(
            self.model, builder, split.queries, split.candidates or {}, self.config.trainer.token_budget,
            bf16=bf16(self.config), journal=journal, distributed=True,
        )  # fmt: skip
        pairs = sum(map(len, ordered.values()))
        return ordered, None if goes_on or not pairs else (time.perf_counter() - began) / pairs

    def save(self, folder: Path, builder: GraphBuilder, groups: TrainingGroups, task: Task, training: Training) -> None:
        """Save the trained model with all that it needs to rank texts, see :class:`socialgraph.Ranker`."""
        values = {**self.values, "name": self.name, "query_length": self.config.query_length, "seed": self.config.seed}
        told = record(task.collection, groups, self.values["training"]["loss"], self.arguments, training.log)
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
