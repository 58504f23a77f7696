"""Kinds of options: what a value must be, in words and as a check. A kind is written as Python's own type hint."""

from __future__ import annotations

import difflib
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationToMissingValueError, MissingMandatoryValue

from socialgraph.errors import OptionError

#: the largest whole number that a tensor of indices takes
LARGEST = 2**31 - 1


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


def about(text: str, optional: bool = False, default: Any = None) -> Any:
    """Return a field of a group of options.

    Args:
        text: what the option is for.
        optional: it need not be there.
        default: what objects of the class have where it is not given.
    """
    given = {"default": default} if optional or default is not None else {}
    return field(metadata={"about": text, "optional": optional}, **given)


class Option(NamedTuple):
    """An option of a group."""

    name: str
    kind: Any
    about: str
    optional: bool


def options_of(group: type) -> list[Option]:
    """Return the options of a dataclass."""
    kinds = get_type_hints(group, include_extras=True)
    return [
        Option(one.name, kinds[one.name], one.metadata.get("about", ""),
               one.metadata.get("optional", one.default is not MISSING))
        for one in fields(group)
    ]  # fmt: skip


def walk(group: type, before: str = "", closed: Sequence[type] = ()) -> Iterator[tuple[str, Option]]:
    """Yield the dotted names of a group's options, each followed by those of the group in it, but for closed ones."""
    for option in options_of(group):
        name, below = before + option.name, inner(option.kind)
        yield name, option
        if below is not None and below[1] not in closed:
            yield from walk(below[1], name + below[0], closed)


def inner(kind: Any) -> tuple[str, type] | None:
    """Return the dataclass in a kind, and how one gets there; None where there is none."""
    for one in map(bare, alternatives(kind)):
        if is_dataclass(one):
            return ".", one  # type: ignore[return-value]
        if get_origin(one) in (list, dict) and (found := inner(get_args(one)[-1])):
            return ("[0]" if get_origin(one) is list else ".NAME") + found[0], found[1]
    return None


def alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the kinds of which a value must be one."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def bare(kind: Any) -> Any:
    """Return a kind without its ranges."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def conditions(kind: Any) -> tuple[Only, ...]:
    """Return what else must hold of a value of a kind."""
    return get_args(kind)[1:] if get_origin(kind) is Annotated else ()


def words_of(kind: Any) -> str:
    """Return what a value must be, in words."""
    also = " and ".join(one.words for one in conditions(kind) if one.words)
    kind = bare(kind)
    if len(alternatives(kind)) > 1 or kind is bool or get_origin(kind) is Literal:
        *first, last = choices(kind)
        return f"{', '.join(first)} or {last}" if first else last
    known = {int: "a whole number", float: "a number", str: "text", type(None): "null"}
    if kind in known:
        return f"{known[kind]} {also}".strip()
    if get_origin(kind) is list:
        return f"{f'a list {also}'.strip()}, each {words_of(get_args(kind)[0])}"
    if get_origin(kind) is dict:
        return f"{f'a table {also}'.strip()}, each name with {words_of(get_args(kind)[1])}"
    return "a class by _target_, with its options" if kind is Built else "a group of options"


def choices(kind: Any) -> list[str]:
    """Return what a value may be, one by one."""
    if len(alternatives(kind)) > 1:
        ordered = sorted(alternatives(kind), key=lambda one: get_origin(bare(one)) in (list, dict))
        return [choice for one in ordered for choice in choices(one)]
    if get_origin(kind) is Literal:
        return [str(one) for one in get_args(kind)]
    return ["true", "false"] if kind is bool else [words_of(kind)]


def is_near(value: Any, kind: Any) -> bool:
    """Whether a value has the outer form of a kind: a list, a table, nothing, or something else."""
    form = get_origin(bare(kind)) or bare(kind)
    if isinstance(value, list):
        return form is list
    if isinstance(value, dict):
        return form is dict or form is Built or is_dataclass(form)
    return (form is type(None)) == (value is None) and form not in (list, dict, Built) and not is_dataclass(form)


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
    near = [one for one in alternatives(kind) if is_near(value, one)]
    if isinstance(value, list | dict) and near:
        check_inside(value, bare(near[0]), name, referred)
    if not any(fits(value, bare(one)) and all(only.holds(value) for only in conditions(one)) for one in near):
        raise OptionError(f"{name} must be {words_of(kind)}, got {written(value)}")


def check_inside(value: Any, kind: Any, name: str, referred: str) -> None:
    """Hold what is in a list or table against a kind; see :func:`check`."""
    if isinstance(value, list):
        inside = {f"{name}[{place}]": (one, *get_args(kind)) for place, one in enumerate(value)}
    elif get_origin(kind) is dict:
        inside = {f"{name}.{key}": (one, get_args(kind)[1]) for key, one in value.items()}
    elif kind is Built:
        inside = {f"{name}._target_": (value.get("_target_", "???"), Annotated[str, Only("that names a class", bool)])}
    elif is_dataclass(kind):
        check_names(value, kind, f"{name}.", referred)
        kinds = {option.name: option.kind for option in options_of(kind)}
        inside = {f"{name}.{key}": (one, kinds[key]) for key, one in value.items() if key in kinds}
    else:  # a table of the training library's own
        inside = {}
    for path, (one, expected) in inside.items():
        check(one, expected, path, referred)


def check_names(names: Iterable[str], group: type, before: str = "", referred: str = "") -> None:
    """Hold the names in a group against its dataclass; one that is ``open`` may have others.

    Raises:
        OptionError: one is missing, or nobody knows it.
    """
    options, names = options_of(group), list(names)
    for name in names:
        is_known = name in [option.name for option in options] or getattr(group, "open", False)
        if not is_known and f"${{{before}{name}}}" not in referred:
            raise OptionError(unknown(f"{before}{name}", [before + option.name for option in options]))
    for option in options:
        if option.name not in names and not option.optional:
            raise OptionError(f"{before}{option.name} is missing; it must be {words_of(option.kind)}")


def check_config(config: DictConfig, group: type) -> None:
    """Hold a composed configuration against a dataclass, in the order in which its options are listed.

    Raises:
        OptionError: an option of another kind, one that is missing, or one that nobody knows.
    """
    raw = OmegaConf.to_container(config, resolve=False)
    assert isinstance(raw, dict)
    referred = str(raw)
    check_names(map(str, raw), group, "", referred)
    try:
        for option in options_of(group):  # one by one: what others refer to comes first
            if option.name in raw:
                node = "???" if raw[option.name] == "???" else config[option.name]
                value = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
                check(value, option.kind, option.name, referred)
    except (InterpolationToMissingValueError, MissingMandatoryValue) as error:
        found = re.search(r"Missing mandatory value: ([\w.]+)", str(error))
        name = found[1] if found else str(error).splitlines()[0]
        raise OptionError(f"{name} is missing: type {name}=...") from error


def unknown(name: str, known: Sequence[str]) -> str:
    """Return that no option has a name, and which one was meant, or how a class of one's own gets it."""
    group, dot, last = name.rpartition(".")
    names = [one.removeprefix(group + dot) for one in known]
    return f"no option is called {name}; {suggestion(last, names, group + dot)}"


def suggestion(name: str, names: Sequence[str], before: str = "") -> str:
    """Return which of some names one may have meant; what stands before all of them is not compared."""
    if near := difflib.get_close_matches(name, names, n=1):
        return f"did you mean {before}{near[0]}?"
    return f"there are: {', '.join(names) or 'none'}" if len(names) < 40 else f"none of the {len(names)} is like it"


def written(value: Any) -> str:
    """Return a value as one types it, not longer than a line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value) if isinstance(value, str | list | dict) else str(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
