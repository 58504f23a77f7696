"""How a model of a recipe learns, stage by stage, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch.utils.data import Subset

from socialgraph import ranking
from socialgraph.data import Collection, GraphBuilder, TrainingGroups
from socialgraph.data.files import file_name
from socialgraph.errors import InputError, OptionError, check_whole

#: options of a training that others may see; the rest may be keys, or folders of this machine
PUBLIC = (
    "adam_beta1", "adam_beta2", "adam_epsilon", "bf16", "fp16", "gradient_accumulation_steps",
    "gradient_checkpointing", "learning_rate", "lr_scheduler_type", "max_grad_norm", "max_steps", "num_train_epochs",
    "optim", "per_device_train_batch_size", "seed", "warmup_ratio", "warmup_steps", "weight_decay",
)  # fmt: skip


def train_stages(
    model: torch.nn.Module, builder: GraphBuilder, groups: TrainingGroups, folder: Path, recipe: Mapping[str, Any],
    **options: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """Train a model as its recipe says, stage after stage, each in a folder of its own; return the log of all.

    Args:
        model: what learns.
        builder: builds its graphs.
        groups: divided among the stages.
        folder: where checkpoints go.
        recipe: its values.
        options: of :func:`socialgraph.ranking.train`, over the recipe's arguments.

    Raises:
        OptionError: the recipe has stages and the model none, or none of this name.
    """
    training, log = recipe["training"], list[dict[str, Any]]()
    kept = {name: training[name] for name in ("loss", "head_learning_rate")}
    kept["fresh_draws"] = bool(training.get("fresh_draws"))
    for stage, part in stages(recipe["stages"], len(groups)):
        place = folder
        if stage is not None:
            enter = getattr(model, "enter", None)
            if enter is None:
                raise OptionError(f"recipe.stages: {type(model).__name__} has no stages of training, got {stage!r}")
            enter(stage)
            place = folder / file_name(stage)  # whatever it is called, inside the folder of the training
        lines = ranking.train(
            model, builder, Subset(groups, part), place,  # type: ignore[arg-type]
            **{**kept, **training["arguments"], **options},
        )  # fmt: skip
        log += [{"stage": stage, **line} if stage else line for line in lines]
    return log


def stages(shares: Mapping[str, float] | None, groups: int) -> Iterator[tuple[str | None, range]]:
    """Yield each stage of training with its groups: consecutive, by its share, one group at least.

    Args:
        shares: a recipe's ``stages``; None: there is one, which has no name.
        groups: number of training groups.
    """
    if shares is None:
        yield None, range(groups)
        return
    total, before = sum(shares.values()), 0.0
    for stage, share in shares.items():
        first, last = round(groups * before / total), round(groups * (before + share) / total)
        first = min(first, groups - 1)
        yield str(stage), range(first, max(first + 1, last))
        before += share


def steps_taken(log: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of steps of all stages together.

    Args:
        log: lines of :func:`socialgraph.ranking.train`, those of a stage with its name as ``stage``.
    """
    last = {line.get("stage"): int(line["step"]) for line in log if "step" in line}
    return sum(last.values())


def record(
    collection: Collection, groups: TrainingGroups, loss: str, options: Mapping[str, Any], log: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return what the model card tells of a training."""
    return {
        "collection": collection.name, "queries": len(groups.query_ids), "groups": len(groups),
        "negatives": groups.negatives, "loss": loss,
        "options": {name: str(value) for name, value in public_options(options).items()}, "steps": steps_taken(log),
    }  # fmt: skip


def public_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a training that others may see."""
    return {name: value for name, value in options.items() if name in PUBLIC}


def with_candidates(collection: Collection, names: Sequence[str], depth: int) -> Collection:
    """Return the collection with candidates for these splits; where one has none, with those that BM25 retrieves.

    Raises:
        InputError: it is no collection, or has no such split.
        OptionError: depth below 1.
    """
    if not isinstance(collection, Collection):
        raise InputError(f"expected a Collection, such as load_folder(path), got {type(collection).__name__}")
    check_whole("depth", depth, 1)
    return ranking.retrieve_candidates(collection, ranking.BM25(), depth, names)


def interval(values: Mapping[str, float]) -> tuple[float, float | None, float | None]:
    """Return the mean, and the bounds of its interval at 95 % confidence (Student's t); of one value it has none."""
    if len(values) < 2:
        return fmean(values.values()), None, None
    test = ranking.paired_t_test(values, dict.fromkeys(values, 0.0))
    return test.difference, *test.interval
