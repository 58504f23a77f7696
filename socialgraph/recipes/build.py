"""From a recipe's values to objects, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.data import Document, GraphBuilder, PassageBM25, PassageSample, TermStatistics, Tokens
from socialgraph.described import Finder, Known, instantiate
from socialgraph.edges import EdgeSampler, Pattern
from socialgraph.errors import OptionError
from socialgraph.partition import Partition
from socialgraph.recipes.classes import imported


def build(spec: Any, *kinds: type) -> Any:
    """Return what a recipe describes, see :func:`socialgraph.described.instantiate`; its names are imported."""
    return instantiate(spec, imported, *kinds)


def build_named(spec: Any, option: str, *kinds: type, find: Finder = imported) -> Any:
    """Do as :func:`build`; an error begins with the option in which the description stands, if it has a name."""
    try:
        return instantiate(spec, find, *kinds)
    except OptionError as error:
        raise OptionError(f"{option}: {error}" if option else str(error)) from error


#: parts of a recipe, and what each must be
PARTS: dict[str, Any] = {"edges": EdgeSampler, "circles": Partition, "passages": Partition, "relevance": Callable}
#: classes of this package that a saved ranker may name for them, and inside them
KNOWN: dict[str, tuple[type, ...]] = {
    "edges": (EdgeSampler, Pattern), "circles": (Partition,), "passages": (Partition,),
    "relevance": (PassageBM25, PassageSample),
}  # fmt: skip


@dataclass
class Parts:
    """What makes a system's graphs.

    Attributes:
        edges: who knows whom; None where nobody asks.
        circles: friend circles.
        passages: cuts the text.
        relevance: rates circles, for models that choose.
        joint: whether the query is part of the graph.
        draws: graphs of a pair whose scores are averaged.
    """

    edges: EdgeSampler | None
    circles: Partition | None
    passages: Partition | None
    relevance: Callable[[Batch, TermStatistics], Tensor] | None
    joint: bool
    draws: int = 1

    @classmethod
    def of(
        cls, recipe: Mapping[str, Any], typed: Mapping[str, str] | None = None, classes: Sequence[type] | None = None
    ) -> Parts:
        """Make the parts of a recipe; see :func:`build_named` for what is raised.

        Args:
            recipe: its values.
            typed: part -> the option by which the user names it: "partition" for circles. Errors begin with it.
            classes: the user's own, where the recipe is a file that nobody needs to trust: nothing but these and the
                parts of this package is made. None: classes are imported by their names.
        """
        made = {}
        for name, kind in PARTS.items():
            find = imported if classes is None else Known(classes, *KNOWN[name])
            made[name] = build_named(recipe[name], (typed or {}).get(name, name), kind, find=find)
        return cls(**made, joint=bool(recipe["joint"]), draws=recipe.get("draws") or 1)

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
        return GraphBuilder(documents, tokens, statistics, *own, draws=self.draws, **options)

    def modules(self) -> dict[str, torch.nn.Module]:
        """Return the parts that may hold weights, by name."""
        parts = {name: getattr(self, name) for name in PARTS}
        return {name: part for name, part in parts.items() if isinstance(part, torch.nn.Module)}
