"""From a recipe's values to objects, and back."""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens
from socialgraph.edges import EdgeSampler
from socialgraph.errors import MAY_RAISE, OptionError, SocialgraphError, first_line, raised_at, suggestion
from socialgraph.partition import Partition

Finder = Callable[[str], Callable[..., Any]]
"""Name of a class, such as "socialgraph.nn.MaxP" -> what makes an object."""

#: where this package keeps the classes that a recipe may name
ROOMS = ("data", "edges", "nn", "partition")
#: how a model starts from its backbone
BACKBONE = ".from_backbone"


def imported(name: str) -> Callable[..., Any]:
    """Return a class, or a method of it that makes an object, by its dotted name: of any module.

    Importing a module runs it, so this is for names that the user has typed, and for no others.

    Raises:
        OptionError: there is none.
    """
    module, _, attribute = name.removesuffix(BACKBONE).rpartition(".")
    if not module:
        raise OptionError(f"{name}: a class is named with its module, my_module.{name}")
    try:
        there = module_named(module)
    except OptionError as error:
        raise OptionError(f"{name}: {error}") from error
    kind = getattr(there, attribute, None)
    if kind is None:
        classes = [item for item, value in vars(there).items() if isinstance(value, type)]
        raise OptionError(f"{name}: {module} has no {attribute}; {suggestion(attribute, classes)}")
    if name.endswith(BACKBONE):
        kind = getattr(kind, BACKBONE[1:], None)
    if not callable(kind):
        raise OptionError(f"{name} is no class, but of the type {type(kind).__name__}")
    return cast("Callable[..., Any]", kind)


def class_named(name: str, *kinds: type) -> type[Any]:
    """Return a class by its dotted name, if it is derived from one of some kinds.

    Raises:
        OptionError: there is none, or it is of another kind.
    """
    kind = imported(name)
    if not (isinstance(kind, type) and issubclass(kind, kinds)):
        wanted = " or ".join(f"{one.__module__.rpartition('.')[0]}.{one.__name__}" for one in kinds)
        raise OptionError(f"{name} is no subclass of {wanted}")
    return kind


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
    except MAY_RAISE as error:
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


def build(spec: Any, find: Finder = imported) -> Any:
    """Return what a recipe describes: values as they are, and an object for each table with ``_target_``.

    Args:
        spec: plain values, as of JSON.
        find: gives the class behind a name.

    Raises:
        OptionError: no such class, or it does not take these options; it names both.
    """
    if isinstance(spec, list):
        return [build(one, find) for one in spec]
    if not isinstance(spec, dict):
        return spec
    inside = {key: build(value, find) for key, value in spec.items() if key != "_target_"}
    if "_target_" not in spec:
        return inside
    make = find(str(spec["_target_"]))
    is_method = isinstance(getattr(make, "__self__", None), type)  # a model's from_backbone
    if is_method and (known := options_of(make)) is not None:
        for name in inside.keys() - known:
            raise OptionError(f"{spec['_target_']} takes no {name!r}; {suggestion(name, sorted(known))}")
    try:
        return make(**inside)
    except SocialgraphError:
        raise
    except MAY_RAISE as error:  # a class of one's own may raise anything
        kind = "" if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: "
        raise OptionError(f"{spec['_target_']}: {kind}{first_line(error)}") from error


def build_named(spec: Any, option: str, find: Finder = imported) -> Any:
    """Do as :func:`build`; an error begins with the option in which the description stands, if it has a name."""
    try:
        return build(spec, find)
    except OptionError as error:
        raise OptionError(f"{option}: {error}" if option else str(error)) from error


def spec_of(value: Any) -> Any:
    """Return the description of an object from which :func:`build` makes it again.

    An object's arguments are read from its attributes of the same names, as scikit-learn does.

    Raises:
        OptionError: it does not keep one of its arguments, or one that no file can hold.
    """
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple):
        return [spec_of(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): spec_of(one) for key, one in value.items()}
    name = name_of(type(value))
    if type(value).__module__ == "builtins" or isinstance(value, Tensor):
        raise OptionError(f"a value of type {type(value).__name__} cannot be saved with a recipe")
    spec: dict[str, Any] = {"_target_": name}
    for argument, parameter in arguments(type(value)).items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise OptionError(f"{name} takes any arguments (*{argument}): name them, so that they can be saved")
        if not hasattr(value, argument):
            raise OptionError(f"{name} does not keep its argument {argument!r}: write self.{argument} = {argument}")
        spec[argument] = spec_of(getattr(value, argument))
    return spec


#: parts of a recipe, and what each must be
PARTS: dict[str, type] = {
    "edges": EdgeSampler, "circles": Partition, "passages": Partition, "relevance": Callable,  # type: ignore[dict-item]
}  # fmt: skip


def _shown(spec: Any) -> str:
    return str(spec["_target_"] if isinstance(spec, dict) and "_target_" in spec else spec)[:200]


@dataclass
class Parts:
    """What makes a system's graphs.

    Attributes:
        edges: who knows whom; None where nobody asks.
        circles: friend circles.
        passages: cuts the text.
        relevance: rates circles, for models that choose.
        joint: whether the query is part of the graph.
    """

    edges: EdgeSampler | None
    circles: Partition | None
    passages: Partition | None
    relevance: Callable[[Batch, TermStatistics], Tensor] | None
    joint: bool

    @classmethod
    def of(cls, recipe: Mapping[str, Any], find: Finder = imported, typed: Mapping[str, str] | None = None) -> Parts:
        """Make the parts of a recipe; see :func:`build` for what is raised.

        Args:
            recipe: its values.
            find: gives the class behind a name.
            typed: part -> the option by which the user names it: "partition" for circles. Errors begin with it.
        """
        made = {name: build_named(recipe[name], (typed or {}).get(name, ""), find) for name in PARTS}
        for name, part in made.items():
            if recipe[name] is not None and not isinstance(part, PARTS[name]):
                raise OptionError(f"{name}: {_shown(recipe[name])} is no {PARTS[name].__name__}")
        return cls(**made, joint=bool(recipe["joint"]))

    def builder(
        self, documents: Mapping[str, Document], tokens: Tokens, statistics: TermStatistics, **options: Any
    ) -> GraphBuilder:
        """Return what builds the graphs of these documents.

        Args:
            documents: by id.
            tokens: texts to word pieces.
            statistics: document frequencies.
            options: others of :class:`~socialgraph.data.GraphBuilder`, such as ``seed``, ``device`` and ``cache``.
        """
        own = (self.edges, self.circles, self.passages, self.relevance, self.joint)
        return GraphBuilder(documents, tokens, statistics, *own, **options)

    def modules(self) -> dict[str, torch.nn.Module]:
        """Return the parts that may hold weights, by name."""
        parts = {name: getattr(self, name) for name in PARTS}
        return {name: part for name, part in parts.items() if isinstance(part, torch.nn.Module)}
