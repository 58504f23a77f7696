"""Kinds of options: what a value must be, in words and as a check. A kind is written as Python's own type hint."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationToMissingValueError, MissingMandatoryValue

from socialgraph.errors import OptionError, suggestion

#: the largest whole number that a tensor of indices takes
LARGEST = 2**31 - 1
#: stands behind an option that need not be there
OPTIONAL = True


class Only(NamedTuple):
    """What else must hold of a value, in words and as a check."""

    words: str
    holds: Callable[[Any], bool]


def between(low: float, high: float = math.inf, above: bool = False) -> Only:
    """Return that a number lies from ``low`` to ``high``, both included, or without ``low`` itself."""
    words = f"above {low}" if above else f"of {low} or more" if high == math.inf else f"from {low}"
    return Only(
        words if high == math.inf else f"{words} to {high}",
        lambda value: (low < value if above else low <= value) and value <= high,
    )


class Built:
    """A class by its name, ``_target_``, with whatever its constructor takes: its own errors say what is wrong."""


class Option(NamedTuple):
    """What an option may be, and what it is for."""

    kind: Any
    about: str
    optional: bool = False


class Group:
    """A group of options, the attributes of a class: ``k = Count, "friend circles of a document"``."""

    is_open = False  # whether it may hold others

    @classmethod
    def options(cls) -> dict[str, Option]:
        """Return the options by name, those of the bases first."""
        own = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
        return {name: Option(*value) for name, value in own.items() if isinstance(value, tuple) and name[0] != "_"}


def is_group(kind: Any) -> bool:
    """Whether a kind is a group of options."""
    return isinstance(kind, type) and issubclass(kind, Group)


def walk(group: type[Group], before: str = "", closed: Sequence[type] = ()) -> Iterator[tuple[str, Option]]:
    """Yield the dotted names of a group's options, each followed by those of the group in it, but for closed ones."""
    for name, option in group.options().items():
        yield before + name, option
        below = inner(option.kind)
        if below is not None and below[1] not in closed:
            yield from walk(below[1], before + name + below[0], closed)


def inner(kind: Any) -> tuple[str, type[Group]] | None:
    """Return the group in a kind, and how one gets there; None where there is none."""
    for one, _ in alternatives(kind):
        if is_group(one):
            return ".", one
        if get_origin(one) in (list, dict) and (below := inner(get_args(one)[-1])):
            return ("[0]" if get_origin(one) is list else ".NAME") + below[0], below[1]
    return None


def alternatives(kind: Any) -> list[tuple[Any, list[Only]]]:
    """Return the kinds of which a value must be one, and what else must hold of a value of each."""
    some = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    parts = (get_args(one) if get_origin(one) is Annotated else (one,) for one in some)
    return [(plain, conditions) for plain, *conditions in parts]


def form_of(kind: Any) -> type:
    """Return the outer form of a kind: list, dict (also of groups and classes), NoneType, or object for all others."""
    form = dict if kind is Built or is_group(kind) else get_origin(kind) or kind
    return form if form in (list, dict, type(None)) else object


def words_of(kind: Any) -> str:
    """Return what a value must be, in words."""
    ordered = sorted(alternatives(kind), key=lambda one: get_origin(one[0]) in (list, dict))
    *first, last = (words for one in ordered for words in choices(*one))
    return f"{', '.join(first)} or {last}" if first else last


def choices(kind: Any, conditions: Iterable[Only]) -> list[str]:
    """Return what a value of a kind may be that has no alternatives, one by one."""
    also = " and ".join(one.words for one in conditions if one.words)
    if get_origin(kind) is Literal:
        return [str(one) for one in get_args(kind)]
    if get_origin(kind) is list:
        return [f"{f'a list {also}'.strip()}, each {words_of(get_args(kind)[0])}"]
    if get_origin(kind) is dict:
        return [f"{f'a table {also}'.strip()}, each name with {words_of(get_args(kind)[1])}"]
    known = {int: "a whole number", float: "a number", str: "text", type(None): "null"}
    if kind in known:
        return [f"{known[kind]} {also}".strip()]
    if kind is bool:
        return ["true", "false"]
    return ["a class by _target_, with its options" if kind is Built else "a group of options"]


