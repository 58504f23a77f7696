"""Options as they are typed, ``partition.k=4``, before there is a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from socialgraph.errors import OptionError

#: groups that are varied even with a single value, and that take a class of the user's own
OPEN = ("partition", "edges")


def subject(override: str) -> str:
    """Return what an override is about: "partition.k" of "partition.k=4".

    Raises:
        OptionError: it is none.
    """
    try:
        (parsed,) = OverridesParser.create().parse_overrides([override])
    except HydraException as error:
        raise OptionError(f"an option is written key=value: {str(error).splitlines()[0]}") from error
    return parsed.get_key_element().lstrip("+~")


def latest(overrides: Iterable[str]) -> list[str]:
    """Return the overrides without those that a later one on the same matter replaces."""
    return list({subject(override): override for override in overrides}.values())


def quoted(value: Any) -> str:
    """Return a value as Hydra's command line takes it, whatever is in it."""
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def as_option(arguments: Sequence[str]) -> list[str]:
    """Return a command's arguments with those that have several values in one, ``varied=[...]``.

    Hydra itself would refuse ``partition=node,edge`` where it does not start many programs.
    """
    varied = [one for one in arguments if not one.startswith(("-", "hydra")) and is_varied(one)]
    others = [one for one in arguments if one not in varied]
    return [*others, f"varied=[{','.join(map(quoted, varied))}]"] if varied else others


def is_varied(argument: str) -> bool:
    """Whether an argument has several values, or is of a group that always counts as varied."""
    try:
        (typed,) = OverridesParser.create().parse_overrides([argument])
    except HydraException:
        return False  # Hydra says what is wrong with it
    return typed.is_sweep_override() or typed.get_key_element() in OPEN


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """Return a command's arguments with classes of the user's own, ``partition=my_module.Mine``, as Hydra takes them.

    Raises:
        OptionError: there is no such class, or it is of another kind.
    """
    result = []
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key in OPEN and re.fullmatch(r"\w+(\.\w+)+", value):
            from lab.product import overrides  # imports the class, and with it PyTorch

            result += overrides(key, value)
        else:
            result.append(argument)
    return result
