"""Stages of a training: what is learned one after the other, each on groups of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from socialgraph.errors import OptionError


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


def enter(model: torch.nn.Module, stage: str | None) -> None:
    """Let a model begin a stage of training; without a name it stays in the one that it is in.

    Raises:
        OptionError: the model has no stages, or none of this name.
    """
    if stage is None:
        return
    begin = getattr(model, "enter", None)
    if begin is None:
        raise OptionError(f"recipe.stages: {type(model).__name__} has no stages of training, got {stage!r}")
    begin(stage)
