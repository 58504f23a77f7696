"""Options as they are typed, ``partition.k=4``, also those that name a class of the user's own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from socialgraph.errors import OptionError, suggestion
from socialgraph.recipes.typed import quoted

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
            result += overrides(key, value)  # imports the class, and with it PyTorch
        else:
            result.append(argument)
    return result


def overrides(key: str, value: str) -> list[str]:
    """Return what one would type to Hydra for a value of an option."""
    if key in OPEN and "." in value:
        return own_partition(value) if key == "partition" else own_edges(value)
    loader = GlobalHydra.instance().config_loader()
    names = loader.get_group_options(key) if key in loader.list_groups("") else None
    if names is not None and value not in names:
        what = {"partition": "partition is", "edges": "edges are"}.get(key, f"{key} is")
        raise OptionError(f"no {what} called {value!r}; {suggestion(value, names)}")
    return [f"{key}={value}"]


def own_partition(name: str) -> list[str]:
    """Return the overrides for a partition by module and class; of the default's options it gets those it takes."""
    from socialgraph.partition import Partition
    from socialgraph.recipes.classes import imported

    imported(name, Partition, option="partition=")
    return [f"partition._target_={name}"]


def own_edges(name: str) -> list[str]:
    """Return the overrides for edges by module and class: a pattern alone in SocialEdges, or a sampler as it is."""
    from socialgraph.edges import EdgeSampler, Pattern
    from socialgraph.recipes.classes import imported

    kind = imported(name, Pattern, EdgeSampler, option="edges=")
    if isinstance(kind, type) and issubclass(kind, Pattern):
        return ["edges=random", "~edges.patterns.uniform", f"+edges.patterns.own._target_={name}"]
    options = inspect.signature(kind).parameters
    left_out = [f"~edges.{option}" for option in ("patterns", "weights", "sparsity") if option not in options]
    return ["edges=random", f"edges._target_={name}", *left_out]
