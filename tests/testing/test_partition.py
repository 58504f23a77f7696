"""Partitions of the package keep their contract; broken ones are named, and what is merely unusual is not."""

from __future__ import annotations

import threading

import pytest
import torch
from torch_geometric.utils import scatter

from socialgraph.errors import ContractError, OptionError
from socialgraph.partition import EdgeCircles, NodeCircles, Partition, Windows, partition_resolver
from socialgraph.partition.resolver import PARTITIONS
from socialgraph.testing import check_partition
from socialgraph.testing.graphs import TOGETHER, hard_graphs


@pytest.mark.parametrize("name", PARTITIONS)
def test_every_partition_keeps_its_contract(name: str) -> None:
    try:
        partition = partition_resolver(name)
    except OptionError as error:
        if "pip install" not in str(error):
            raise
        pytest.skip(str(error))
    check_partition(partition)


@pytest.mark.parametrize("name", ["node", "edge"])
def test_small_circles_of_the_first_friends_keep_it(name: str) -> None:
    check_partition(partition_resolver(name, k=3, max_size=4, keep="first"))


class Friends(NodeCircles):
    """Right as it is; those below break one contract each."""

    calls = 0

    def __init__(self) -> None:
        super().__init__(k=3, max_size=4)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class LeaderForgotten(Friends):
    def forward(self, *graph):
        index, leader = super().forward(*graph)
        return index[:, index[0] != leader[index[1]]], leader


class OneDocument(Partition):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        return Windows(512)(edge_index, torch.zeros_like(batch), 1)


class NotEmpty(Friends):
    def forward(self, edge_index, batch, *rest):
        batch.max()  # of nothing there is none
        return super().forward(edge_index, batch, *rest)


class Silent(Friends):
    def __init__(self, depth: int = 2) -> None:
        super().__init__()


