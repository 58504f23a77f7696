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
