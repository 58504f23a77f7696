"""The ideas that docs/compare.md tries: each keeps the contracts of a partition, and does what it says."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from graphs import document
from torch_geometric.utils import cumsum

from socialgraph.partition import EdgeCircles, QueryWindows
from socialgraph.testing import check_partition

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


@pytest.fixture(scope="module")
def ideas():
    sys.path.insert(0, str(EXAMPLES))
    yield __import__("ideas")
    sys.path.remove(str(EXAMPLES))
    del sys.modules["ideas"]


def starts(partition, graph):
    """Return where the windows begin that a partition takes of a document."""
    edge_index = torch.empty(2, 0, dtype=torch.long)
    (node, circle), leader = partition(edge_index, torch.zeros(graph.num_nodes).long(), 1, graph=graph)
    assert torch.equal(node[cumsum(torch.bincount(circle))[:-1]], leader)
    return leader.tolist()


def text(length, **said):
    """Return a document of the query 11, 12 in which ``w11=[3, 9]`` says the word 11 at these places."""
    words = torch.full((length,), 50)
    for name, places in said.items():
        words[places] = int(name[1:])
    weight = torch.zeros(length)
    for word in (11, 12):
        weight[words == word] = float((words == word).sum())  # tf-idf with an idf of 1
    return document(words.tolist(), [11, 12], weight.tolist())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Cover", {"k": 3, "max_size": 16}),
        ("Cover", {"k": 3, "max_size": 16, "step": 4}),
        ("FriendSpans", {}),
        ("FriendSpans", {"k": 3, "max_size": 8, "reach": 2}),
    ],
)
def test_every_idea_keeps_the_contracts(ideas, name, options):
    check_partition(getattr(ideas, name)(**options))


def test_cover_takes_the_word_that_is_missing(ideas):
    graph = text(40, w11=[1, 2, 11, 12, 13], w12=[25])
    assert starts(ideas.Cover(1, 16, 16), graph) == starts(QueryWindows(1, 16), graph)  # the first is BM25's best
    assert starts(QueryWindows(2, 10), graph) == [0, 10]
    assert starts(ideas.Cover(2, 10, 10), graph) == [10, 20]


def test_cover_puts_a_window_where_the_words_are(ideas):
    graph = text(40, w11=[8], w12=[12])
    assert starts(ideas.Cover(1, 10, 10), graph) == [0]
    (start,) = starts(ideas.Cover(1, 10, 2), graph)
    assert start <= 8
    assert start + 10 > 12
    windows = starts(ideas.Cover(4, 10, 2), graph)
    assert all(later - one >= 10 for one, later in pairwise(windows))


def test_members_bring_the_words_around_them(ideas):
    drawn = torch.rand(300, 300, generator=torch.Generator().manual_seed(0)).triu(1)
    near = (torch.arange(300)[:, None] - torch.arange(300)).abs() < 60
    edge_index = ((drawn > 0.8) & near).nonzero().T
    edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
    edge_index = edge_index[:, torch.argsort(edge_index[0] * 300 + edge_index[1])]
    batch = torch.zeros(300, dtype=torch.long)
    (lone, of), leader = EdgeCircles(4, 24)(edge_index, batch, 1)
    (node, circle), same = ideas.FriendSpans(4, 24, 3)(edge_index, batch, 1)
    assert torch.equal(leader, same)
    assert torch.equal(torch.bincount(of), torch.bincount(circle))
    neighbours = [int(((x.diff() == 1) & (y.diff() == 0)).sum()) for x, y in ((lone, of), (node, circle))]
    assert neighbours[1] > 2 * neighbours[0]
    (lone_again, _), _ = ideas.FriendSpans(4, 24, 0)(edge_index, batch, 1)
    assert torch.equal(lone_again, lone)
