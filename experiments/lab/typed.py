"""Options as they are typed, ``partition.k=4``, also those that name a class of the user's own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from lab.command import in_one_line
from socialgraph.errors import OptionError
from socialgraph.recipes.typed import quoted

#: groups that take a class of the user's own by its dotted name, and are varied even with a single value
OPEN = ("partition", "edges")


def key_of(override: str) -> str:
    """Return what an override is about: "partition.k" of "partition.k=4".

    Raises:
        OptionError: it is none.
    """
    try:
        (parsed,) = OverridesParser.create().parse_overrides([override])
    except HydraException as error:
        raise OptionError(f"an option is written key=value: {in_one_line(error)}") from error
    return parsed.get_key_element().lstrip("+~")


def typed() -> list[str]:
    """Return the options that were typed and go to every row."""
    return [one for one in HydraConfig.get().overrides.task if key_of(one) not in ("rows", "seeds")]


def varied_as_one(arguments: Sequence[str]) -> list[str]:
    """Return a command's arguments with those that have several values in one, ``varied=[...]``.

    Hydra itself takes several values with ``-m`` alone, where each is a job.
    """
    if {"-m", "--multirun"} & set(arguments):
        return list(arguments)
    varied = [one for one in arguments if not one.startswith(("-", "hydra")) and is_varied(one)]
    others = [one for one in arguments if one not in varied]
    return [*others, f"varied=[{','.join(map(quoted, varied))}]"] if varied else others


def is_varied(argument: str) -> bool:
    """Whether an argument has several values, or is of a group that always counts as varied."""
    try:
        (parsed,) = OverridesParser.create().parse_overrides([argument])
    except HydraException:
        return False  # Hydra says what is wrong with it
    return parsed.is_sweep_override() or parsed.get_key_element() in OPEN


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """Return arguments with classes of the user's own, ``partition=my_module.Mine``, as Hydra takes them.

    A pattern stands alone in SocialEdges; a sampler takes the place of SocialEdges.

    Raises:
        OptionError: there is no such class, or it is of another kind.
    """
    result = []
    for argument in arguments:
        key, _, name = argument.partition("=")
        if key not in OPEN or not re.fullmatch(r"\w+(\.\w+)+", name):
            result.append(argument)
            continue
        from socialgraph.edges import EdgeSampler, Pattern  # and with them PyTorch
        from socialgraph.partition import Partition
        from socialgraph.recipes.classes import imported

        if key == "partition":
            imported(name, Partition, option="partition=")
            result.append(f"partition._target_={name}")
            continue
        kind = imported(name, Pattern, EdgeSampler, option="edges=")
        if isinstance(kind, type) and issubclass(kind, Pattern):
            result += ["edges=random", "~edges.patterns.uniform", f"+edges.patterns.own._target_={name}"]
            continue
        taken = inspect.signature(kind).parameters
        left_out = [f"~edges.{option}" for option in ("patterns", "weights", "sparsity") if option not in taken]
        result += ["edges=random", f"edges._target_={name}", *left_out]
    return result
