"""A system from its recipe (socialgraph/recipes): put together for a task, trained, re-ranking."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from lab.options.classes import check_arguments, check_parts, typed_as
from lab.outcome import Ranked
from lab.task import Task, read_texts
from lab.unfinished import Training
from socialgraph import ranking
from socialgraph.backbone import has_bfloat16
from socialgraph.data import Cache, GraphBuilder, Split, TrainingGroups
from socialgraph.edges import SocialEdges
from socialgraph.edges.sampler_laws import checked_edges
from socialgraph.errors import OptionError, is_own
from socialgraph.ranker import Ranker
from socialgraph.ranker.training import record, stage_folder, train_stages
from socialgraph.ranking import processes
from socialgraph.ranking.checkpoints import last_whole, step
from socialgraph.ranking.journal import read_journal
from socialgraph.recipes.build import PARTS, Parts, build_named
from socialgraph.recipes.compose import merged
from socialgraph.recipes.stages import enter, stages, steps_taken
from socialgraph.testing import check_model, check_partition, check_pattern
from socialgraph.testing.documents import hard_documents


class Recipe:
    """A run's recipe with its edges and circles made, so that a mistake there shows at once.

    Args:
        config: of the run.
    """

    def __init__(self, config: DictConfig) -> None:
        self.config, recipe = config, config.recipe
        values: dict[str, Any] = OmegaConf.to_container(recipe, resolve=True)  # type: ignore[assignment]
        self.typed = {name: typed_as(recipe, name) for name in (*PARTS, "model", "first_stage")}
        for name, option in self.typed.items():
            check_parts(values[name], option)
        self.values = {**values, **merged(recipe)}
        self.parts = Parts.of(self.values, typed=self.typed)
        kind = type(self.parts.circles).__name__.removesuffix("Circles").lower()  # "edge" for EdgeCircles, and so on
        self.name = str(recipe.name).replace("{circles}", kind)

    def model(self) -> torch.nn.Module:
        """Return its model, as it is before training.

        Raises:
            OptionError: it has none, or a class does not take its options.
        """
        if self.values["model"] is None:
            raise OptionError("recipe.model and recipe.first_stage are null: nothing ranks")
        return build_named(self.values["model"], self.typed["model"])

    def ranker(
        self, model: torch.nn.Module, builder: GraphBuilder, groups: TrainingGroups, task: Task,
        log: list[dict[str, Any]],
    ) -> Ranker:  # fmt: skip
        """Return the trained model with all that it needs to rank texts."""
        config = self.config
        values = {**self.values, "name": self.name, "query_length": config.query_length, "seed": config.seed}
        arguments = OmegaConf.to_container(config.trainer.arguments) | self.values["training"]["arguments"]
        trained = record(task.collection, groups, self.values["training"]["loss"], arguments, log)
        return Ranker(values, self.parts, model, builder.tokens, builder.statistics, {"training": trained})

    @property
    def is_first_stage(self) -> bool:
        """Whether it has no model: the candidates are ranked by a retriever's scores."""
        return self.config.recipe.first_stage is not None

    def builder(self, task: Task, cache: Cache | None = None) -> GraphBuilder:
        """Return what builds its graphs; its models read no edges."""
        config, recipe = self.config, self.config.recipe
        backbone = recipe.model.get("backbone", config.backbone)  # a model may have word pieces of its own
        documents, lengths = task.collection.documents, (recipe.document_length, config.query_length)
        tokens, statistics = read_texts(task.collection, backbone, *lengths)
        options = {"seed": config.seed, "device": device(), "cache": cache, "check": config.check}
        options["first_stage"] = task.collection.first_stage_score
        return self.parts.builder(documents, tokens, statistics, **options)


