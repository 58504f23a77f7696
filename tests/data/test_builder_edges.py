"""GraphBuilder's keep_edges: who draws all edges. That circles are the same: trust/test_same_graph_of_a_text.py."""

import pytest
import torch
from tales import builder_of, random_texts

from socialgraph.edges import DynamicDistance, SocialEdges, SocialGraph, StaticCentrality, StaticDistance
from socialgraph.errors import OptionError
from socialgraph.partition import EdgeCircles, Partition, Windows

PAIRS = [("q1", "w1 w7 w9", "d0"), ("q2", "w5", "empty"), ("q1", "w1 w7 w9", "d1"), ("q3", "w2 w4", "d2")]


class Own(Partition):
    """Somebody's partition that reads the edges: who has a friend meets the first of them."""

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        assert edge_weight.numel() == edge_index.size(1) > 0
        first = edge_index[0].diff(prepend=edge_index.new_tensor([-1])) > 0
        pair = edge_index[:, first].sort(0).values
        return torch.stack([pair.T.flatten(), torch.arange(pair.size(1)).repeat_interleave(2)]), edge_index[0, first]


@pytest.fixture
def build(tiny_bert):
    texts = {f"d{i}": text for i, text in enumerate(random_texts((300, 60, 5)))} | {"empty": " "}
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()])
    return lambda *args, **options: builder_of(tiny_bert[0], texts, *(args or (edges,)), lengths=(400,), **options)


def test_all_edges_are_drawn_for_those_who_need_them_only(build, monkeypatch):
    drawn, edges = [], SocialGraph.edges
    monkeypatch.setattr(SocialGraph, "edges", lambda self: drawn.append(1) or edges(self))
    for circles, times in ((EdgeCircles(k=3), 0), (Own(), 1)):
        batch = build(circles=circles, passages=Windows(64))(PAIRS)
        assert len(drawn) == times
        assert not {"edge_index", "edge_weight"} & set(batch.keys())
    kept = build(circles=EdgeCircles(k=3), keep_edges=True)(PAIRS)
    assert len(drawn) == 2
    assert {"edge_index", "edge_weight"} <= set(kept.keys())


def test_no_edges_to_keep(build):
    with pytest.raises(OptionError, match="keep_edges needs edges to keep, got none"):
        build(None, passages=Windows(64), keep_edges=True)
