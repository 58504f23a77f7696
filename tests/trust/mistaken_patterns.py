"""Patterns as somebody might write them by mistake, and what is said of each; nothing of those that are right.

``PATTERNS`` is name -> (class, or whatever makes one; pattern of what is said). Each is named as users name theirs:
``+edges.patterns.own._target_=mistaken_patterns.Booleans``.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from typing import Any

import numpy as np
import torch
from drawing import Rule, near
from mistaken_partitions import Panic
from torch import Tensor

from socialgraph.edges import Affinity, Centrality, LowRank, Pattern, StaticDistance
from socialgraph.edges.layout import documents


def by_rule(rule: Any) -> type[Pattern]:
    """Return a class whose P(i, j) is somebody's rule of node ids."""
    return answering(lambda graph: Rule(*documents(graph), rule))


def answering(answer: Any) -> type[Pattern]:
    return type("Answering", (Pattern,), {"forward": lambda self, graph: answer(graph)})


def weighing(weigh: Any) -> type[Centrality]:
    return type("Weighing", (Centrality,), {"weights": lambda self, graph: weigh(graph)})


def beginning(begin: Any) -> type[Pattern]:
    """Return a class that does something when it is made."""

    class Beginning(Pattern):
        def __init__(self) -> None:
            super().__init__()
            begin(self)

        def forward(self, graph: Any) -> Any:
            return Rule(*documents(graph), near)

    return Beginning


def doing(do: Any) -> type[Pattern]:
    """Return a class that does something to its graph before it answers rightly."""

    def answer(graph: Any) -> Any:
        do(graph)
        return Rule(*documents(graph), near)

    return answering(answer)


def matrix(graph: Any) -> Tensor:
    place = torch.arange(graph.num_nodes)
    return near(place[:, None], place)


def in_place(i: Tensor, j: Tensor) -> Tensor:
    return 1 / (1 + i.sub_(j).abs_().double()) if i.shape == j.shape else near(i, j)


def panic(i: Tensor, j: Tensor) -> None:
    raise Panic("index out of bounds")


