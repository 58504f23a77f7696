"""Partitions as somebody might write them by mistake, and what is said of each; nothing of those that are right.

``PARTITIONS`` is name -> (class, or whatever makes one; pattern of what is said). Each is named as users name theirs:
``partition._target_=mistaken_partitions.Numpy``.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import threading
from collections import namedtuple
from typing import Any

import torch
from torch import Tensor

from socialgraph.partition import NodeCircles, Partition


class Right(NodeCircles):
    """Asks for all edges; what is derived from it changes the answer, or what is around it."""

    def __init__(self, k: int = 2, max_size: int = 9) -> None:
        super().__init__(k=k, max_size=max_size)

    def from_sampled(self, graph: Any) -> Any:
        return Partition.from_sampled(self, graph)


Answered = namedtuple("Answered", "circle_index leader_index")


def answering(answer: Any) -> type[Right]:
    """Return a class that makes something else of the right answer: of circle_index, leader_index, batch."""

    class Answering(Right):
        def forward(self, edge_index: Any, batch: Any, batch_size: Any, edge_weight: Any = None) -> Any:
            return answer(*super().forward(edge_index, batch, batch_size, edge_weight), batch)

    return Answering


def with_forward(forward: Any) -> type[Right]:
    return type("WithForward", (Right,), {"forward": forward})


def beginning(begin: Any) -> type[Right]:
    """Return a class that does something more when it is made."""

    class Beginning(Right):
        def __init__(self, k: int = 2, max_size: int = 9) -> None:
            super().__init__(k, max_size)
            begin(self)

    return Beginning


def doing(do: Any) -> type[Right]:
    """Return a class that does something to its graph before it answers rightly."""

    class Doing(Right):
        def forward(self, edge_index: Any, batch: Any, batch_size: Any, edge_weight: Any = None, graph: Any = None):
            do(self, edge_index, batch, edge_weight, graph)
            return super().forward(edge_index, batch, batch_size, edge_weight)

    return Doing


def local_ids(index: Tensor, leader: Tensor, batch: Tensor) -> Any:
    first = torch.searchsorted(batch, batch)
    return torch.stack([index[0] - first[index[0]], index[1]]), leader - first[leader]


def mask(index: Tensor, leader: Tensor, batch: Tensor) -> Any:
    members = torch.zeros(len(leader), len(batch), dtype=torch.bool)
    members[index[1], index[0]] = True
    return members, leader


def one_document(self: Any, edge_index: Any, batch: Any, batch_size: Any, edge_weight: Any = None) -> Any:
    return NodeCircles.forward(self, edge_index, torch.zeros_like(batch), 1, edge_weight)


def yielding(self: Any, *graph: Any) -> Any:
    yield NodeCircles.forward(self, *graph)


async def awaited(self: Any, *graph: Any) -> Any:
    return NodeCircles.forward(self, *graph)


def batch_first(self: Any, batch: Any, edge_index: Any, batch_size: Any, edge_weight: Any = None) -> Any:
    return NodeCircles.forward(self, edge_index, batch, batch_size, edge_weight)


def in_a_thread(self: Any, *graph: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(NodeCircles.forward(self, *graph)))
    thread.start()
    thread.join()
    return found[0]


class Abstract(Partition, abc.ABC):
    @abc.abstractmethod
    def forward(self, *graph: Any) -> Any: ...


class WithoutSuper(Partition):
    def __init__(self, k: int = 2) -> None:
        self.k = k


@dataclasses.dataclass
class Fields(Partition):
    k: int = 2

    def forward(self, *graph: Any) -> Any:
        return NodeCircles(self.k, 9)(*graph)


@dataclasses.dataclass
class FieldsAndHash(Fields):
    def __post_init__(self) -> None:
        Partition.__init__(self)


@dataclasses.dataclass(eq=False)
class RightFields(Partition):
    k: int = 2

    def __post_init__(self) -> None:
        super().__init__()

    def forward(self, *graph: Any) -> Any:
        return NodeCircles(self.k, 9)(*graph)


class Panic(BaseException):
    """What libraries in Rust raise: no Exception."""


def panic(*_: Any) -> None:
    raise Panic("index out of bounds")


def into_numpy(self: Any, edge_index: Any, batch: Any, edge_weight: Any, graph: Any) -> None:
    graph.input_ids.numpy()[:1] = 3  # PyTorch does not see it


def into_statistics(self: Any, edge_index: Any, batch: Any, edge_weight: Any, graph: Any) -> None:
    if graph.statistics is not None:
        graph.statistics.idf.zero_()


def seeded(self: Any) -> None:
    torch.manual_seed(4)


def locked(self: Any) -> None:
    self.lock = threading.Lock()


def no_function(self: Any) -> None:
    self.forward = 5


FORM, ANSWER = "breaks the law 'form'", "breaks the law 'every graph gets an answer'"
PARTITIONS: dict[str, tuple[Any, str | None]] = {
    "Numpy": (answering(lambda i, x, b: (i.numpy(), x.numpy())), f"{FORM} .* must be a tensor, got ndarray"),
    "Dict": (answering(lambda i, x, b: {int(one): [] for one in x}), f"{FORM} .*, got dict"),
    "ListsOfLists": (answering(lambda i, x, b: [i[0][i[1] == c].tolist() for c in range(len(x))]), f"{FORM} .* list"),
    "Generator": (with_forward(yielding), f"{FORM} .*, got generator"),
    "Coroutine": (with_forward(awaited), f"{FORM} .*, got coroutine"),
    "LeadersFirst": (answering(lambda i, x, b: (x, i)), rf"{FORM} .* the shape \[2, M\], got \[0\]"),
    "CirclesAbove": (answering(lambda i, x, b: (i.flip(0), x)), "the law 'circles are numbered'"),
    "Mask": (answering(mask), f"{FORM} .* must be int64 .*, got torch.bool"),
    "Bytes": (answering(lambda i, x, b: (i.byte(), x.byte())), f"{FORM} .* must be int64 .*, got torch.uint8"),
    "Marks": (answering(lambda i, x, b: (i, x > 3)), f"{FORM} .* must be int64 .*, got torch.bool"),
    "NothingAsFloats": (answering(lambda i, x, b: (torch.tensor([]),) * 2), f"{FORM} .* torch.float32"),
    "OneDocument": (with_forward(one_document), "breaks the law '.*' on the graph 'batch of unequal documents'"),
    "LocalIds": (answering(local_ids), "the law 'a circle lies in one document'"),
    "FirstDocument": (
        answering(lambda i, x, b: (i[:, b[i[0]] == 0], x[b[x] == 0])), "on the graph 'batch of unequal documents'",
    ),
    "BatchFirst": (with_forward(batch_first), ANSWER),
    "GraphAlone": (with_forward(lambda self, graph: None), f"{ANSWER} .* multiple values for argument 'graph'"),
    "TwoArguments": (with_forward(lambda self, edge_index, batch: None), f"{ANSWER} .* takes 3 positional arguments"),
    "Itself": (with_forward(lambda self, *graph: self(*graph)), f"{ANSWER} .* raises RecursionError"),
    "NoMore": (with_forward(lambda self, *graph: next(iter([]))), f"{ANSWER} .* raises StopIteration"),
    "Group": (with_forward(lambda self, *_: panic_group()), f"{ANSWER} .* raises ExceptionGroup: two "),
    "Panicking": (doing(panic), f"{ANSWER} .* raises Panic: index out of bounds"),
    "PanickingBorn": (beginning(panic), "^error: partition: .*PanickingBorn: Panic: index out of bounds"),
    "NoForward": (type("NoForward", (Partition,), {}), f"{ANSWER} .* NoForward has no forward"),
    "NoFunction": (beginning(no_function), f"{ANSWER} .* 5 is not a callable object"),
    "Abstract": (Abstract, "^error: partition: .* abstract class Abstract"),
    "WithoutSuper": (WithoutSuper, r"^error: partition: .*WithoutSuper: its __init__ must call super\(\).__init__\(\)"),
    "Fields": (Fields, r"^error: partition: .*Fields: its __init__ must call super\(\).__init__\(\)"),
    "FieldsAndHash": (FieldsAndHash, r"^error: partition: .*: it has no hash, .* write @dataclass\(eq=False\)"),
    "Instance": (NodeCircles(2), "is no class"),
    "ClassMaker": (lambda k=2: NodeCircles, "is no class"),
    "Seeding": (beginning(seeded), "^error: partition: .*: its __init__ seeds PyTorch's global generator"),
    "Doubles": (
        doing(lambda *_: torch.set_default_dtype(torch.float64)), "default type is torch.float64",
    ),
    "Locked": (beginning(locked), "breaks the law 'it can be copied' .* cannot pickle '_thread.lock' object"),
    "IntoNumpy": (doing(into_numpy), "the law 'inputs stay as they are' .* graph.input_ids is another"),
    "IntoStatistics": (doing(into_statistics), "the law 'inputs stay as they are' .* graph.statistics.idf is another"),
    "RightTuple": (answering(lambda i, x, b: Answered(i, x)), None),
    "RightViews": (answering(lambda i, x, b: (torch.stack([*i], 1).T, torch.stack([x, x], 1)[:, 0])), None),
    "RightThread": (with_forward(in_a_thread), None),
    "RightInference": (with_forward(torch.inference_mode()(NodeCircles.forward)), None),
    "RightFields": (RightFields, None),
    "Partial": (functools.partial(NodeCircles, k=2, max_size=9), "is no class"),
    "Maker": (lambda k=2: NodeCircles(k, 9), "is no class"),
}  # fmt: skip


def panic_group() -> None:
    raise ExceptionGroup("two", [ValueError("a"), TypeError("b")])


for _name, (_made, _) in PARTITIONS.items():
    globals()[_name] = _made
    if isinstance(_made, type):
        _made.__name__ = _made.__qualname__ = _name
