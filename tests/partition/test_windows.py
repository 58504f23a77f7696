"""Windows: consecutive passages, whatever the edges are."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import cumsum

from socialgraph.partition import Windows
from socialgraph.partition.windows import Whole


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


@pytest.mark.parametrize("size", [1, 2, 3, 7, 128])
@pytest.mark.parametrize(
    "lengths",
    [[], [0, 0], [127], [2048], [0, 3, 0, 0, 14, 1, 0], [128, 256, 1, 129]],
    ids=str,
)
def test_as_the_reference(lengths: list[int], size: int) -> None:
    assert windows(lengths, size) == expected(lengths, size)


@pytest.mark.parametrize(("size", "before", "after"), [(50, 7, 7), (200, 0, 25), (3, 2, 0), (1, 5, 4), (4, 0, 9)])
def test_neighbours_are_read_along(size: int, before: int, after: int) -> None:
    lengths = [0, 1, size - 1, size, size + 1, 413, 0, 2 * size + after]
    assert windows(lengths, size, before, after) == expected(lengths, size, before, after)


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


def test_whole_documents() -> None:
    edge_index, batch, batch_size = strangers([0, 3, 0, 1, 2, 0])
    circle_index, leader_index = Whole()(edge_index, batch, batch_size)
    assert circle_index.tolist() == [[0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 2, 2]]
    assert leader_index.tolist() == [0, 3, 4]
