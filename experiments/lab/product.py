"""Rows from a product of options: ``partition=node,edge,my_module.MyPartition partition.k=2,4`` makes six.

Hydra's own sweeper reads the values and combines them; here a class of the user's own becomes an option like others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser

from lab.overrides import OPEN, overrides
from lab.plan import Row
from socialgraph.errors import OptionError


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
                label_of(values),
                beside={"options": values},
            )
        )
    return rows


def label_of(options: Mapping[str, str]) -> str:
    """Return what a row of these options is called; a partition or edges go without the option's name."""
    return ", ".join(value if key in OPEN else f"{key}={value}" for key, value in options.items())


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
