"""Every partition obeys every law, and every law can be broken."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from socialgraph.errors import LawError, OptionError, law_name
from socialgraph.partition import (
    Communities,
    EdgeCircles,
    NodeCircles,
    Partition,
    Windows,
    partition_resolver,
)
from socialgraph.partition.laws import ANSWER_LAWS
from socialgraph.partition.resolver import PARTITIONS
from socialgraph.testing import check_partition
from socialgraph.testing.graphs import hard_graphs
from socialgraph.testing.partition import (
    CALL_LAWS,
    equal_weights_favour_no_end,
    undrawn_edges_give_the_same_circles,
)


@pytest.mark.parametrize("name", PARTITIONS)
def test_every_partition_obeys(name: str) -> None:
    try:
        check_partition(partition_resolver(name))
    except OptionError as error:
        if "pip install" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "partition",
    [
        NodeCircles(k=3, max_size=4, keep="first"),
        EdgeCircles(k=3, max_size=4, keep="first"),
        Windows(3, before=1, after=2),
    ],
    ids=repr,
)
def test_other_settings_obey(partition: Partition) -> None:
    check_partition(partition)


# --- one broken strategy for each law -------------------------------------------------------------


class Friends(NodeCircles):
    """Right as it is; those below break one law each."""

    def __init__(self) -> None:
        super().__init__(k=3, max_size=4)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Floats(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index.float(), leader


class Transposed(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index.T, leader


class Elsewhere(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index, leader.to("meta")


class OnlyMembers(Friends):
    def forward(self, *graph):
        return super().forward(*graph)[0]


class OneBased(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index + torch.tensor([[1], [0]]), leader + 1


class NobodyLeads(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index, torch.full_like(leader, -1)


class CirclesFromOne(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index + torch.tensor([[0], [1]]), leader


class EmptyCircle(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index, leader.repeat_interleave(2)[: len(leader) + 1]


class Unsorted(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index.flip(1), leader


class Doubled(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index.repeat_interleave(2, 1), leader


class Everybody(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        node = torch.arange(batch.numel())
        return torch.stack([node, torch.zeros_like(node)]), node[:1]


class WithoutLeader(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index[:, index[0] != leader[index[1]]], leader


class Backwards(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        index = torch.stack([index[0], len(leader) - 1 - index[1]])
        return index[:, torch.argsort(index[1], stable=True)], leader.flip(0)


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


class Alternating(Friends):
    def forward(self, *graph):
        self.k = 5 - self.k
        return super().forward(*graph)


class Remembering(Friends):
    largest = 2

    def __init__(self):
        super().__init__()
        self.k = self.max_size = None  # windows are as many, and as wide, as it takes

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        self.largest = max(self.largest, batch.numel())
        return Windows(max(2, self.largest // 4))(edge_index, batch, batch_size, edge_weight)


class Dice(Friends):
    def forward(self, *graph):
        torch.rand(1)
        return super().forward(*graph)


class NumpyDice(Friends):
    def forward(self, *graph):
        np.random.seed(0)
        return super().forward(*graph)


class PythonDice(Friends):
    def forward(self, *graph):
        random.random()
        return super().forward(*graph)


class Weighty(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        return super().forward(edge_index, batch, batch_size, edge_weight.abs())


class Sociable(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        self.k = 3 if batch_size == 1 else 2
        return super().forward(edge_index, batch, batch_size, edge_weight)


class FirstComeFirstServed(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        self.k = 2 if batch_size > 1 and int((batch == batch[:1]).sum()) > 1 else 3
        return super().forward(edge_index, batch, batch_size, edge_weight)


class OtherwiseDrawn(Friends):
    def from_sampled(self, graph):
        self.k = 2
        return super().from_sampled(graph)


class OneTooMany(Friends):
    def forward(self, *graph):
        self.k += 1
        try:
            return super().forward(*graph)
        finally:
            self.k -= 1


class LeaderNotCounted(Friends):
    def forward(self, *graph):
        self.max_size += 1
        try:
            return super().forward(*graph)
        finally:
            self.max_size -= 1


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
        last, others = batch.numel() - 1, torch.zeros(0) if edge_weight is None else edge_weight.flip(0)
        self.keep = "first"
        index, leader = super().forward(last - edge_index.flip(1), batch_size - 1 - batch.flip(0), batch_size, others)
        index = torch.stack([last - index[0], len(leader) - 1 - index[1]]).flip(1)
        return index, last - leader.flip(0)


#: strategy -> (law, graph, and a part of what is said)
BROKEN = {
    Floats: ("form", "empty", "circle_index must be int64 on cpu, got torch.float32 on cpu"),
    Transposed: ("form", "empty", "circle_index must have the shape [2, M], got [0, 2]"),
    Elsewhere: ("form", "empty", "leader_index must be int64 on cpu, got torch.int64 on meta"),
    OnlyMembers: ("form", "empty", "forward must return (circle_index, leader_index), got Tensor"),
    OneBased: ("nodes exist", "one edge", "circle 0 has the member 2, but nodes are 0 to 1"),
    NobodyLeads: ("nodes exist", "one edge", "circle 0 has the leader -1, but nodes are 0 to 1"),
    CirclesFromOne: ("circles are numbered", "one edge", "there is a circle 1, but leaders only for 1 circles"),
    EmptyCircle: ("circles are numbered", "one edge", "circle 1 has a leader but no member"),
    Unsorted: ("sorted by circle and node", "one edge", "node 1 of circle 0 stands before node 0 of circle 0"),
    Doubled: ("nobody is twice in a circle", "one edge", "circle 0 has the node 0 twice"),
    Everybody: (
        "a circle lies in one document", "batch of unequal documents",
        "circle 0 has node 0 of document 1 and node 1 of 2",
    ),
    WithoutLeader: ("the leader is a member", "one edge", "circle 0 is led by 0 with the members 1"),
    Backwards: (
        "circles go document by document", "batch of unequal documents", "circle 2 of document 16",
    ),
    NotEmpty: ("every graph gets an answer", "empty", "it raises RuntimeError: max()"),
    Silent: ("repr names every argument", "empty", "repr must say 'depth='"),
    Misprinted: ("repr names every argument", "empty", "repr must say 'depth=2', got 'Misprinted(depth=3)'"),
    InPlace: ("inputs stay as they are", "one edge among strangers", "edge_weight is another after the call"),
    Alternating: ("the same graph gets the same circles", "path", "circle 2 of document 0 is not there at the first"),
    Remembering: ("no memory of other graphs", "no edges", "circle 0 of document 0 is led by 0 with the members 0, 1"),
    Dice: ("global random numbers stay as they are", "empty", "it uses or seeds the global generator of torch"),
    NumpyDice: ("global random numbers stay as they are", "empty", "it uses or seeds the global generator of numpy"),
    PythonDice: ("global random numbers stay as they are", "empty", "it uses or seeds the global generator of random"),
    Weighty: ("weights may be missing", "empty", "it raises AttributeError: 'NoneType' object has no attribute 'abs'"),
    Sociable: ("a batch is its documents alone", "batch of unequal documents", "circle 2 of document 5 is not"),
    FirstComeFirstServed: (
        "the order of documents does not matter", "batch of unequal documents", "circle 2 of document 5 is led by",
    ),
    FromTheStart: ("equal weights favour no end", "random friends of equal weight", "nearer to the start than chance"),
    FromTheEnd: ("equal weights favour no end", "random friends of equal weight", "nearer to the end than chance"),
    OneTooMany: ("no more than k circles", "pairs", "document 0 has 4 circles, but k is 3"),
    LeaderNotCounted: (
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


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_law_is_named(broken: type[Partition]) -> None:
    law, graph, offence = BROKEN[broken]
    with pytest.raises(LawError) as caught:
        check_partition(broken())
    message = str(caught.value)
    assert "\n" not in message
    assert f"breaks the law {law!r} on the graph {graph!r}" in message
    assert offence in message
    assert isinstance(caught.value, AssertionError)


def test_what_breaks_laws_would_obey_without_it() -> None:
    check_partition(Friends())


LAWS = (*ANSWER_LAWS, *CALL_LAWS, equal_weights_favour_no_end, undrawn_edges_give_the_same_circles)


def test_every_law_can_be_broken() -> None:
    assert {law for law, _, _ in BROKEN.values()} == {law_name(law) for law in LAWS}


def test_the_partition_itself_is_left_alone() -> None:
    partition = Remembering()
    with pytest.raises(LawError):
        check_partition(partition)
    assert partition.largest == 2


def test_a_class_is_no_instance() -> None:
    with pytest.raises(OptionError, match=r"takes an instance of a Partition, such as MyPartition\(\)"):
        check_partition(NodeCircles)


def test_the_graphs_are_graphs() -> None:
    names = set()
    for graph in hard_graphs(torch.device("cpu")):
        names.add(graph.name)
        size = graph.batch.numel()
        row, col = graph.edge_index
        matrix = torch.zeros(size, size)
        matrix[row, col] = graph.edge_weight
        assert torch.equal(matrix, matrix.T)
        assert not matrix.diagonal().any()
        assert torch.equal(matrix.nonzero().T, graph.edge_index)  # sorted, none twice, no weight 0
        assert (graph.batch[row] == graph.batch[col]).all()
        assert (graph.batch.diff() >= 0).all()
        assert graph.batch.max(dim=0).values < graph.batch_size if size else graph.batch_size > 0
    assert len(names) == len(hard_graphs(torch.device("cpu")))
