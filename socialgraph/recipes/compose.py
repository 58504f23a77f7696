"""A recipe by name, as plain values: the files of this folder, put together by Hydra."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from importlib.resources.abc import Traversable
from os import PathLike
from pathlib import Path
from typing import Any, cast

from socialgraph.described import BACKBONE, name_of, options_of
from socialgraph.errors import OptionError, first_line, suggestion
from socialgraph.recipes.classes import imported
from socialgraph.recipes.typed import quoted, refuse_empty_tables

logger = logging.getLogger("socialgraph")

#: of a system beside its recipe
_SHARED = ("query_length", "seed")


def recipes(config_dir: str | PathLike[str] | None = None) -> list[str]:
    """Return the names of all recipes, with those in a folder of one's own.

    Raises:
        OptionError: there is no such folder.
    """
    folders: list[Traversable] = [resources.files("socialgraph.recipes") / "recipe"]
    if config_dir is not None:
        if not Path(config_dir).is_dir():
            raise OptionError(f"config_dir={str(config_dir)!r} is no folder; recipes lie in <config_dir>/recipe")
        folders.append(Path(config_dir, "recipe"))
    files = [one.name for folder in folders if folder.is_dir() for one in folder.iterdir()]
    return sorted({name.removesuffix(".yaml") for name in files if name.endswith(".yaml")})


def compose_recipe(
    name: str,
    overrides: Sequence[str] = (),
    config_dir: str | PathLike[str] | None = None,
    classes: Sequence[type | str] = (),
) -> dict[str, Any]:
    """Return a recipe with all values filled in: what ``system.yaml`` lists, ``query_length`` and ``seed``.

    Args:
        name: one of :func:`recipes`.
        overrides: options as one types them to ``run.py``: ``"partition.k=8"``, ``"edges=random"``, ...
        config_dir: a folder of one's own with more recipes, ``recipe/<name>.yaml``, as ``--config-dir`` of ``run.py``.
        classes: of the user's own that these recipes may name, see :func:`refuse_unnamed`.

    Raises:
        OptionError: no such recipe or option, or a recipe that names a class that the user has not named.
    """
    from hydra import compose
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if name not in (known := recipes(config_dir)):
        raise OptionError(f"no recipe is called {name!r}; {suggestion(str(name), known)}")
    own = [] if config_dir is None else [f"hydra.searchpath=[{quoted(f'file://{Path(config_dir).resolve()}')}]"]
    try:
        with _hydra():
            config = compose("options", [*own, f"recipe={name}", *overrides])
        refuse_empty_tables(overrides, config)
        whole = cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True))
        refuse_unnamed(whole, [*overrides, *(one if isinstance(one, str) else name_of(one) for one in classes)])
        parts = merged(config.recipe)
    except (HydraException, OmegaConfBaseException) as error:
        raise OptionError(f"recipe {name}: {first_line(error)}") from error
    return {**whole["recipe"], **parts, **{key: whole[key] for key in _SHARED}}


@contextmanager
def _hydra() -> Iterator[None]:
    """Let Hydra read the files of this folder; a program of the user's that runs by Hydra has its own back then."""
    from hydra import initialize_config_module
    from hydra.core.global_hydra import GlobalHydra

    running = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_module("socialgraph.recipes", version_base="1.3"):
            yield
    finally:
        GlobalHydra.instance().hydra = running


def refuse_unnamed(values: Any, typed: Iterable[str]) -> None:
    """Refuse a class or loss that neither comes with this package nor was named by the user: importing it runs a file.

    Args:
        values: plain values of a configuration.
        typed: options, and names of classes.

    Raises:
        OptionError: there is one.
    """
    named = {word.removesuffix(BACKBONE) for one in typed for word in re.findall(r"[\w.]+", one)}
    for table in tables(values):
        for key in ("_target_", "loss"):
            name = str(table.get(key, ""))
            own = name.removesuffix(BACKBONE)
            if "." in own and not own.startswith("socialgraph.") and own not in named:
                raise OptionError(f"{name} is not imported because a file says so: say classes=[{own}] if you trust it")


def tables(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the tables inside a value, at any depth."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from tables(one)


def merged(recipe: Any) -> dict[str, Any]:
    """Return a recipe's circles and model, without options of the defaults that their classes do not take.

    A class of one's own that is named in place of a default gets that one's options: k of ``EdgeCircles``, say, and
    ``leader`` of a ``Socialformer``. See :func:`taken`.

    Args:
        recipe: a ``DictConfig``.

    Raises:
        OptionError: no such class, or a model that would begin without what its BERT has learned.
    """
    circles = None if recipe.circles is None else filter_kwargs(recipe.circles)
    if recipe.model is None:
        return {"circles": circles, "model": None}
    # Other options that a model does not take are mistakes, about which it is asked when it is made.
    model = filter_kwargs(recipe.model, inspect.signature(class_of("socialgraph.nn.Socialformer")).parameters)
    name = str(model["_target_"])
    if not name.endswith(BACKBONE) and hasattr(class_of(name), BACKBONE[1:]):
        raise OptionError(f"_target_={name} is a model whose BERT has read nothing: name {name}{BACKBONE}")
    return {"circles": circles, "model": model}


def filter_kwargs(part: Any, spare: Collection[str] | None = None) -> dict[str, Any]:
    """Return the options of a partition or model, without those of the default that its class does not take.

    One that it does not take and that another option refers to (``size: ${partition.max_size}``) goes without a word.

    Args:
        part: a ``DictConfig`` with the class's name, and the options.
        spare: options that may be left out; None: all of them.

    Raises:
        OptionError: no such class.
    """
    from omegaconf import OmegaConf

    options = cast("dict[str, Any]", OmegaConf.to_container(part, resolve=True))
    if (names := options_of(class_of(str(part._target_)))) is None:
        return options
    left_out = [
        name for name in options
        if not name.startswith("_") and name not in (*names, "backbone") and (spare is None or name in spare)
    ]  # fmt: skip
    written = str(OmegaConf.to_container(part, resolve=False))
    unused = [name for name in left_out if f"${{partition.{name}}}" not in written]
    if unused:
        logger.warning("%s takes no %s: left out", part._target_, ", ".join(unused))
    return {name: value for name, value in options.items() if name not in left_out}


def class_of(name: str) -> type:
    """Return the class that a recipe names, with ``.from_backbone`` or without.

    Raises:
        OptionError: no such class.
    """
    made = imported(name)
    kind = getattr(made, "__self__", made)
    if not isinstance(kind, type):
        raise OptionError(f"{name} is no class")
    return kind
