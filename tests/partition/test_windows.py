"""Windows: consecutive passages, whatever the edges are."""

from __future__ import annotations

import pytest
import torch
from graphs import HARD, collate, random_graph
from torch import Tensor
from torch_geometric.utils import cumsum

from socialgraph.errors import OptionError
from socialgraph.partition import Windows
from socialgraph.partition.whole import Whole


def expected(lengths: list[int], size: int, before: int = 0, after: int = 0) -> tuple[list[list[int]], list[int]]:
    """circle_index and leader_index of a batch of documents of these lengths."""
    nodes: list[int] = []
    circles: list[int] = []
    leaders: list[int] = []
    start = 0
    for length in lengths:
        for own in range(0, length, size):
            members = [start + i for i in range(length) if own - before <= i < own + size + after]
            nodes += members
            circles += [len(leaders)] * len(members)
            leaders.append(start + own)
        start += length
    return [nodes, circles], leaders


def strangers(lengths: list[int]) -> tuple[Tensor, Tensor, int]:
    """Documents of these lengths without an edge."""
    return torch.empty(2, 0).long(), torch.repeat_interleave(torch.tensor(lengths, dtype=torch.long)), len(lengths)


def windows(lengths: list[int], *options: int) -> tuple[list[list[int]], list[int]]:
    circle_index, leader_index = Windows(*options)(*strangers(lengths))
    assert circle_index.dtype == leader_index.dtype == torch.int64
    return circle_index.tolist(), leader_index.tolist()


def test_by_hand() -> None:
    want = [[0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 1, 1, 2, 2, 2]], [0, 3, 5]
    assert expected([5, 0, 3], 3) == want
    assert windows([5, 0, 3], 3) == want


@pytest.mark.parametrize("size", [1, 2, 3, 7, 128])
@pytest.mark.parametrize(
    "lengths",
    [[], [0], [0, 0], [1], [6], [7], [8], [127], [128], [129], [2048], [0, 3, 0, 0, 14, 1, 0], [128, 256, 1, 129]],
    ids=str,
)
def test_as_the_reference(lengths: list[int], size: int) -> None:
    assert windows(lengths, size) == expected(lengths, size)


def test_edges_do_not_matter() -> None:
    for graph in [*HARD.values(), random_graph(300, 0.1, 0)]:
        edge_index, batch, batch_size, edge_weight = collate([graph, graph])
        got = Windows(size=8)(edge_index, batch, batch_size, edge_weight)
        want = expected([graph.num_nodes] * 2, 8)
        assert (got[0].tolist(), got[1].tolist()) == want


def test_default_is_the_papers() -> None:
    edge_index, batch, batch_size = strangers([300])
    assert Windows()(edge_index, batch, batch_size)[1].tolist() == [0, 128, 256]
    assert "128" in repr(Windows())


@pytest.mark.parametrize("size", [0, -1])
def test_size_out_of_range(size: int) -> None:
    with pytest.raises(OptionError, match=str(size)):
        Windows(size=size)


@pytest.mark.parametrize(("size", "before", "after"), [(50, 7, 7), (200, 0, 25), (3, 2, 0), (1, 5, 4), (4, 0, 9)])
def test_neighbours_are_read_along(size: int, before: int, after: int) -> None:
    lengths = [0, 1, size - 1, size, size + 1, 413, 0, 2 * size + after]
    assert windows(lengths, size, before, after) == expected(lengths, size, before, after)


def test_neighbours_by_hand() -> None:
    want = [[0, 1, 2, 3, 1, 2, 3, 4, 3, 4, 5, 6], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3]], [0, 2, 4, 5]
    assert expected([5, 2], 2, 1, 2) == want
    assert windows([5, 2], 2, 1, 2) == want
    assert repr(Windows(2, 1, 2)) == "Windows(size=2, before=1, after=2, k=None)"
    for bad in ({"before": -1}, {"after": -1}):
        with pytest.raises(OptionError, match="0 or more tokens along"):
            Windows(2, **bad)


@pytest.mark.parametrize("k", [1, 2, 3, 100])
def test_the_first_windows_of_all(k: int) -> None:
    edge_index, batch, batch_size = strangers([0, 3, 4, 5, 13, 0, 8])
    (node, number), leader = Windows(4, before=2, after=1)(edge_index, batch, batch_size)
    first = cumsum(torch.bincount(batch, minlength=batch_size))
    kept = (leader - first[batch[leader]]) // 4 < k
    found, leaders = Windows(4, before=2, after=1, k=k)(edge_index, batch, batch_size)
    assert leaders.tolist() == leader[kept].tolist()
    assert found[0].tolist() == node[kept[number]].tolist()
    assert found[1].tolist() == (kept.cumsum(0) - 1)[number[kept[number]]].tolist()
    assert torch.bincount(batch[leaders], minlength=batch_size).max() <= k
    for bad in (0, -2, 1.5):
        with pytest.raises(OptionError, match="number of windows must be at least 1, or None for all"):
            Windows(4, k=bad)  # type: ignore[arg-type]


def test_whole_documents() -> None:
    edge_index, batch, batch_size = strangers([0, 3, 0, 1, 2, 0])
    circle_index, leader_index = Whole()(edge_index, batch, batch_size)
    assert circle_index.tolist() == [[0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 2, 2]]
    assert leader_index.tolist() == [0, 3, 4]
    nothing = Whole()(edge_index[:, :0], batch[:0], 0)
    assert (nothing[0].shape, nothing[1].shape) == ((2, 0), (0,))
    assert repr(Whole()) == "Whole()"
