"""Ties: between friends of equal weight no place in the document is favoured."""

from __future__ import annotations

import pytest
import reference
import torch
from graphs import document
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.edges import SocialEdges, Uniform
from socialgraph.partition import EdgeCircles, KCore, Metis, NodeCircles, Partition
from socialgraph.partition.ties import pair_coin, strongest_first

LENGTH, DOCUMENTS, K = 2048, 2, 8
EDGES = SocialEdges([Uniform()], sparsity=0.7)  # about 600 friends each, of whom 127 stay


@pytest.fixture(scope="module")
def strangers() -> tuple[Batch, Tensor, Tensor]:
    """Documents of equal words with uniform edges: every place is like every other."""
    data = [document([0] * LENGTH, coin_key=key) for key in range(DOCUMENTS)]
    batch = Batch.from_data_list(data)
    return batch, *EDGES(batch)


def by_quarter(circle_index: Tensor) -> list[int]:
    """How many memberships fall into each quarter of the documents."""
    return torch.bincount(circle_index[0] % LENGTH // (LENGTH // 4), minlength=4).tolist()


def assert_fair(circle_index: Tensor) -> None:
    """A quarter of the members in each quarter, within six standard deviations.

    The friends of a leader that stay are drawn from its friends without replacement, and its friends are drawn from
    all places alike: the number that falls into a quarter varies less than that of as many independent draws. Circles
    have leaders and coins of their own; a leader counts for a draw, too.
    """
    members = circle_index.size(1)
    bound = 6.0 * (members * 0.25 * 0.75) ** 0.5
    assert all(abs(amount - members / 4) < bound for amount in by_quarter(circle_index)), by_quarter(circle_index)


@pytest.mark.parametrize("road", ["drawn row by row", "drawn as a whole", "edges", "edges without weights"])
@pytest.mark.parametrize("partition", [EdgeCircles(K), NodeCircles(K)], ids=repr)
def test_circles_of_random_friends_lie_everywhere(partition: Partition, road: str, strangers) -> None:
    batch, edge_index, edge_weight = strangers
    if road.startswith("edges"):
        weight = None if road.endswith("weights") else edge_weight
        circles, leaders = partition(edge_index, batch.batch, DOCUMENTS, weight)
    else:
        sampled = EDGES.sampled(batch)
        sampled.dense_up_to = 0 if road == "drawn row by row" else LENGTH
        circles, leaders = partition.from_sampled(sampled)
    assert leaders.numel() == DOCUMENTS * K
    assert circles.size(1) == DOCUMENTS * K * 128
    assert_fair(circles)


def test_of_equal_friends_the_first_would_not() -> None:
    one = document([0] * LENGTH)
    circles, _ = EdgeCircles(K, keep="first").from_sampled(EDGES.sampled(one))
    with pytest.raises(AssertionError):
        assert_fair(circles)


@pytest.mark.parametrize("partition", [KCore(3), Metis(4)], ids=repr)
def test_too_large_communities_are_cut_everywhere(partition: Partition) -> None:
    if isinstance(partition, Metis):
        pytest.importorskip("pymetis")
    data = Batch.from_data_list([document([0] * 1024, coin_key=key) for key in range(4)])
    circles, leaders = partition(*pair(EDGES(data), data.batch, 4))
    sizes = torch.bincount(circles[1])
    assert (sizes == 128).all()
    place = circles[0] % 1024
    # Members of a core are no independent draws, but any half of the places is as good as the other.
    assert abs(int((place < 512).sum()) - place.numel() / 2) < 6.0 * (place.numel() * 0.25) ** 0.5
    assert leaders.numel() == sizes.numel()


def pair(edges: tuple[Tensor, Tensor], batch: Tensor, size: int) -> tuple[Tensor, Tensor, int, Tensor]:
    """The arguments of a partition."""
    return edges[0], batch, size, edges[1]


def test_coins_are_those_of_the_rule() -> None:
    i, j = torch.arange(60)[:, None], torch.arange(60)
    coin = pair_coin(i, j)
    assert coin.tolist() == [[reference.coin(a, b) for b in range(60)] for a in range(60)]
    assert torch.equal(coin, coin.T)
    assert coin.unique().numel() == 60 * 61 // 2
    assert pair_coin(torch.tensor([10**9]), torch.tensor([3])).tolist() == [reference.coin(10**9, 3)]


def test_weights_go_before_coins() -> None:
    weight = torch.tensor([0.5, 0.25, 0.5, 0.75, 0.25, 0.5])
    coin = torch.tensor([3, -1, -7, 9, -2, 0])
    assert strongest_first(weight, coin).tolist() == [3, 2, 5, 0, 4, 1]
    assert strongest_first(None, coin).tolist() == [2, 4, 1, 5, 0, 3]
    table = strongest_first(torch.stack([weight, weight.flip(0)]), torch.stack([coin, coin.flip(0)]))
    assert table.tolist() == [[3, 2, 5, 0, 4, 1], [2, 3, 0, 5, 1, 4]]
