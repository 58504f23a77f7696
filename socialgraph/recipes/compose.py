"""A recipe by name, as plain values: the files of this folder, put together by Hydra."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Sequence
from importlib import resources
from typing import Any, cast

from socialgraph.errors import OptionError, first_line
from socialgraph.recipes.build import arguments, imported

logger = logging.getLogger("socialgraph")

#: of a system beside its recipe
_SHARED = ("query_length", "seed")


def recipes() -> list[str]:
    """Return the names of all recipes."""
    folder = resources.files("socialgraph.recipes") / "recipe"
    return sorted(one.name.removesuffix(".yaml") for one in folder.iterdir() if one.name.endswith(".yaml"))


def compose_recipe(name: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return a recipe with all values filled in: what ``system.yaml`` lists, ``query_length`` and ``seed``.

    Args:
        name: one of :func:`recipes`.
        overrides: options as one types them to ``run.py``: ``"partition.k=8"``, ``"edges=random"``, ...

    Raises:
        OptionError: no such recipe or option.
    """
    from hydra import compose, initialize_config_module
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if name not in (known := recipes()):
        near = difflib.get_close_matches(name, known, n=1)
        told = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise OptionError(f"no recipe is called {name!r}; {told}")
    try:
        with initialize_config_module("socialgraph.recipes", version_base="1.3"):
            config = compose("options", [f"recipe={name}", *overrides])
        whole = cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True))
        circles = None if config.recipe.circles is None else taken(config.recipe.circles)
    except (HydraException, OmegaConfBaseException) as error:
        raise OptionError(f"recipe {name}: {first_line(error)}") from error
    return {**whole["recipe"], "circles": circles, **{key: whole[key] for key in _SHARED}}


def taken(partition: Any) -> dict[str, Any]:
    """Return the options of a partition, without those of the default that its class does not take.

    One that it does not take and that another option refers to (``size: ${partition.max_size}``) goes without a word.

    Args:
        partition: a ``DictConfig`` with the class's name, and the options.

    Raises:
        OptionError: no such class.
    """
    from omegaconf import OmegaConf

    options = cast("dict[str, Any]", OmegaConf.to_container(partition, resolve=True))
    parameters = arguments(imported(str(partition._target_)))
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return options
    left_out = [name for name in options if not name.startswith("_") and name not in parameters]
    written = str(OmegaConf.to_container(partition, resolve=False))
    unused = [name for name in left_out if f"${{partition.{name}}}" not in written]
    if unused:
        logger.warning("%s takes no %s: left out", partition._target_, ", ".join(unused))
    return {name: value for name, value in options.items() if name not in left_out}


def quoted(value: object) -> str:
    """Return a value as Hydra's command line takes it, whatever is in it; only a text is quoted."""
    if not isinstance(value, str):
        return str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