def check_own_classes(recipe: Recipe) -> None:
    """Try edges and partitions from outside the package on hard graphs; those of the package have passed.

    Raises:
        LawError: one breaks a law that the rest relies on.
        OptionError: one has changed what all models share.
    """
    edges = recipe.parts.edges
    patterns = [one for one in edges.patterns.values() if is_own(one)] if isinstance(edges, SocialEdges) else []
    samplers = [edges] if edges is not None and is_own(edges) else []
    partitions = [one for one in (recipe.parts.circles, recipe.parts.passages) if one is not None and is_own(one)]
    for sampler in samplers if not recipe.parts.joint else ():
        for document in hard_documents(torch.device("cpu")).values():
            checked_edges(sampler, document, both_ways=True)
    for pattern in patterns:
        check_pattern(pattern)
    for partition in partitions:
        check_partition(partition)
    if torch.get_default_dtype() != torch.float32:
        told = "a class or file of your own sets PyTorch's default type to"
        raise OptionError(f"{told} {torch.get_default_dtype()}, and models are torch.float32: take that out")
    for part in (*samplers, *patterns, *partitions):
        if learned := [name for name, weight in part.named_parameters() if weight.requires_grad]:
            told = f"{type(part).__name__}: {', '.join(learned)[:80]} will not be trained, as drawing has no gradient"
            warnings.warn(f"{told}; requires_grad_(False) says that this is meant", stacklevel=2)


def check_training(recipe: Recipe) -> None:
    """Make a run's model and the library's arguments, so that a mistake shows before anything is ranked or trained.

    A model from outside the package is tried on hard pairs.

    Raises:
        LawError: a model of one's own breaks a law that training and ranking rely on.
        OptionError: an option that a class or the library does not take, a model of a kind that cannot be trained and
            saved, or a stage that the model does not have.
    """
    model, config = recipe.model(), recipe.config
    if is_own(model):
        if config.recipe.training is None and isinstance(model, torch.nn.Module):
            model.requires_grad_(False)  # of one that is not trained, no gradients are asked
        check_model(model, recipe.parts.joint, recipe.parts.relevance is not None)
    if config.recipe.training is None:
        return
    for stage in config.recipe.stages or ():
        enter(model, stage)
    check_arguments(config)


def device() -> str:
    """Return where models compute."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def bf16(config: DictConfig) -> bool:
    """Tell whether to compute in bfloat16: "auto" where the hardware does."""
    return has_bfloat16(device()) if config.trainer.bf16 == "auto" else bool(config.trainer.bf16)


def train(
    config: DictConfig, model: torch.nn.Module, builder: GraphBuilder, groups: TrainingGroups, folder: Path
) -> Training:
    """Train the model, stage by stage where the recipe has stages; checkpoints go to the folder."""
    recipe: dict[str, Any] = OmegaConf.to_container(config.recipe, resolve=True)  # type: ignore[assignment]
    arguments = OmegaConf.to_container(config.trainer.arguments) | recipe["training"]["arguments"]
    places = [stage_folder(folder, stage) for stage, _ in stages(recipe["stages"], len(groups))]
    there = processes.run_in_first(lambda: [last_whole(place) for place in places])
    before = sum(step(checkpoint) for checkpoint in there if checkpoint is not None)
    start = time.perf_counter()
    log = train_stages(
        model, builder, groups, folder, recipe,
        resume=True, bf16=bf16(config), use_cpu=builder.device.type == "cpu", seed=config.seed,
        save_strategy="steps" if config.trainer.save_every else "no", save_steps=config.trainer.save_every or 1,
        **divided(arguments, processes.count()),
    )  # fmt: skip
    return Training(log, whole_time(time.perf_counter() - start, before, steps_taken(log)))


def whole_time(seconds: float, first: int, last: int) -> float:
    """Return what all steps would have taken at the pace of those after ``first``; nothing, if there were none."""
    return seconds * last / (last - first) if last > first else 0.0


def divided(arguments: dict[str, Any], among: int) -> dict[str, Any]:
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


def rerank(config: DictConfig, split: Split, model: torch.nn.Module, builder: GraphBuilder, journal: Path) -> Ranked:
    """Return a split's candidates in the model's order, and the seconds for each document."""
    candidates, options = split.candidates or {}, {"bf16": bf16(config), "journal": journal, "distributed": True}
    began, known = time.perf_counter(), len(read_journal(journal))
    budget = config.trainer.token_budget
    ordered = ranking.rerank(model, builder, split.queries, candidates, token_budget=budget, **options)
    seconds, pairs = time.perf_counter() - began, sum(map(len, ordered.values()))
    each = seconds / (pairs - known) if pairs > known else None
    return Ranked.of(split, ordered, list(config.measures), each)
