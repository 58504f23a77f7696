"""Circles from a graph that is drawn where they look: the very same as from all of its edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import TIMES
from circles import LEVELS
from drawing import OwnPattern
from graphs import document, random_document
from torch_geometric.data import Batch, Data

from socialgraph.edges import (
    DynamicDistance,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
    Uniform,
)
from socialgraph.edges.filtered_rows import FilteredRows
from socialgraph.partition import FriendCircles, remaining_rows
from socialgraph.partition.remaining_matrix import RemainingMatrix
from socialgraph.partition.remaining_rows import RemainingRows

PATTERNS = {
    "three": [StaticDistance(), StaticCentrality(), DynamicDistance()],
    "words": [StaticCentrality()],
    "steep": [StaticDistance(p=2.0)],
    "uniform": [Uniform()],
    "without a closed form": {"own": OwnPattern(), "words": StaticCentrality()},
}
SPARSITY = [0.97, 0.93, 0.6, 0.1]
CUTS = [(16, 128), (5, 8), (3, 2)]
levels = pytest.mark.parametrize("level", LEVELS)


def documents(amount: int, seed: int, longest: int = 400) -> list[Data]:
    """Random documents, some of them empty or of one word only, some with equal weights everywhere."""
    rng = np.random.default_rng(seed)
    data = []
    for number in range(amount):
        length = int(rng.integers(0, 4) if number % 5 == 0 else rng.integers(0, longest + 1))
        key = int(rng.integers(0, 2**62))
        one = (
            document([9] * length, [7], coin_key=key) if number % 11 == 0 else random_document(length, key, 40, 4, key)
        )
        data.append(one)
    return data


def assert_same(partition: FriendCircles, sampler: SocialEdges, batch: Batch, dense_up_to: tuple[int, ...]) -> int:
    """Compare with the circles from the edge list; return how many there are."""
    edge_index, edge_weight = sampler(batch)
    want = partition(edge_index, batch.batch, batch.num_graphs, edge_weight)
    sampled = sampler.sampled(batch)
    for limit in dense_up_to:
        sampled.dense_up_to = limit
        got = partition.from_sampled(sampled)
        assert torch.equal(got[0], want[0]), (partition, sampler, limit)
        assert torch.equal(got[1], want[1]), (partition, sampler, limit)
    return want[1].numel()


@levels
@pytest.mark.parametrize("keep", ["strongest", "first"])
@pytest.mark.parametrize("name", PATTERNS)
def test_many_documents(level: str, keep: str, name: str) -> None:
    circles = 0
    for seed, sparsity in enumerate(SPARSITY):
        longest = 120 if name == "without a closed form" else 300
        batch = Batch.from_data_list(documents(8 * TIMES, 100 * seed + len(name), longest))
        k, max_size = CUTS[seed % len(CUTS)]
        partition = LEVELS[level][0](k=k, max_size=max_size, keep=keep)
        circles += assert_same(partition, SocialEdges(PATTERNS[name], sparsity=sparsity), batch, (0, 1 << 20))
    assert circles > 40


@levels
def test_more_circles_than_bits_in_a_word(level: str) -> None:
    batch = Batch.from_data_list(documents(12, 1, 150))
    sampler = SocialEdges(PATTERNS["three"], sparsity=0.3)
    assert assert_same(LEVELS[level][0](k=130, max_size=3), sampler, batch, (0, 60, 1 << 20)) > 200


@levels
def test_circles_of_more_than_a_byte(level: str) -> None:
    batch = Batch.from_data_list([random_document(900, 2), random_document(700, 3)])
    sampler = SocialEdges(PATTERNS["words"], sparsity=0.3)
    assert assert_same(LEVELS[level][0](k=3, max_size=600), sampler, batch, (0, 1 << 20)) >= 2


@levels
@pytest.mark.parametrize("lengths", [(2048,), (4096,), (2500, 100, 0, 2100)])
def test_long_documents(level: str, lengths: tuple[int, ...]) -> None:
    batch = Batch.from_data_list([random_document(n, n, vocabulary=400, coin_key=n) for n in lengths])
    assert assert_same(LEVELS[level][0](), SocialEdges(PATTERNS["three"]), batch, (0, 4096)) >= 16


@levels
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_agrees(level: str) -> None:
    batch = Batch.from_data_list(documents(20, 3))
    sampler = SocialEdges(PATTERNS["three"], sparsity=0.8)
    partition = LEVELS[level][0](k=5, max_size=20)
    edge_index, edge_weight = sampler(batch)
    want = partition(edge_index, batch.batch, batch.num_graphs, edge_weight)
    batch = batch.to("cuda")
    for limit in (0, 1 << 20):
        sampled = sampler.to("cuda").sampled(batch)
        sampled.dense_up_to = limit
        got = partition.from_sampled(sampled)
        assert all(torch.equal(one.cpu(), other) for one, other in zip(got, want, strict=True))


@levels
def test_few_rows_are_drawn_and_nothing_is_square(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    length, drawn, largest = 6000, [], []
    friends = FilteredRows.friends

    def watched(self: FilteredRows, document: torch.Tensor, place: torch.Tensor, column: torch.Tensor | None = None):
        found = friends(self, document, place, column)
        largest.append(found.numel())
        drawn.append(found.numel() / self.width)
        return found

    monkeypatch.setattr(FilteredRows, "friends", watched)
    monkeypatch.setattr(FilteredRows, "matrix", lambda self: pytest.fail("a long document is not drawn as a whole"))
    # a few words matter far more than the others, as in real texts
    one = document(range(length), [7], np.random.default_rng(0).pareto(3.0, length).tolist())
    circles, _ = LEVELS[level][0](k=3).from_sampled(SocialEdges(PATTERNS["three"]).sampled(one))
    assert circles.numel() > 0
    assert 0 < sum(drawn) < length / 3
    assert max(largest) <= max(1 << 18, length + 1)


def test_a_wrong_bound_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Were the bound only the expected degree, some leaders would be overlooked.
    batch, sampler = Batch.from_data_list(documents(60, 5)), SocialEdges(PATTERNS["three"])
    monkeypatch.setattr(remaining_rows, "FIRST_ROWS", 1)
    monkeypatch.setattr(
        FilteredRows,
        "degree_bound",
        lambda self: torch.where(self.inside, self.pairs.expected[self.node].long(), 0),
    )
    with pytest.raises(AssertionError):
        assert_same(LEVELS["edge"][0](), sampler, batch, (0,))


def test_who_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    for graph in (RemainingMatrix, RemainingRows):
        most = graph.most_connected
        monkeypatch.setattr(graph, "most_connected", lambda self, most=most: used.append(type(self)) or most(self))
    batch = Batch.from_data_list([document(range(n)) for n in (0, 1, 2, 50, 51)])
    sampled = SocialEdges([StaticDistance()]).sampled(batch)
    sampled.dense_up_to = 50
    LEVELS["edge"][0](k=1).from_sampled(sampled)
    assert sorted(kind.__name__ for kind in used) == ["RemainingMatrix", "RemainingRows"]
