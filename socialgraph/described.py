"""An object as plain values, and back: what recipes, saved rankers, model cards and printed objects are made of.

``{"_target_": "socialgraph.partition.Windows", "size": 128}`` describes ``Windows(size=128)``.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Number
from typing import Any

import torch

from socialgraph.errors import FROM_OUTSIDE, OptionError, SocialgraphError, first_line, suggestion

Finder = Callable[[str], Callable[..., Any]]
"""Name of a class, such as "socialgraph.nn.MaxP" -> what makes an object."""

#: how a model starts from its backbone
BACKBONE = ".from_backbone"
#: where this package keeps the classes that a description may name
ROOMS = ("data", "edges", "nn", "partition")


class Described:
    """Prints the options of its constructors, those of the bases first, that it keeps under their own names.

    Graphs, scores and weights are kept by what they were made by, as it prints itself: two that differ in an option
    must not look the same. An option that is no number, text, truth value or None is left out, since many an object
    prints its place in memory; a class that has one prints itself by a ``__repr__`` of its own.
    """

    def __repr__(self) -> str:
        names = [one.name for arguments in reversed([*_constructors(type(self))]) for one in arguments]
        options = {name: getattr(self, name, ...) for name in names}
        plain = {name: value for name, value in options.items() if isinstance(value, Number | str | None)}
        return text_of({"_target_": type(self).__name__, **plain})


def spec_of(value: Any) -> Any:
    """Return the description of an object from which :func:`instantiate` makes it again; plain values as they are.

    An object's arguments are read from its attributes of the same names, as scikit-learn does; of a module that does
    not keep them, and was made by :func:`instantiate`, they are what was said there.

    Raises:
        OptionError: it does not keep one of its arguments, or one that no file can hold.
    """
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple):
        return [spec_of(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): spec_of(one) for key, one in value.items()}
    try:
        return {"_target_": name_of(type(value)), **{name: spec_of(one) for name, one in _arguments(value).items()}}
    except OptionError as error:
        if (given := getattr(value, "_given", None)) is not None:
            return {"_target_": name_of(type(value)), **given}
        raise OptionError(f"{name_of(type(value))}: {error}") from error


def _arguments(value: object) -> dict[str, Any]:
    """Return what an object was made of, by its attributes."""
    if type(value).__module__ == "builtins" or isinstance(value, torch.Tensor):
        raise OptionError(f"a value of type {type(value).__name__} cannot be saved")
    if (names := options_of(type(value))) is None:
        raise OptionError("it takes any arguments (**kwargs): name them, so that they can be saved")
    for name in names:
        if not hasattr(value, name):
            raise OptionError(f"it does not keep its argument {name!r}: write self.{name} = {name}")
    return {name: getattr(value, name) for name in names}


def text_of(spec: Any) -> str:
    """Return a description in one line: ``Windows(size=128)``."""
    if isinstance(spec, Mapping) and "_target_" in spec:
        name = str(spec["_target_"]).removesuffix(BACKBONE).rsplit(".", 1)[-1]
        return f"{name}({', '.join(f'{key}={text_of(one)}' for key, one in spec.items() if key != '_target_')})"
    if isinstance(spec, Mapping):
        return "{" + ", ".join(f"{key}: {text_of(value)}" for key, value in spec.items()) + "}"
    return repr(spec) if isinstance(spec, str) else str(spec)


def instantiate(spec: Any, find: Finder, *kinds: type) -> Any:
    """Return what a description says: values as they are, and an object for each table with ``_target_``.

    Args:
        spec: plain values, as of JSON.
        find: gives the class behind a name.
        kinds: the object must be of one of these, and objects inside it modules of torch: all are classes, and are
            looked at before anything is made. None: functions that make an object will do, too.

    Raises:
        OptionError: no such class, one of another kind, or it does not take these options; it names both.
    """
    inside = (torch.nn.Module,) if kinds else ()
    if isinstance(spec, list):
        return [instantiate(one, find, *inside) for one in spec]
    if not isinstance(spec, dict):
        return spec
    if "_target_" not in spec:
        return {key: instantiate(value, find, *inside) for key, value in spec.items()}
    name = str(spec["_target_"])
    make = find(name)
    kind = getattr(make, "__self__", make)  # of a model's from_backbone
    if kinds and not (isinstance(kind, type) and issubclass(kind, kinds)):
        raise OptionError(f"{name[:200]} is no {' or '.join(one.__name__ for one in kinds)}")
    options = {key: instantiate(value, find, *inside) for key, value in spec.items() if key != "_target_"}
    if make is not kind and isinstance(kind, type) and (known := options_of(kind)) is not None:
        for option in options.keys() - {*known, "backbone"}:
            raise OptionError(f"{name} takes no {option!r}; {suggestion(option, sorted(known))}")
    seed = torch.initial_seed()
    try:
        made = make(**options)
    except (SocialgraphError, *FROM_OUTSIDE):
        raise
    except BaseException as error:  # a class of one's own may raise anything
        which = "" if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: "
        raise OptionError(f"{name}: {which}{first_line(error)}") from error
    if isinstance(made, torch.nn.Module) and (what := _unsound(made, seed)):
        raise OptionError(f"{name}: {what}")
    if isinstance(made, torch.nn.Module):
        made._given = {key: value for key, value in spec.items() if key != "_target_"}  # type: ignore[assignment]
    return made


def _unsound(made: torch.nn.Module, seed: int) -> str | None:
    """Return why PyTorch could not work with a module, or what it has changed for all others, or nothing.

    Args:
        made: a module.
        seed: of the global generator before it was made.
    """
    if "_parameters" not in vars(made):
        return "its __init__ must call super().__init__() before all else"
    if type(made).__hash__ is None:
        return "it has no hash, and PyTorch needs one; of a dataclass write @dataclass(eq=False)"
    if torch.initial_seed() != seed:
        return "its __init__ seeds PyTorch's global generator, which all weights are drawn from; make one of its own"
    return None


class Known:
    """Finds classes for a file that nobody needs to trust: some of this package, and those that the user hands over.

    Nothing is imported because a file says so.

    Args:
        own: the user's own classes.
        kinds: classes of this package are of these kinds; none: no class of this package.
    """

    def __init__(self, own: Sequence[type], *kinds: type) -> None:
        self.own = {name_of(one): one for one in own}
        self.kinds = kinds

    def __call__(self, name: str) -> type:
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
            if isinstance(kind, type) and issubclass(kind, self.kinds):
                return kind
            what = " or ".join(one.__name__ for one in self.kinds) or "class that may stand there"
            raise OptionError(f"{name[:200]!r} is no {what} of socialgraph.{room}")
        last = name.rsplit(".", 1)[-1]
        advice = f"pass it, classes=[{last if last.isidentifier() else 'MyClass'}], if you know and trust it"
        raise OptionError(f"{name[:200]!r} is no class of socialgraph, and is not imported for a file: {advice}")


def name_of(kind: Any) -> str:
    """Return a class's dotted name; of one of this package the short one, such as "socialgraph.partition.Windows"."""
    name, module = str(kind.__name__), str(kind.__module__).split(".")
    full = f"{kind.__module__}.{kind.__qualname__}"
    if module[0] != "socialgraph" or len(module) < 2 or module[1] not in ROOMS:
        return full
    room = importlib.import_module(f"socialgraph.{module[1]}")
    return f"socialgraph.{module[1]}.{name}" if vars(room).get(name) is kind else full


def options_of(kind: type) -> list[str] | None:
    """Return the names of the options that a class takes, and hands on to those that it is derived from.

    Returns:
        None where it takes any.

    Raises:
        OptionError: it does not say what it takes.
    """
    names, takes_any = dict[str, None](), False
    for arguments in _constructors(kind):
        names |= dict.fromkeys(one.name for one in arguments if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD))
        takes_any = any(one.kind is one.VAR_KEYWORD for one in arguments)
        if not takes_any:
            break
    return None if takes_any else list(names)


def _constructors(kind: type) -> Iterator[list[inspect.Parameter]]:
    """Yield what the constructor of a class takes, and those of its bases; PyTorch's own takes nothing."""
    for one in inspect.getmro(kind):
        if one in (torch.nn.Module, object):
            return
        if "__init__" in vars(one):
            try:
                yield [*inspect.signature(vars(one)["__init__"]).parameters.values()][1:]
            except (TypeError, ValueError) as error:
                raise OptionError(f"{kind.__name__}: {first_line(error)}") from error
