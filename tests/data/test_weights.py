"""A pair goes through BERT once, and has the same graph to the last bit wherever it comes again."""

import pytest
import torch
from tales import builder_of, random_texts

from socialgraph.data import Cache, Document
from socialgraph.data.weights import cached_weights
from socialgraph.edges import DynamicCentrality, SocialEdges, StaticDistance
from socialgraph.partition import EdgeCircles, Windows


class Counting(DynamicCentrality):
    """Counts the documents that it weighs."""

    weighed = 0

    def weights(self, graph):
        self.weighed += graph.num_graphs
        return super().weights(graph)

    name = "dynamic_centrality"


@pytest.fixture
def make(tiny_bert):
    texts = random_texts((150, 60, 1, 120, 7, 0, 33))

    def builder(cache, pattern=None):
        parts = SocialEdges([StaticDistance(), pattern or Counting(tiny_bert[0])]), EdgeCircles(k=3), Windows(16)
        return builder_of(tiny_bert[0], texts, *parts, lengths=(100,), keep_edges=True, cache=cache)

    return builder


def pairs(*ids):
    return [(query, text, f"d{i}") for i in ids for query, text in (("q1", "w1 w7 w9"), ("q2", "w5"))]


def weighed(builder):
    return builder.edges.patterns["dynamic_centrality"].weighed


KEYS = ("edge_index", "edge_weight", "circle_index", "leader_index", "dynamic_centrality")


def assert_same(builder, seen, asked):
    """Compare each pair's graph with the first one that was built of it."""
    batch = builder(asked)
    for number, pair in enumerate(asked):
        graph = batch[number]
        first = seen.setdefault(pair, graph)
        for key in KEYS:
            assert torch.equal(first[key], graph[key]), (pair, key)


def test_a_pair_is_the_same_in_every_batch_and_weighed_once(make):
    builder, seen = make(Cache()), {}
    assert_same(builder, seen, pairs(0, 1, 2))
    assert weighed(builder) == 6
    assert_same(builder, seen, pairs(4, 1, 3, 5)[1:])
    assert weighed(builder) == 6 + 5
    assert_same(builder, seen, pairs(6, 6, 0))  # one pair twice in a batch
    assert weighed(builder) == 11 + 2
    assert_same(builder, seen, pairs(0, 1, 2, 3, 4, 5, 6))
    assert weighed(builder) == 13 + 1


def test_a_word_of_the_query_is_none_of_the_document(make):
    builder = make(Cache())
    builder.documents.update(long=Document("long", "w2 w3 w4"), short=Document("short", "w3 w4"))
    batch = builder([("q", "w1", "long"), ("q", "w1 w2", "short")])
    assert [graph.dynamic_centrality.numel() for graph in batch.to_data_list()] == [3, 2]
    assert weighed(builder) == 2


def test_kept_weights_are_the_pattern_s_own(make):
    asked = pairs(0, 1, 2, 3, 4, 5, 6)
    cache = Cache()
    builder = make(cache)
    batch = builder.read(asked)
    pattern = builder.edges.patterns["dynamic_centrality"]
    expected = pattern.weights(batch)
    cached_weights(pattern, builder.read(asked[3:4]), cache)
    for _ in range(2):
        torch.testing.assert_close(cached_weights(pattern, batch, cache), expected, atol=1e-6, rtol=1e-4)
    none = Cache(size=0)
    assert torch.equal(cached_weights(pattern, batch, none), expected)
    assert torch.equal(cached_weights(pattern, batch, none), expected)


def test_other_words_and_other_parameters_have_weights_of_their_own(make, tiny_bert, tmp_path):
    cache = Cache(tmp_path / "weights")
    builder = make(cache)
    builder(pairs(0))
    builder([("q1", "w1 w7", "d0")])  # the same names, another text
    assert weighed(builder) == 3
    other = Counting(tiny_bert[0])
    with torch.no_grad():
        other.last.query.weight.mul_(2.0)
    assert not torch.equal(make(cache, other)(pairs(0)).dynamic_centrality, builder(pairs(0)).dynamic_centrality)
    assert other.weighed == 2
    fewer = Counting(tiny_bert[0], top=5)
    make(cache, fewer)(pairs(0))
    assert fewer.weighed == 2
