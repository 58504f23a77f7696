"""What compare.py varies: ``partition=node,edge,my_module.MyPartition partition.k=2,4`` is two axes, six variants."""

from __future__ import annotations

import difflib
import importlib
import inspect
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from socialgraph.errors import OptionError

#: groups that are axes even with a single value, and that take a class of the user's own
OPEN = ("partition", "edges")


@dataclass(frozen=True)
class Axis:
    """One thing that is varied, and its values, as they are typed."""

    key: str
    values: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the column is called."""
        return self.key.lstrip("+")


@dataclass(frozen=True)
class Variant:
    """One value for each axis."""

    values: dict[str, str]  # axis -> value
    overrides: tuple[str, ...]  # what one would type to run.py

    @property
    def label(self) -> str:
        """What it is called in messages and in the plot: "metis", or "metis, partition.k=4"."""
        return ", ".join(value if axis in OPEN else f"{axis}={value}" for axis, value in self.values.items())

    @property
    def file(self) -> str:
        """What its files are called."""
        return re.sub(r"[^\w.,=-]+", "-", ",".join(f"{axis}={value}" for axis, value in self.values.items()))


def split(arguments: Sequence[str]) -> tuple[list[Axis], list[str]]:
    """Return the axes among a command's arguments, and the other arguments.

    Hydra itself would refuse ``partition=node,edge`` where it does not start many programs.
    """
    axes: dict[str, Axis] = {}
    others = []
    for argument in arguments:
        found = None if argument.startswith(("-", "hydra.")) else axis(argument)
        if found is None:
            others.append(argument)
        else:
            axes[found.key] = found
    return list(axes.values()), others


def axis(argument: str) -> Axis | None:
    """Return the axis that an argument names, if it names one."""
    try:
        (typed,) = OverridesParser.create().parse_overrides([argument])
    except HydraException:
        return None  # Hydra says what is wrong with it
    key = typed.get_key_element()
    if typed.is_sweep_override():
        return Axis(key, tuple(dict.fromkeys(typed.sweep_string_iterator())))
    return Axis(key, (typed.get_value_element_as_str(),)) if key in OPEN else None


def variants(axes: Sequence[Axis]) -> list[Variant]:
    """Return all combinations of the axes' values, the last axis running fastest.

    Raises:
        OptionError: a value that is neither in its group nor a class of the right kind.
    """
    if any(axis.name in ("seed", "seeds") for axis in axes):
        raise OptionError("seeds are averaged, not compared: write seeds=[0,1,2]")
    parts = [[(value, overrides(axis.key, value)) for value in axis.values] for axis in axes]
    names = [axis.name for axis in axes]
    return [
        Variant(
            {name: value for name, (value, _) in zip(names, some, strict=True)},
            tuple(itertools.chain.from_iterable(typed for _, typed in some)),
        )
        for some in itertools.product(*parts)
    ]


def overrides(key: str, value: str) -> list[str]:
    """Return what one would type to run.py for a value of an axis."""
    loader = GlobalHydra.instance().config_loader()
    if key not in OPEN:
        if key in loader.list_groups("") and value not in loader.get_group_options(key):
            raise OptionError(f"no {key} is called {value!r}; {suggestion(value, loader.get_group_options(key))}")
        return [f"{key}={value}"]
    if "." in value:
        return own_partition(value) if key == "partition" else own_edges(value)
    names = loader.get_group_options(key)
    if value not in names:
        what = "partition is" if key == "partition" else "edges are"
        raise OptionError(f"no {what} called {value!r}; {suggestion(value, names)}")
    return [f"{key}={value}"]


def own_partition(name: str) -> list[str]:
    """Return the overrides for a partition by module and class; of the default's options it gets those it takes."""
    from socialgraph.partition import Partition

    imported("partition", name, Partition)
    return [f"partition._target_={name}"]


def own_edges(name: str) -> list[str]:
    """Return the overrides for edges by module and class: a pattern alone in SocialEdges, or a sampler as it is."""
    from socialgraph.edges import EdgeSampler, Pattern

    found = imported("edges", name, Pattern, EdgeSampler)
    if issubclass(found, Pattern):
        return ["edges=random", "~edges.patterns.uniform", f"+edges.patterns.own._target_={name}"]
    options = inspect.signature(found).parameters
    left_out = [f"~edges.{option}" for option in ("patterns", "weights", "sparsity") if option not in options]
    return ["edges=random", f"edges._target_={name}", *left_out]


def imported(key: str, name: str, *kinds: type) -> type[Any]:
    """Return a class by module and name.

    Raises:
        OptionError: no such module or class, or one of another kind.
    """
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        raise OptionError(f"{key}={name}: {error}; is it in this folder, or installed?") from error
    if found is None:
        there = [item for item, value in vars(importlib.import_module(module)).items() if isinstance(value, type)]
        raise OptionError(f"{key}={name}: {module} has no {attribute}; {suggestion(attribute, there)}")
    if not (isinstance(found, type) and issubclass(found, kinds)):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise OptionError(f"{key}={name}: {attribute} is no subclass of {wanted}")
    return found


def suggestion(name: str, names: Sequence[str]) -> str:
    """Return what one may have meant."""
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(names) or 'none'}"
