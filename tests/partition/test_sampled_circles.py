"""Circles of a graph that is drawn where they look: the very same as from all of its edges."""

from __future__ import annotations

import pytest
from circles import LEVELS
from drawing import PATTERNS, assert_same_circles, documents
from graphs import random_document
from torch_geometric.data import Batch

from socialgraph.edges import SocialEdges, SocialGraph
from socialgraph.partition import EdgeCircles

levels = pytest.mark.parametrize("level", LEVELS)


@levels
@pytest.mark.parametrize("keep", ["strongest", "first"])
@pytest.mark.parametrize("name", PATTERNS)
def test_circles_of_many_documents(level: str, keep: str, name: str) -> None:
    circles = 0
    for seed, (sparsity, (k, max_size)) in enumerate(
        [(0.97, (16, 128)), (0.93, (5, 8)), (0.6, (3, 2)), (0.1, (9, 40))]
    ):
        batch = Batch.from_data_list(documents(8, 100 * seed + len(name), 120 if "closed" in name else 300))
        partition = LEVELS[level][0](k=k, max_size=max_size, keep=keep)
        circles += assert_same_circles(partition, SocialEdges(PATTERNS[name], sparsity=sparsity), batch)
    assert circles > 40


def test_a_closed_form_needs_no_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = SocialEdges(PATTERNS["three"]).sampled(random_document(200, 1))
    monkeypatch.setattr(SocialGraph, "edges", lambda self: pytest.fail("all edges are drawn"))
    assert EdgeCircles(k=3).from_sampled(graph)[1].numel() == 3


class Weakest(EdgeCircles):
    """A choice of friends of one's own."""

    def select(self, leader, friend, weight, tie):
        return super().select(leader, friend, -weight, tie)


def test_a_choice_of_friends_of_ones_own_is_taken_both_ways() -> None:
    batch = Batch.from_data_list(documents(10, 3))
    sampler = SocialEdges(PATTERNS["three"], sparsity=0.5)
    assert assert_same_circles(Weakest(k=5, max_size=8), sampler, batch) > 20
    graph = sampler.sampled(random_document(300, 3))
    one, other = (kind(k=5, max_size=8).from_sampled(graph)[0] for kind in (Weakest, EdgeCircles))
    first, second = (set(circles[0, circles[1] == 0].tolist()) for circles in (one, other))
    assert len(first) == len(second) == 8
    assert first != second
