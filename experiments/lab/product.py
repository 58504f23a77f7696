"""Rows from a product of options: ``partition=node,edge,my_module.MyPartition partition.k=2,4`` makes six.

Hydra's own sweeper reads the values and combines them; here a class of the user's own becomes an option like others.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

from lab.overrides import OPEN, overrides
from lab.plan import Row
from socialgraph.errors import OptionError
from socialgraph.ranker.files import tables
from socialgraph.recipes.classes import BACKBONE


def product_rows(varied: Sequence[str], fixed: Sequence[str]) -> list[Row]:
    """Return all combinations of the values, those of the last option changing fastest.

    Args:
        varied: options with several values.
        fixed: options of the command itself, which cannot be varied.

    Raises:
        OptionError: a value that is neither in its group nor a class of the right kind.
    """
    typed = OverridesParser.create().parse_overrides(list(varied))
    for one in typed:
        name = one.get_key_element()
        if name in ("seed", "seeds"):
            raise OptionError("seeds are averaged, not compared: write seeds=[0,1,2]")
        if name in fixed:
            raise OptionError(f"{name} is the same for all rows; a list is written {name}=[...]")
    (combined,) = BasicSweeper.split_arguments(typed, None)
    rows = []
    for options in combined:
        pairs = [option.split("=", 1) for option in options]
        values = {key.lstrip("+"): value for key, value in pairs}
        rows.append(
            Row(
                re.sub(r"[^\w.,=-]+", "-", ",".join(f"{key}={value}" for key, value in values.items())),
                tuple(override for key, value in pairs for override in overrides(key, value)),
                ", ".join(value if key in OPEN else f"{key}={value}" for key, value in values.items()),
                beside={"options": values},
            )
        )
    return rows


def compared_rows(varied: Sequence[str], beside: Sequence[str], fixed: Sequence[str]) -> list[Row]:
    """Return all combinations, see :func:`product_rows`, and a row for each list of options with spaces between.

    Raises:
        OptionError: a row comes twice.
    """
    rows = [row for typed in (varied, *(one.split() for one in beside)) for row in product_rows(typed, fixed)]
    names = [row.name for row in rows]
    for row in rows:
        if names.count(row.name) > 1:
            raise OptionError(f"{row.label} is compared with itself: type it once")
    return rows


def baseline_of(rows: Sequence[Row], named: Any) -> Row:
    """Return the first row that has all the values that the baseline names; the first one for None.

    Raises:
        OptionError: there is none.
    """
    some = [] if named is None else [named] if isinstance(named, str | int | float) else named
    values = ["null" if value is None else str(value) for value in some]
    for row in rows:
        if set(values) <= set(row.beside["options"].values()):
            return row
    there = "; ".join(row.label for row in rows)
    raise OptionError(f"baseline={','.join(values)} is not among what is compared: {there}")


def sources(config: DictConfig) -> dict[str, str]:
    """Return hashes of the files that define classes from outside the package: an edited class is another run."""
    recipe = OmegaConf.to_container(config.recipe, resolve=True)
    return {
        name: hashlib.sha256(Path(source(name.removesuffix(BACKBONE))).read_bytes()).hexdigest()
        for name in sorted({one["_target_"] for one in tables(recipe)})
        if "." in name and name.split(".")[0] != "socialgraph"
    }


def source(name: str) -> str:
    """Return the file that defines a class or function, or whose module has another thing that makes an object."""
    made = get_object(name)
    is_defined = isinstance(made, type) or inspect.isroutine(made)
    return inspect.getfile(made if is_defined else import_module(name.rpartition(".")[0]))