class Kept(Pattern):
    """The answer of the first graph."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: Any = None

    def forward(self, graph: Any) -> Any:
        self.kept = Rule(*documents(graph), near) if self.kept is None else self.kept
        return self.kept


class WithoutSuper(Pattern):
    def __init__(self) -> None:
        self.width = 8


@dataclasses.dataclass
class Fields(Pattern):
    width: int = 8


class RightInt32(Pattern):
    def forward(self, graph: Any) -> Any:
        batch, ptr = documents(graph)
        return Rule(batch, ptr.int(), lambda i, j: near(i.int(), j.int()))


def bounds_further(graph: Any) -> Any:
    batch, ptr = documents(graph)
    return Rule(batch, ptr + 1, near)


def dropped(graph: Any) -> Tensor:
    return torch.nn.functional.dropout(graph.tfidf.float(), 0.5)


def by_first_place(graph: Any) -> Any:
    size = graph.num_nodes
    return Rule(*documents(graph), lambda i, j: (i + 0 * j).double() / (size + 1))


AFFINITY = "breaks the law 'it answers with an affinity'"
NUMBERS = "breaks the law 'weights are a number for each node'"
PATTERNS: dict[str, tuple[Any, str | None]] = {
    "NumpyMatrix": (answering(lambda graph: matrix(graph).numpy()), f"{AFFINITY} .* got ndarray"),
    "AClass": (answering(lambda graph: Affinity), f"{AFFINITY} .* got type"),
    "InTuple": (answering(lambda graph: (Rule(*documents(graph), near),)), f"{AFFINITY} .* got tuple"),
    "Backwards": (answering(lambda graph: Rule(*documents(graph)[::-1], near)), f"{AFFINITY} .* batch must be the"),
    "PlainGraph": (answering(lambda graph: Rule(graph.batch, graph.ptr, near)), f"{AFFINITY} .* no attribute 'ptr'"),
    "BoundsFurther": (answering(bounds_further), "breaks the law '.*' on the graph 'one word'"),
    "NoPair": (answering(lambda graph: Affinity(*documents(graph))), f"{AFFINITY} .* Affinity has no pair"),
    "NoForward": (type("NoForward", (Pattern,), {}), f"{AFFINITY} .* NoForward has no forward"),
    "NoWeights": (type("NoWeights", (Centrality,), {}), f"{NUMBERS} .* NoWeights has no weights"),
    "HalfPrecise": (by_rule(lambda i, j: near(i, j).half()), f"{AFFINITY} .* float64 on cpu, got torch.float16"),
    "Booleans": (by_rule(lambda i, j: (i - j).abs() < 5), f"{AFFINITY} .* float64 on cpu, got torch.bool"),
    "ComplexNumbers": (by_rule(lambda i, j: near(i, j) + 0j), f"{AFFINITY} .* float64 on cpu, got torch.complex128"),
    "NumpyPairs": (by_rule(lambda i, j: near(i, j).numpy()), f"{AFFINITY} .* a dense tensor, got ndarray"),
    "ListOfPairs": (by_rule(lambda i, j: near(i, j).tolist()), f"{AFFINITY} .* a dense tensor, got list"),
    "SparsePairs": (by_rule(lambda i, j: near(i, j).to_sparse()), f"{AFFINITY} .* a dense tensor, got torch.sparse"),
    "OneAxisMore": (by_rule(lambda i, j: near(i, j)[..., None]), f"{AFFINITY} "),
    "SmallPlaces": (by_rule(lambda i, j: 1 / (1 + (i.byte() - j.byte()).double())), "'who comes first does not mat"),
    "PlaceAmongAll": (by_rule(lambda i, j: ((i + j) % 97).double() / 97), "'a batch is its documents alone'"),
    "FirstPlaces": (by_rule(lambda i, j: near(i, j) * ((i < 9) & (j < 9))), "'a batch is its documents alone'"),
    "InPlacePairs": (by_rule(in_place), None),  # nobody else reads the ids that it is given
    "Expanded": (
        by_rule(lambda i, j: torch.tensor(0.5).double().expand(torch.broadcast_shapes(i.shape, j.shape))), "breaks",
    ),
    "Clocked": (by_rule(lambda i, j: near(i, j) * (time.perf_counter_ns() % 97 / 97)), "'the same graph gets the same"),
    "NumpyDice": (by_rule(lambda i, j: near(i, j) * np.random.rand()), "'the same graph gets the same values'"),
    "Panicking": (by_rule(panic), f"{AFFINITY} .* raises Panic: index out of bounds"),
    "Kept": (Kept, "'a batch is its documents alone' .*: documents of "),
    "ByFirstPlace": (answering(by_first_place), "'who comes first does not matter'"),
    "ShortKernel": (
        answering(lambda graph: LowRank(*documents(graph), kernel=torch.ones(5) / 2)),
        f"{AFFINITY} .* the kernel has 5 distances",
    ),
    "UnknownStatistic": (doing(lambda graph: graph.statistics.nobody), f"{AFFINITY} .* no attribute 'nobody'"),
    "AskingEdges": (doing(lambda graph: graph.edge_index.size()), f"{AFFINITY} .* no attribute 'size'"),
    "Deleting": (doing(lambda graph: graph.__delitem__("tfidf")), "'the graph stays as it is' .* KeyError: 'tfidf'"),
    "IntoStatistics": (doing(lambda graph: graph.statistics.idf.zero_()), "stays as it is' .* graph.statistics.idf"),
    "NumpyWeights": (weighing(lambda graph: graph.input_ids.numpy()), rf"{NUMBERS} .* \[0\], got ndarray"),
    "ComplexWeights": (weighing(lambda graph: graph.tfidf + 0j), f"{NUMBERS} .* got torch.complex64"),
    "SparseWeights": (weighing(lambda graph: graph.tfidf.to_sparse()), f"{NUMBERS} .* torch.sparse_coo"),
    "QueryWeights": (weighing(lambda graph: graph.query_ids.double()), rf"{NUMBERS} .* \[0\], got torch.float64 \[1\]"),
    "DroppedWeights": (weighing(dropped), "'the same graph gets the same values'"),
    "LessThanMean": (weighing(lambda graph: graph.tfidf < graph.tfidf.mean()), "'a batch is its documents alone'"),
    "WithoutSuper": (WithoutSuper, r"^error: edges: .*: its __init__ must call super\(\).__init__\(\)"),
    "Fields": (Fields, r"^error: edges: .*: its __init__ must call super\(\).__init__\(\)"),
    "Locked": (beginning(lambda self: setattr(self, "lock", threading.Lock())), "breaks the law 'it can be copied'"),
    "Seeding": (beginning(lambda self: torch.manual_seed(4)), "^error: edges: .* seeds PyTorch's global generator"),
    "Doubles": (beginning(lambda self: torch.set_default_dtype(torch.float64)), "default type is torch.float64"),
    "Instance": (StaticDistance(), "is no Module"),
    "RightInt32": (RightInt32, None),
    "Partial": (functools.partial(StaticDistance, p=9), "is no Module"),
    "Maker": (lambda: StaticDistance(9), "is no Module"),
    "RightBooleanWeights": (weighing(lambda graph: graph.input_ids > 20), None),
}  # fmt: skip

for _name, (_made, _) in PATTERNS.items():
    globals()[_name] = _made
    if isinstance(_made, type):
        _made.__name__ = _made.__qualname__ = _name
