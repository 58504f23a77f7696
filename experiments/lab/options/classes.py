"""Options of classes, held against the type hints of their constructors, and those of the training library."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, get_type_hints

from omegaconf import DictConfig, OmegaConf
from transformers import TrainingArguments

from lab.options.kinds import check, unknown
from socialgraph.errors import OptionError, first_line
from socialgraph.ranking.identity import REFUSED
from socialgraph.recipes.classes import BACKBONE, imported

#: arguments of the training library that follow from other options
ELSEWHERE = {
    "seed": "seed", "bf16": "trainer.bf16", "save_steps": "trainer.save_every", "save_strategy": "trainer.save_every",
    "output_dir": "hydra.run.dir", "use_cpu": "CUDA_VISIBLE_DEVICES", "resume_from_checkpoint": "hydra.run.dir",
    "remove_unused_columns": "recipe",
}  # fmt: skip


def check_arguments(config: DictConfig) -> None:
    """Make the library's arguments as a training would, so that a mistake shows before it begins.

    The library itself checks some values and no types; these are held against the types that it declares.

    Raises:
        OptionError: it knows no such argument, or refuses it, or the argument follows from another option.
    """
    kinds = get_type_hints(TrainingArguments)
    for group in ("trainer", "recipe.training"):
        arguments = OmegaConf.to_container(OmegaConf.select(config, f"{group}.arguments"), resolve=True)
        assert isinstance(arguments, dict)
        for name, value in arguments.items():
            if name in ELSEWHERE:
                raise OptionError(f"{group}.arguments.{name} follows from another option: {ELSEWHERE[name]}")
            if name in (*REFUSED, "eval_strategy"):
                raise OptionError(f"{group}.arguments.{name} is not offered here")
            if name not in kinds:
                raise OptionError(unknown(f"{group}.arguments.{name}", list(kinds)))
            check(value, kinds[name], f"{group}.arguments.{name}")
        try:
            TrainingArguments(output_dir="unused", use_cpu=True, **arguments)
        except (TypeError, ValueError) as error:
            raise OptionError(f"{group}.arguments: {first_line(error)}") from error


def typed_as(recipe: DictConfig, part: str) -> str:
    """Return the option by which the user names a part of a recipe: "partition" where circles are ``${partition}``."""
    written = str(OmegaConf.to_container(recipe, resolve=False)[part])  # type: ignore[index, call-overload]
    group = re.fullmatch(r"\$\{(\w+)\}", written)
    return group[1] if group else f"recipe.{part}"


def check_parts(value: Any, name: str) -> None:
    """Find the classes that a group names, and hold the options of this package's against their constructors' hints.

    A class of the user's own takes what it takes.

    Raises:
        OptionError: there is no such class, or a value is of another kind; names the option.
    """
    if not isinstance(value, dict):
        return
    kinds = {}
    if target := str(value.get("_target_", "")):
        kind = imported(target.removesuffix(BACKBONE), option=f"{name}._target_=")
        kinds = hints(kind) if target.startswith("socialgraph.") else {}
    for key, one in value.items():
        if key in kinds and not isinstance(one, dict | list):
            check(one, kinds[key], f"{name}.{key}")
        check_parts(one, f"{name}.{key}")


def hints(kind: Any) -> Mapping[str, Any]:
    """Return what a function takes, or a class's constructor and those of its bases."""
    kinds: dict[str, Any] = {}
    makers = [base.__init__ for base in reversed(inspect.getmro(kind))] if isinstance(kind, type) else [kind]
    for maker in makers:
        with suppress(NameError, TypeError):  # hints that are there for a type checker only
            kinds |= get_type_hints(maker, include_extras=True)
    return kinds
