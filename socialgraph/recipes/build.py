"""From a recipe's values to objects, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens
from socialgraph.edges import EdgeSampler
from socialgraph.errors import FROM_OUTSIDE, OptionError, SocialgraphError, first_line, suggestion
from socialgraph.partition import Partition
from socialgraph.recipes.classes import Finder, arguments, imported, name_of, options_of


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
    seed = torch.initial_seed()
    try:
        made = make(**inside)
    except (SocialgraphError, *FROM_OUTSIDE):
        raise
    except BaseException as error:  # a class of one's own may raise anything
        kind = "" if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: "
        raise OptionError(f"{spec['_target_']}: {kind}{first_line(error)}") from error
    if isinstance(made, torch.nn.Module) and (what := _unsound(made, seed)):
        raise OptionError(f"{spec['_target_']}: {what}")
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
