"""Partitions whose forward names ``graph`` are given the words."""

import math

import pytest
import torch
from tales import builder_of

from socialgraph.data import Collection, Split
from socialgraph.edges import SocialEdges, StaticDistance, Uniform
from socialgraph.partition import EdgeCircles, NodeCircles, Partition, RandomCircles, Windows
from socialgraph.query_match import query_match
from socialgraph.ranking.rerank import known_of
from socialgraph.testing import check_partition


def build(bert, texts, pairs, *parts, **options):
    """Return the batch of these pairs."""
    return builder_of(bert, texts, *parts, **options)(pairs)


class Matches(Partition):
    """One circle a document: the words of the query, led by the first."""

    by_place = True

    def forward(self, edge_index, batch, batch_size, edge_weight=None, graph=None):
        node = query_match(graph, batch).nonzero().flatten()
        first = torch.ones_like(node, dtype=torch.bool)
        first[1:] = batch[node].diff() > 0
        return torch.stack([node, first.long().cumsum(0) - 1]), node[first]


class WellRanked(Matches):
    """The same, of documents to which the first stage gave more than 1."""

    def forward(self, edge_index, batch, batch_size, edge_weight=None, graph=None):
        circles, leader = super().forward(edge_index, batch, batch_size, edge_weight, graph)
        keep = graph.first_stage_score[batch[leader]] > 1
        member = keep[circles[1]]
        return torch.stack([circles[0, member], (keep.cumsum(0) - 1)[circles[1, member]]]), leader[keep]


def test_who_sees_the_graph():
    assert Matches().sees_graph
    assert not EdgeCircles().sees_graph
    check_partition(Matches())


@pytest.mark.parametrize("edges", [SocialEdges([StaticDistance()], sparsity=0.5), None])
def test_the_builder_hands_over_the_scores_of_the_first_stage(tiny_bert, edges):
    """Of candidates; NaN for others. Who does not see the graph costs no reading of candidates."""
    read = []

    def candidates():
        read.append("test")
        return {"q1": {"d1": 2.5, "d3": 0.5}}

    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    train = Split({"q2": "w9"}, {}, lambda: read.append("train") or {})
    splits = {"train": train, "test": Split({"q1": "w1"}, qrels, candidates)}
    collection = Collection("made", {}, splits)
    texts, pairs = {"d1": "w3 w1", "d2": "w4 w1", "d3": "w1 w1"}, [("q1", "w1", name) for name in ("d1", "d2", "d3")]
    options = {"first_stage": collection.first_stage_score}
    build(tiny_bert[0], texts, pairs, SocialEdges([Uniform()]), NodeCircles(), **options)
    assert read == []
    batch = build(tiny_bert[0], texts, pairs, edges, None if edges is None else WellRanked(), WellRanked(), **options)
    assert read == ["test"]
    assert batch.first_stage_score.dtype == torch.float64
    assert batch.first_stage_score[[0, 2]].tolist() == [2.5, 0.5]
    assert math.isnan(batch.first_stage_score[1])
    assert set(batch.leader_index.tolist()) == {1}
    assert batch[2].first_stage_score.tolist() == [0.5]
    assert math.isnan(collection.first_stage_score("q2", "d1"))
    assert "first_stage_score" not in build(tiny_bert[0], texts, pairs, None, None, Matches())


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("edges", [SocialEdges([StaticDistance()], sparsity=0.5), SocialEdges([Uniform()])])
def test_the_builder_hands_it_over(tiny_bert, edges, keep):
    """Whether edges are drawn or not; and to a partition inside another one."""
    texts = {"d1": "w1 w2 w3 w1", "d2": "w4 w5", "d3": "w2 w2 w6"}
    pairs = [("q1", "w1 w2", "d1"), ("q2", "w9", "d2"), ("q1", "w1 w2", "d3")]
    batch = build(tiny_bert[0], texts, pairs, edges, Matches(), keep_edges=keep)
    assert batch.circle_index.tolist() == [[0, 1, 3, 6, 7], [0, 0, 0, 1, 1]]
    assert batch.leader_index.tolist() == [0, 6]
    random = build(tiny_bert[0], texts, pairs, edges, RandomCircles(Matches()), keep_edges=keep)
    assert torch.bincount(random.circle_index[1]).tolist() == [3, 2]


@pytest.mark.parametrize(("partition", "depends"), [(WellRanked(), True), (Windows(8), False)])
def test_a_kept_score_depends_on_that_of_the_first_stage_where_it_is_seen(tiny_bert, partition, depends):
    def known(score):
        builder = builder_of(tiny_bert[0], {"d": "w1"}, passages=partition, first_stage=lambda *_: score)
        return known_of(builder, ("q", "w1", "d"))

    assert (known(2.0) != known(3.0)) == depends
