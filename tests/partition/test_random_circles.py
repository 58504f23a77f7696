"""Random circles: the sizes of others, and anybody with the same chance."""

import numpy as np
import pytest
import torch
from circles import circles_of
from graphs import HARD, random_document, random_graph

from socialgraph.edges import SocialEdges, SocialGraph, StaticDistance
from socialgraph.partition import EdgeCircles, NodeCircles, Partition, RandomCircles


def test_random_circles_have_the_sizes_of_others() -> None:
    graphs = [*HARD.values(), random_graph(300, 0.07, 5)]
    for like in (EdgeCircles(5, 20), NodeCircles(5, 20)):
        model, drawn = circles_of(like, graphs), circles_of(RandomCircles(like), graphs)
        size = lambda found: [[len(members) for _, members in circles] for circles in found]  # noqa: E731
        assert size(model) == size(drawn)
        assert model != drawn
    assert circles_of(RandomCircles(), graphs) == circles_of(RandomCircles(EdgeCircles()), graphs)
    assert circles_of(RandomCircles(seed=1), graphs) != circles_of(RandomCircles(), graphs)


class One(Partition):
    """One circle of five."""

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        return torch.stack([torch.arange(5), torch.zeros(5).long()]), torch.zeros(1).long()


def test_everybody_is_drawn_and_leads_with_the_same_chance() -> None:
    member, leader, both = np.zeros(10), np.zeros(10), np.zeros((10, 10))
    draws = 500
    for seed in range(draws):
        (members, _), (first,) = RandomCircles(One(), seed)(torch.empty(2, 0).long(), torch.zeros(10).long(), 1)
        assert len(members) == 5
        assert first in members
        member[members] += 1
        leader[first] += 1
        both[np.ix_(members, members)] += 1
    # five standard deviations
    assert abs(member / draws - 0.5).max() < 5 * 0.5 / draws**0.5
    assert abs(leader / draws - 0.1).max() < 5 * 0.3 / draws**0.5
    assert abs(both[np.triu_indices(10, 1)] / draws - 2 / 9).max() < 5 * 0.42 / draws**0.5


def test_random_circles_draw_what_their_model_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    one = random_document(200, 1)
    edges, batch = SocialEdges([StaticDistance()]), torch.zeros(200).long()
    want = RandomCircles()(*edges(one)[:1], batch, 1, edges(one)[1])
    monkeypatch.setattr(SocialGraph, "edges", lambda self: pytest.fail("all edges are drawn"))
    got = RandomCircles().from_sampled(edges.sampled(one))
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
