"""A class by the dotted name that a recipe or a user gives it, and back."""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from socialgraph.errors import FROM_OUTSIDE, OptionError, first_line, raised_at, suggestion

Finder = Callable[[str], Callable[..., Any]]
"""Name of a class, such as "socialgraph.nn.MaxP" -> what makes an object."""

#: where this package keeps the classes that a recipe may name
ROOMS = ("data", "edges", "nn", "partition")
#: how a model starts from its backbone
BACKBONE = ".from_backbone"


def imported(name: str, *kinds: type, option: str = "") -> Callable[..., Any]:
    """Return a class, or its ``from_backbone``, by its dotted name: of any module.

    Importing a module runs it, so this is for names that the user has typed, and for no others.

    Args:
        name: module and class, with ``.from_backbone`` or without.
        kinds: it must be a subclass of one of these; none: anything that makes an object will do.
        option: what the user typed before the name, such as ``partition=``; errors begin with it.

    Raises:
        OptionError: no such module or class, or one of another kind.
    """
    module, _, attribute = name.removesuffix(BACKBONE).rpartition(".")
    typed = f"{option}{name}"
    if not module:
        raise OptionError(f"{typed}: a class is named with its module, my_module.{name}")
    try:
        there = module_named(module)
    except OptionError as error:
        raise OptionError(f"{typed}: {error}") from error
    kind = getattr(there, attribute, None)
    own = Path(*module.split(".")).with_suffix(".py")
    known = getattr(there, "__file__", None) or "a part of Python"
    if kind is None and own.exists() and own.resolve() != Path(known).resolve():
        raise OptionError(f"{typed}: another module is called {module}, too ({known}): give {own} another name")
    if kind is None:
        classes = [item for item, value in vars(there).items() if isinstance(value, type)]
        raise OptionError(f"{typed}: {module} has no {attribute}; {suggestion(attribute, classes)}")
    if kinds and not (isinstance(kind, type) and issubclass(kind, kinds)):
        raise OptionError(f"{typed}: {attribute} is no subclass of {' or '.join(map(name_of, kinds))}")
    if name.endswith(BACKBONE):
        kind = getattr(kind, BACKBONE[1:], None)
    if not callable(kind):
        raise OptionError(f"{typed} is no class, but of the type {type(kind).__name__}")
    made: Callable[..., Any] = kind
    return made


def module_named(name: str) -> ModuleType:
    """Import a module, whatever its file does.

    Raises:
        OptionError: there is none, or it cannot be imported; it names the line where that is known.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise OptionError(f"{error}; is it in this folder, or installed?") from error
    except (ImportError, SyntaxError) as error:  # they say where
        raise OptionError(first_line(error)) from error
    except FROM_OUTSIDE:
        raise
    except BaseException as error:
        at = raised_at(error, traceback.extract_tb(error.__traceback__)[-1].filename)
        raise OptionError(f"importing {name!r} raises {type(error).__name__}: {first_line(error)}{at}") from error


class Known:
    """Finds classes of this package, and those that the user hands over; imports nothing that a file names.

    Args:
        classes: the user's own: classes, or dotted names of some, which are imported here and now.

    Raises:
        OptionError: a name that cannot be imported.
    """

    def __init__(self, classes: Sequence[type | str] = ()) -> None:
        own = [imported(one) if isinstance(one, str) else one for one in classes]
        self.own = {name_of(one): one for one in own}

    def __call__(self, name: str) -> Callable[..., Any]:
        """Return the class of that name.

        Raises:
            OptionError: it is none of them.
        """
        if name in self.own:
            return self.own[name]
        package, _, path = name.partition(".")
        room, _, attribute = path.partition(".")
        if package == "socialgraph" and room in ROOMS:
            public = vars(importlib.import_module(f"socialgraph.{room}"))
            kind = public.get(attribute) if attribute in public["__all__"] else None
            if isinstance(kind, type):
                return kind
            raise OptionError(f"{name[:200]!r} is no class of socialgraph.{room}")
        advice = f"pass it, classes=[{attribute_of(name)}], if you know and trust it"
        raise OptionError(f"{name[:200]!r} is no class of socialgraph, and is not imported for a file: {advice}")


def name_of(kind: Any) -> str:
    """Return a class's dotted name; of one of this package the short one, such as "socialgraph.partition.Windows"."""
    name, module = str(kind.__name__), str(kind.__module__).split(".")
    full = f"{kind.__module__}.{kind.__qualname__}"
    if module[0] != "socialgraph" or len(module) < 2 or module[1] not in ROOMS:
        return full
    room = importlib.import_module(f"socialgraph.{module[1]}")
    return f"socialgraph.{module[1]}.{name}" if vars(room).get(name) is kind else full


def attribute_of(name: str) -> str:
    """Return the last part of a dotted name, as far as it may be shown."""
    last = name.rsplit(".", 1)[-1]
    return last if last.isidentifier() else "MyClass"


def options_of(kind: Callable[..., Any]) -> set[str] | None:
    """Return the names of the options that a class takes, and hands on to those that it is derived from.

    Args:
        kind: a class, or its ``from_backbone``.

    Returns:
        None where it takes any.
    """
    own = getattr(kind, "__self__", kind)
    if not isinstance(own, type):
        parameters = arguments(own).values()
        return None if any(x.kind is x.VAR_KEYWORD for x in parameters) else {x.name for x in parameters}
    names = set() if own is kind else {"backbone"}
    for one in inspect.getmro(own):
        if one in (torch.nn.Module, object):
            return names
        if "__init__" in vars(one):
            inits = arguments(vars(one)["__init__"]).values()
            names |= {x.name for x in inits if x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)} - {"self"}
            if not any(x.kind is x.VAR_KEYWORD for x in inits):
                return names
    return None


def arguments(kind: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return what makes an object of a class.

    Raises:
        OptionError: it does not say so.
    """
    try:
        return inspect.signature(kind).parameters
    except (TypeError, ValueError) as error:
        raise OptionError(f"{getattr(kind, '__name__', kind)}: {first_line(error)}") from error
