"""A class by the dotted name that a user gives it."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from socialgraph.described import BACKBONE, name_of
from socialgraph.errors import FROM_OUTSIDE, OptionError, first_line, raised_at, suggestion


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
    typed, found, why = f"{option}{name}", None, ""
    if not module:
        why = f"a class is named with its module, my_module.{name}"
    else:
        there = _module(module, typed)
        kind = getattr(there, attribute, None)
        found = getattr(kind, BACKBONE[1:], None) if name.endswith(BACKBONE) else kind
        if kind is None:
            why = _missing(there, module, attribute)
        elif kinds and not (isinstance(kind, type) and issubclass(kind, kinds)):
            why = f"{attribute} is no subclass of {' or '.join(map(name_of, kinds))}"
        elif not callable(found):
            why = f"it is no class, but of the type {type(found).__name__}"
    if why or not callable(found):
        raise OptionError(f"{typed}: {why}")
    return found


def _missing(there: ModuleType, module: str, attribute: str) -> str:
    """Return why a module has no such class: another module of this name was found first, perhaps."""
    own = Path(*module.split(".")).with_suffix(".py")
    known = getattr(there, "__file__", None) or "a part of Python"
    if own.exists() and own.resolve() != Path(known).resolve():
        return f"another module is called {module}, too ({known}): give {own} another name"
    classes = [item for item, value in vars(there).items() if isinstance(value, type)]
    return f"{module} has no {attribute}; {suggestion(attribute, classes)}"


def _module(name: str, typed: str) -> ModuleType:
    """Import a module, whatever its file does.

    Raises:
        OptionError: there is none, or it cannot be imported; it names the line where that is known.
    """
    try:
        return importlib.import_module(name)
    except FROM_OUTSIDE:
        raise
    except BaseException as error:
        why = first_line(error)
        if isinstance(error, ModuleNotFoundError):
            why = f"{why}; is it in this folder, or installed?"
        elif not isinstance(error, ImportError | SyntaxError):  # those say where
            at = raised_at(error, traceback.extract_tb(error.__traceback__)[-1].filename)
            why = f"importing {name!r} raises {type(error).__name__}: {why}{at}"
        raise OptionError(f"{typed}: {why}") from error