class Locked(Friends):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class InPlace(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        if edge_weight is not None:
            edge_weight.numpy()[:] = 0.4  # PyTorch does not see it
        return super().forward(edge_index, batch, batch_size, edge_weight)


class IntoStatistics(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None, graph=None):
        graph.statistics.idf.zero_()
        return super().forward(edge_index, batch, batch_size, edge_weight)


class Alternating(Friends):
    def forward(self, *graph):
        self.calls += 1
        self.k = 2 + self.calls % 2
        return super().forward(*graph)


class Trained(Friends):
    def forward(self, *graph):
        self.k = 2 + self.training
        return super().forward(*graph)


class Company(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        self.k = 3 if batch_size == 1 else 2
        return super().forward(edge_index, batch, batch_size, edge_weight)


class Dice(Friends):
    def forward(self, *graph):
        torch.rand(1)
        return super().forward(*graph)


class Weighty(Friends):
    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        return super().forward(edge_index, batch, batch_size, edge_weight.abs())


class OtherwiseDrawn(Friends):
    def from_sampled(self, graph):
        self.k = 2
        return super().from_sampled(graph)


class OneMore(Friends):
    def forward(self, *graph):
        return NodeCircles(self.k + 1, self.max_size)(*graph)


class Larger(Friends):
    def forward(self, *graph):
        return NodeCircles(self.k, self.max_size + 1)(*graph)


class Shared(Friends):
    def forward(self, *graph):
        return EdgeCircles(self.k, self.max_size)(*graph)


class FromTheStart(Friends):
    def __init__(self) -> None:
        super().__init__()
        self.keep = "first"


#: partition -> (contract, graph, and a part of what is said)
BROKEN: dict[type[Partition], tuple[str, str, str]] = {
    LeaderForgotten: ("a leader is a member of its circle", "one edge", "circle 0 is led by 0 with the members 1"),
    OneDocument: ("a circle lies in one document", TOGETHER, "node 7 in circle 0"),
    NotEmpty: ("every graph gets an answer", "empty", "it raises RuntimeError: max()"),
    Silent: ("repr names every argument", "none yet", "repr must say 'depth=', got 'Silent()'"),
    Locked: ("it can be copied", "none yet", "cannot pickle '_thread.lock' object"),
    InPlace: ("inputs stay as they are", "one edge", "graph.edge_weight is another"),
    IntoStatistics: ("inputs stay as they are", "empty", "graph.statistics.idf is another"),
    Alternating: ("the same graph gets the same answer", "path, one word repeated", "circle 2 is led by"),
    Trained: ("training and ranking get the same answer", "path, one word repeated", "after eval() it is not there"),
    Company: ("a batch is its documents alone", TOGETHER, "circle 2 is not there; alone it is led by"),
    Dice: ("global random generators stay as they are", "empty", "it uses or seeds that of torch"),
    Weighty: ("every graph gets an answer", "empty", "'NoneType' object has no attribute 'abs'"),
    OtherwiseDrawn: (
        "undrawn edges give the same circles",
        "pairs, no word of the query",
        "by from_sampled it is not there",
    ),
    OneMore: ("no more than k circles", "pairs, no word of the query", "document 0 has 4 circles, but k is 3"),
    Larger: ("no more than max_size members", "star, nothing but the query's word", "but max_size is 4"),
    Shared: ("circles share no node", "path, one word repeated", "of which an earlier one has"),
    FromTheStart: ("ties do not depend on position", "random friends of equal weight", "or say by_place = True"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_contract_is_named(broken: type[Partition]) -> None:
    contract, graph, what = BROKEN[broken]
    partition = broken()
    with pytest.raises(ContractError) as caught:
        check_partition(partition)
    message = str(caught.value)
    assert message.startswith(f"{partition!r} breaks the contract {contract!r} on the graph {graph!r}: ")
    assert what in message
    assert "\n" not in message
    assert getattr(partition, "calls", 0) == 0  # copies were tried


class TopPageRank(Partition):
    """The m nodes of highest PageRank, seen from each of them: circles that are all the same."""

    def __init__(self, m: int = 3) -> None:
        super().__init__()
        self.m = m

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        size, (row, col) = batch.numel(), edge_index
        rank, degree = torch.ones(size, dtype=torch.float64), torch.bincount(row, minlength=size)
        for _ in range(20):
            rank = 0.15 + 0.85 * scatter(rank[row] / degree[row], col, dim_size=size)
        order = torch.argsort((1e9 * rank).round(), descending=True, stable=True)
        order = order[torch.argsort(batch[order], stable=True)]
        place = torch.arange(size) - torch.searchsorted(batch, batch)
        best = order[place < self.m].sort().values
        leader, member = torch.cartesian_prod(best, best).T
        together = batch[leader] == batch[member]
        return torch.stack([member, torch.searchsorted(best, leader)])[:, together], best


class NoCircle(Partition):
    """Finds nobody, not even where all are friends."""

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        return edge_index[:, :0], batch[:0]


class FirstOnPurpose(FromTheStart):
    by_place = True


@pytest.mark.parametrize("unusual", [Friends, TopPageRank, NoCircle, FirstOnPurpose])
def test_what_is_unusual_is_not_broken(unusual: type[Partition]) -> None:
    check_partition(unusual())


def test_a_class_is_no_instance() -> None:
    with pytest.raises(OptionError, match=r"takes an instance of a Partition, such as MyPartition\(\)"):
        check_partition(NodeCircles)


def test_the_graphs_are_as_documents_are() -> None:
    """Equal words have equal tf-idf; edges are undirected and sorted; and there are hard ones among them."""
    graphs = hard_graphs()
    for graph in graphs.values():
        for word in graph.input_ids.unique():
            for document in graph.to_data_list():
                assert document.tfidf[document.input_ids == word].unique().numel() <= 1
        size, (row, col) = graph.num_nodes, graph.edge_index
        weight = torch.zeros(size, size)
        weight[row, col] = graph.edge_weight
        assert torch.equal(weight, weight.T)
        assert torch.equal(weight.nonzero().T, graph.edge_index)
        assert not weight.diagonal().any()
    lengths = graphs[TOGETHER].ptr.diff().tolist()
    assert lengths[0] == lengths[-1] == 0
    assert 0 in lengths[1:-1]
    assert len({*lengths}) > 6
    assert not graphs["path, one word repeated"].tfidf.any()
    assert len({*graphs["random"].tfidf.tolist()}) > 10
