"""How a ranker learns, and how it is measured."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import Subset

from socialgraph import ranking
from socialgraph.data import Collection, GraphBuilder, TrainingGroups
from socialgraph.data.files import file_name
from socialgraph.errors import InputError, OptionError, is_whole
from socialgraph.ranking.evaluate import parse_measures
from socialgraph.recipes.stages import enter, stages, steps_taken

if TYPE_CHECKING:
    from socialgraph.ranker import Ranker

#: name of a split to measure on that is none of the collection's
DEV = "dev of this training"
#: steps from one checkpoint to the next, as a share of all
TENTH = 0.1


def fit(
    ranker: Ranker, collection: Collection, groups: int | None, negatives: int, dev: ranking.Dev | None,
    folder: str | PathLike[str] | None, depth: int, options: Mapping[str, Any],
) -> None:  # fmt: skip
    """Train a ranker, see :meth:`socialgraph.Ranker.fit`."""
    training = ranker.recipe["training"]
    if training is None:
        raise OptionError(f"recipe {ranker.recipe['name']} learns nothing")
    loss = options.get("loss", training["loss"])
    if "loss" not in options and "." in loss and loss.rpartition(".")[0] not in sys.modules:
        raise OptionError(f"the loss {loss!r} is not imported because a recipe says so: pass it, loss={loss!r}")
    if folder is None and dev is None and (lost := sorted(one for one in options if one.startswith("save_"))):
        raise OptionError(f"{', '.join(lost)}: nothing is kept without a folder; say folder=, too")
    seed, wanted = ranker.recipe["seed"], ["train"]
    if dev is not None:
        if not isinstance(dev, ranking.Dev):
            raise OptionError(f"dev must be a Dev, such as Dev(collection['dev']), got {type(dev).__name__}")
        wanted += [name for name, split in collection.splits.items() if split is dev.split][:1] or [DEV]
        if DEV in wanted:
            collection = Collection(collection.name, collection.documents, {**collection.splits, DEV: dev.split})
    collection = with_candidates(collection, wanted, depth)
    dev = None if dev is None else replace(dev, split=collection[wanted[-1]])
    split = collection["train"]
    drawn = TrainingGroups(split, len(split.queries) if groups is None else groups, negatives, seed)
    builder = ranker.count(collection).builder(collection)
    with tempfile.TemporaryDirectory() if folder is None else nullcontext(folder) as place:
        own = {"resume": folder is not None, "dev": dev, "seed": seed, "use_cpu": ranker.device.type == "cpu"}
        if folder is not None:
            own |= {"save_strategy": "steps", "save_steps": TENTH}
        log = train_stages(ranker.model, builder, drawn, Path(place), ranker.recipe, **{**own, **options})
    ranker.model.eval()
    # measures, if there were any, were of other weights
    told = loss if isinstance(loss, str) else getattr(loss, "__qualname__", type(loss).__name__)
    ranker.history = {"training": record(collection, drawn, told, options, log)}


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
    """
    training, log = recipe["training"], list[dict[str, Any]]()
    kept = {name: training[name] for name in ("loss", "head_learning_rate")}
    for stage, part in stages(recipe["stages"], len(groups)):
        enter(model, stage)
        lines = ranking.train(
            model, builder, Subset(groups, part), stage_folder(folder, stage),  # type: ignore[arg-type]
            **{**kept, **training["arguments"], **options},
        )  # fmt: skip
        log += [{"stage": stage, **line} if stage else line for line in lines]
    return log


def stage_folder(folder: Path, stage: str | None) -> Path:
    """Return where the checkpoints of a stage go, whatever it is called: inside the folder of the training."""
    return folder if stage is None else folder / file_name(stage)


def record(
    collection: Collection, groups: TrainingGroups, loss: str, options: Mapping[str, Any], log: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return what the model card tells of a training."""
    return {
        "collection": collection.name, "queries": len(groups.query_ids), "groups": len(groups),
        "negatives": groups.negatives, "loss": loss,
        "options": {name: str(value) for name, value in options.items()}, "steps": steps_taken(log),
    }  # fmt: skip


def evaluate(
    ranker: Ranker, collection: Collection, split: str, measures: Sequence[str], batch_size: int,
    progress: bool | None, depth: int,
) -> ranking.Evaluation:  # fmt: skip
    """Measure a ranker, see :meth:`socialgraph.Ranker.evaluate`."""
    parse_measures(measures)
    collection = with_candidates(collection, [split], depth)
    part, builder = collection[split], ranker.builder(collection)
    run = ranking.rerank(ranker.model, builder, part.queries, part.candidates or {}, batch_size, progress=progress)
    evaluation = ranking.evaluate(part.qrels, run, measures, collection.ignore_identical_ids)
    means = {name: interval(values) for name, values in evaluation.per_query.items()}
    measured = ranker.history.setdefault("measures", {})
    measured[f"{collection.name}, {split}"] = {"queries": len(part.qrels), "means": means}
    return evaluation


def with_candidates(collection: Collection, names: Sequence[str], depth: int) -> Collection:
    """Return the collection with candidates for these splits; where one has none, with those that BM25 retrieves.

    Raises:
        InputError: it is no collection, or has no such split.
        OptionError: depth below 1.
    """
    if not isinstance(collection, Collection):
        raise InputError(f"expected a Collection, such as load_folder(path), got {type(collection).__name__}")
    if not is_whole(depth, 1):
        raise OptionError(f"depth must be 1 or more, a whole number, got {depth!r}")
    wanting = [name for name in names if not collection[name].has_candidates]
    if not wanting:
        return collection
    # none is looked for in the other splits; with their judgements they say what training must not see
    others = {name: one.with_candidates({}) for name, one in collection.splits.items() if name not in wanting}
    asked = Collection(collection.name, collection.documents, {**collection.splits, **others})
    found = ranking.retrieve_candidates(asked, ranking.BM25(), depth)
    splits = {**collection.splits, **{name: found[name] for name in wanting}}
    return Collection(collection.name, collection.documents, splits)


def interval(values: Mapping[str, float]) -> tuple[float, float | None, float | None]:
    """Return the mean, and the bounds of its interval at 95 % confidence (Student's t); of one value it has none."""
    if len(values) < 2:
        return fmean(values.values()), None, None
    test = ranking.paired_t_test(values, dict.fromkeys(values, 0.0))
    return test.difference, *test.interval