def fits(value: Any, kind: Any) -> bool:
    """Whether a value that is neither list nor table is of a kind; of other classes a text may name an object."""
    if get_origin(kind) is Literal:
        return any(value == one and type(value) is type(one) for one in get_args(kind))
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind in (bool, str, type(None)):
        return isinstance(value, kind)
    return kind is Any or isinstance(value, str | list | dict)


def check(value: Any, kind: Any, name: str, referred: str = "") -> None:
    """Hold a value against a kind.

    Args:
        value: plain, as of YAML.
        kind: a type hint.
        name: the option's, for messages.
        referred: the configuration as it is written. An option that nobody knows may be there if another one refers to
            it, as in ``path: ${data.root}/${data.year}``.

    Raises:
        OptionError: it is of another kind; names the option, what is allowed, and what came.
    """
    if value == "???":
        raise OptionError(f"{name} is missing: type {name}=..., {words_of(kind)}")
    near = [one for one in alternatives(kind) if form_of(one[0]) is form_of(type(value))]
    if isinstance(value, list | dict) and near:
        check_inside(value, near[0][0], name, referred)
    if not any(fits(value, one) and all(only.holds(value) for only in conditions) for one, conditions in near):
        raise OptionError(f"{name} must be {words_of(kind)}, got {written(value)}")


def check_inside(value: Any, kind: Any, name: str, referred: str) -> None:
    """Hold what is in a list or table against a kind; see :func:`check`."""
    if isinstance(value, list):
        inside = {f"{name}[{place}]": (one, *get_args(kind)) for place, one in enumerate(value)}
    elif get_origin(kind) is dict:
        inside = {f"{name}.{key}": (one, get_args(kind)[1]) for key, one in value.items()}
    elif kind is Built:
        if value and "_target_" not in value:
            rest = f"nothing takes {name}.{next(iter(value))}"
            raise OptionError(f"{name}._target_ is missing: {rest}; leave it out, or name a class, {name}._target_=...")
        inside = {f"{name}._target_": (value.get("_target_", "???"), Annotated[str, Only("that names a class", bool)])}
    elif is_group(kind):
        check_names(value, kind, f"{name}.", referred)
        options = kind.options()
        inside = {f"{name}.{key}": (one, options[key].kind) for key, one in value.items() if key in options}
    else:  # a table of the training library's own
        inside = {}
    for path, (one, expected) in inside.items():
        check(one, expected, path, referred)


def check_names(names: Iterable[str], group: type[Group], before: str = "", referred: str = "") -> None:
    """Hold the names in a group against its options; one that ``is_open`` may have others.

    Raises:
        OptionError: one is missing, or nobody knows it.
    """
    options, names = group.options(), list(names)
    for name in names:
        if name not in options and not group.is_open and f"${{{before}{name}}}" not in referred:
            raise OptionError(unknown(f"{before}{name}", [before + known for known in options]))
    for name, option in options.items():
        if name not in names and not option.optional:
            raise OptionError(f"{before}{name} is missing; it must be {words_of(option.kind)}")


def check_config(config: DictConfig, group: type[Group]) -> None:
    """Hold a composed configuration against a group, in the order in which its options are listed.

    Raises:
        OptionError: an option of another kind, one that is missing, or one that nobody knows.
    """
    raw = OmegaConf.to_container(config, resolve=False)
    assert isinstance(raw, dict)
    referred = str(raw)
    check_names(map(str, raw), group, "", referred)
    try:
        for name, option in group.options().items():  # one by one: what others refer to comes first
            if name in raw:
                node = "???" if raw[name] == "???" else config[name]
                value = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
                check(value, option.kind, name, referred)
    except (InterpolationToMissingValueError, MissingMandatoryValue) as error:
        match = re.search(r"Missing mandatory value: ([\w.]+)", str(error))
        name = match[1] if match else str(error).splitlines()[0]
        raise OptionError(f"{name} is missing: type {name}=...") from error


def unknown(name: str, known: Sequence[str]) -> str:
    """Return that no option has a name, and which one was meant, or how a class of one's own gets it."""
    group, dot, last = name.rpartition(".")
    names = [one.removeprefix(group + dot) for one in known]
    return f"no option is called {name}; {suggestion(last, names, group + dot)}"


def written(value: Any) -> str:
    """Return a value as one types it, not longer than a line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value) if isinstance(value, str | list | dict) else str(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
