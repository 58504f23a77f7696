"""One broken partition for each law, and what is said of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from socialgraph.partition import Communities, NodeCircles, Partition, Windows


class Friends(NodeCircles):
    """Right as it is; those below break one law each."""

    def __init__(self) -> None:
        super().__init__(k=3, max_size=4)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class By(Friends):
    """Has one argument, and prints it."""

    def __init__(self, how) -> None:
        super().__init__()
        self.how = how

    def __repr__(self) -> str:
        return f"{type(self).__name__}(how={self.how!r})"


class Altered(By):
    """Right circles, and what somebody makes of them."""

    def forward(self, *graph):
        return self.how(*super().forward(*graph))


def backwards(index, leader):
    index = torch.stack([index[0], len(leader) - 1 - index[1]])
    return index[:, torch.argsort(index[1], stable=True)], leader.flip(0)


class Everybody(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        node = torch.arange(batch.numel())
        return torch.stack([node, torch.zeros_like(node)]), node[:1]


class NotEmpty(Friends):
    def forward(self, edge_index, batch, *rest):
        batch.max()  # of nothing there is none
        return super().forward(edge_index, batch, *rest)


class Silent(Friends):
    def __init__(self, depth: int = 2) -> None:
        super().__init__()


class Misprinted(Friends):
    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.depth = depth

    def __repr__(self) -> str:
        return "Misprinted(depth=3)"


class InPlace(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        if edge_weight is not None:
            edge_weight.clamp_(max=0.4)  # a second time nothing changes
        return super().forward(edge_index, batch, batch_size, edge_weight)


class Chosen(By):
    """As many circles as somebody says of a partition and its graph."""

    def forward(self, *graph):
        self.k = self.how(self, *graph)
        return super().forward(*graph)


class Remembering(Friends):
    largest = 2

    def __init__(self):
        super().__init__()
        self.k = self.max_size = None  # windows are as many, and as wide, as it takes

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        self.largest = max(self.largest, batch.numel())
        return Windows(max(2, self.largest // 4))(edge_index, batch, batch_size, edge_weight)


class Throwing(By):
    """Throws dice that are not its own; its repr is right."""

    def forward(self, *graph):
        self.how()
        return super().forward(*graph)


class Weighty(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        return super().forward(edge_index, batch, batch_size, edge_weight.abs())


def first_come_first_served(self, edge_index, batch, batch_size, edge_weight=None):
    return 2 if batch_size > 1 and int((batch == batch[:1]).sum()) > 1 else 3


class OtherwiseDrawn(Friends):
    def from_sampled(self, graph):
        self.k = 2
        return super().from_sampled(graph)


class Enlarged(By):
    """Holds itself to one more than it says."""

    def forward(self, *graph):
        setattr(self, self.how, getattr(self, self.how) + 1)
        try:
            return super().forward(*graph)
        finally:
            setattr(self, self.how, getattr(self, self.how) - 1)


class AlwaysTheSame(Friends):
    """The first circle of each document, three times."""

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        (node, circle), leader = super().forward(edge_index, batch, batch_size, edge_weight)
        first = torch.searchsorted(batch[leader], batch[leader]) == torch.arange(len(leader))
        node, number = node[first[circle]], (first.cumsum(0) - 1)[circle[first[circle]]]
        index = torch.cat([torch.stack([node, 3 * number + i]) for i in range(3)], 1)
        return index[:, torch.argsort(index[1] * len(batch) + index[0])], leader[first].repeat_interleave(3)


class RowsSwapped(Communities):
    """All belong to one community; but which row is the node?"""

    def communities(self, edge_index, edge_weight, num_nodes):
        return torch.stack([torch.zeros(num_nodes).long(), torch.arange(num_nodes)])


class FromTheStart(Friends):
    def __init__(self):
        super().__init__()
        self.keep = "first"  # and does not say that places count


class FromTheEnd(Friends):
    """Of equal friends the last stay."""

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        last, others = batch.numel() - 1, None if edge_weight is None else edge_weight.flip(0)
        self.keep = "first"
        index, leader = super().forward(last - edge_index.flip(1), batch_size - 1 - batch.flip(0), batch_size, others)
        index = torch.stack([last - index[0], len(leader) - 1 - index[1]]).flip(1)
        return index, last - leader.flip(0)


FORM, EXIST, NUMBERED = "form", "nodes exist", "circles are numbered"
DICE, NO_END = "global random numbers stay as they are", "equal weights favour no end"
BATCH, FAIR = "batch of unequal documents", "random friends of equal weight"

#: a partition -> (law, graph, and a part of what is said)
BROKEN: dict[Callable[[], Partition], tuple[str, str, str]] = {
    partial(Altered, alter): told
    for alter, told in {
        lambda i, x: (i.float(), x): (FORM, "empty", "circle_index must be int64 on cpu, got torch.float32 on cpu"),
        lambda i, x: (i.T, x): (FORM, "empty", "circle_index must have the shape [2, M], got [0, 2]"),
        lambda i, x: (i, x.to("meta")): (FORM, "empty", "leader_index must be int64 on cpu, got torch.int64 on meta"),
        lambda i, x: i: (FORM, "empty", "forward must return (circle_index, leader_index), got Tensor"),
        lambda i, x: (i + torch.tensor([[1], [0]]), x + 1): (
            EXIST, "one edge", "circle 0 has the member 2, but nodes are 0 to 1",
        ),
        lambda i, x: (i, torch.full_like(x, -1)): (
            EXIST, "one edge", "circle 0 has the leader -1, but nodes are 0 to 1",
        ),
        lambda i, x: (i + torch.tensor([[0], [1]]), x): (
            NUMBERED, "one edge", "there is a circle 1, but leaders only for 1 circles",
        ),
        lambda i, x: (i, x.repeat_interleave(2)[: len(x) + 1]): (
            NUMBERED, "one edge", "circle 1 has a leader but no member",
        ),
        lambda i, x: (i.flip(1), x): (
            "sorted by circle and node", "one edge", "node 1 of circle 0 stands before node 0 of circle 0",
        ),
        lambda i, x: (i.repeat_interleave(2, 1), x): (
            "nobody is twice in a circle", "one edge", "circle 0 has the node 0 twice",
        ),
        lambda i, x: (i[:, i[0] != x[i[1]]], x): (
            "the leader is a member", "one edge", "circle 0 is led by 0 with the members 1",
        ),
        backwards: ("circles go document by document", BATCH, "circle 2 of document 16"),
    }.items()
} | {
    Everybody: ("a circle lies in one document", BATCH, "circle 0 has node 0 of document 1 and node 1 of 2"),
    NotEmpty: ("every graph gets an answer", "empty", "it raises RuntimeError: max()"),
    Silent: ("repr names every argument", "empty", "repr must say 'depth='"),
    Misprinted: ("repr names every argument", "empty", "repr must say 'depth=2', got 'Misprinted(depth=3)'"),
    InPlace: ("inputs stay as they are", "one edge among strangers", "edge_weight is another after the call"),
    partial(Chosen, lambda self, *_: 5 - self.k): (
        "the same graph gets the same circles", "path", "circle 2 of document 0 is not there at the first",
    ),
    partial(Chosen, lambda self, *_: 2 + self.training): (
        "training and ranking get the same circles", "path", "circle 2 of document 0 is led by 7",
    ),
    Remembering: ("no memory of other graphs", "no edges", "circle 0 of document 0 is led by 0 with the members 0, 1"),
    partial(Throwing, lambda: torch.rand(1)): (DICE, "empty", "it uses or seeds the global generator of torch"),
    partial(Throwing, lambda: np.random.seed(0)): (DICE, "empty", "it uses or seeds the global generator of numpy"),
    partial(Throwing, random.random): (DICE, "empty", "it uses or seeds the global generator of random"),
    Weighty: ("weights may be missing", "empty", "it raises AttributeError: 'NoneType' object has no attribute 'abs'"),
    partial(Chosen, lambda self, edge_index, batch, size, *_: 3 if size == 1 else 2): (
        "a batch is its documents alone", BATCH, "circle 2 of document 5 is not",
    ),
    partial(Chosen, first_come_first_served): (
        "the order of documents does not matter", BATCH, "circle 2 of document 5 is led by",
    ),
    FromTheStart: (NO_END, FAIR, "nearer to the start than chance"),
    FromTheEnd: (NO_END, FAIR, "nearer to the end than chance"),
    partial(Enlarged, "k"): ("no more than k circles", "pairs", "document 0 has 4 circles, but k is 3"),
    partial(Enlarged, "max_size"): (
        "no more than max size members", "star", "circle 0 of document 0 has 5 members, but max_size is 4",
    ),
    AlwaysTheSame: (
        "circles are not all the same", "one edge among strangers",
        "all 3 circles of document 0 have the members of the one led by 2",
    ),
    RowsSwapped: (
        "where all are friends somebody meets", "complete", "document 0 has 7 words, all friends of each other, and no",
    ),
    OtherwiseDrawn: (
        "undrawn edges give the same circles", "one word, repeated", "circle 2 of document 0 is led by 2 with",
    ),
}  # fmt: skip
