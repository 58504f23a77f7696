"""From texts to batches: what is in them, and that each item can be taken out again."""

import pytest
import torch
from tales import builder_of, random_texts
from torch_geometric.data import Batch

from socialgraph.data import Document, GraphBuilder, PassageBM25
from socialgraph.edges import (
    DynamicDistance,
    SlidingWindow,
    SocialEdges,
    SocialGraph,
    SparseEdges,
    StaticCentrality,
    StaticDistance,
)
from socialgraph.errors import InputError, OptionError
from socialgraph.partition import EdgeCircles, NodeCircles, Partition, Windows

KEYS = ("input_ids", "query_ids", "edge_index", "edge_weight", "circle_index", "leader_index", "passage_mask",
        "circle_score", "tfidf", "static_centrality", "dynamic_distance")  # fmt: skip


@pytest.fixture
def builder(tiny_bert):
    documents = {f"d{i}": Document(f"d{i}", text, "w1 w2") for i, text in enumerate(random_texts((300, 60, 5, 120)))}
    documents["empty"] = Document("empty", " \u200b ")
    documents["odd"] = Document("odd", "w3 \ud800 w4 \x00 w5")
    patterns = [StaticDistance(), StaticCentrality(), DynamicDistance()]
    parts = SocialEdges(patterns), EdgeCircles(k=3), Windows(64), PassageBM25()
    return builder_of(tiny_bert[0], documents, *parts, lengths=(200, 4), keep_edges=True)


@pytest.fixture
def texts(builder):
    """What a builder takes before edges, circles and passages."""
    return builder.documents, builder.tokens, builder.statistics


PAIRS = [("q1", "w1 w7 w9", "d0"), ("q2", "w5", "empty"), ("q1", "w1 w7 w9", "d1"), ("q3", "w2 w4", "d2"),
         ("q3", "w2 w4", "odd"), ("q3", "w2 w4", "d3")]  # fmt: skip


def test_items_of_a_batch_equal_each_pair_alone(builder):
    batch = builder(PAIRS)
    for number, pair in enumerate(PAIRS):
        item, alone = batch[number], builder([pair])[0]
        for key in KEYS:
            assert torch.equal(item[key], alone[key]), (pair, key)
        assert (item.query_id, item.document_id) == (pair[0], pair[2])
    again = Batch.from_data_list(batch.to_data_list())
    for key in KEYS:
        assert torch.equal(batch[key], again[key]), key


def test_what_a_graph_holds(builder):
    graph = builder(PAIRS[:1])[0]
    assert graph.num_nodes == 200  # 2 words of the title and 300 of the text, cut
    assert builder.tokens.words(graph.input_ids[:2]) == ["w1", "w2"]
    assert graph.passage_mask.tolist() == [True] * 4 + [False] * 3
    windows = [graph.circle_index[0][graph.circle_index[1] == circle].tolist() for circle in range(4)]
    assert windows == [list(range(64)), list(range(64, 128)), list(range(128, 192)), list(range(192, 200))]
    degree = torch.bincount(graph.edge_index[0], minlength=200)
    assert graph.leader_index[4] == degree.argmax()
    empty = builder(PAIRS[1:2])[0]
    assert (empty.num_nodes, empty.num_circles, empty.edge_index.size(1)) == (0, 0, 0)


def test_a_graph_is_a_function_of_its_texts_and_the_seed(builder):
    one, other_name = builder(PAIRS[:1]), builder([("q9", *PAIRS[0][1:])])
    builder.seed = 1
    assert torch.equal(one.edge_index, other_name.edge_index)
    assert not torch.equal(one.edge_index, builder(PAIRS[:1]).edge_index)


def test_passages_only_need_no_edges(builder, texts):
    batch = GraphBuilder(*texts, passages=Windows(64))(PAIRS)
    assert "edge_index" not in batch
    assert bool(batch.passage_mask.all())
    friends = GraphBuilder(*texts, builder.edges, circles=NodeCircles(k=2))
    assert not friends(PAIRS).passage_mask.any()


class Own(Partition):
    """Somebody's partition that reads the edges: who has a friend meets the first of them."""

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        assert edge_weight.numel() == edge_index.size(1) > 0
        first = edge_index[0].diff(prepend=edge_index.new_tensor([-1])) > 0
        pair = edge_index[:, first].sort(0).values
        return torch.stack([pair.T.flatten(), torch.arange(pair.size(1)).repeat_interleave(2)]), edge_index[0, first]


def test_all_edges_are_drawn_for_those_who_need_them_only(builder, texts, monkeypatch):
    """That circles are the same: trust/test_same_graph_of_a_text.py."""
    drawn, edges = [], SocialGraph.edges
    monkeypatch.setattr(SocialGraph, "edges", lambda self: drawn.append(1) or edges(self))
    for circles, times in ((EdgeCircles(k=3), 0), (Own(), 1)):
        batch = GraphBuilder(*texts, builder.edges, circles, Windows(64))(PAIRS)
        assert len(drawn) == times
        assert not {"edge_index", "edge_weight"} & set(batch.keys())
    assert {"edge_index", "edge_weight"} <= set(builder(PAIRS).keys())  # with keep_edges=True
    assert len(drawn) == 2
    for keep in (False, True):
        batch = GraphBuilder(*texts, SparseEdges([SlidingWindow(8)]), EdgeCircles(k=3), keep_edges=keep)(PAIRS)
        assert ("edge_index" in batch) == keep


def test_circles_are_gathered_in_full_precision(builder, texts):
    class Watching(Own):
        def forward(self, *graph):
            seen.append((torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled(), torch.is_grad_enabled()))
            return super().forward(*graph)

    seen = []
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        GraphBuilder(*texts, builder.edges, Watching(), check=False)(PAIRS)
    assert seen == [(False, False, False)]


def test_bad_pairs_and_options(builder, texts):
    with pytest.raises(InputError, match=r"query 'q0' has no word piece: '\\u200b'"):
        builder([("q0", "\u200b", "d0")])
    with pytest.raises(InputError, match="document 'd77', which is asked for with query 'q1', is not in the coll"):
        builder([("q1", "w1", "d77")])
    for parts in (
        {},
        {"circles": EdgeCircles()},
        {"passages": Windows(64), "keep_edges": True},
        {"edges": builder.edges, "relevance": PassageBM25(), "joint": True},
        {"joint": True},
    ):
        with pytest.raises(OptionError, match="a graph needs circles, passages or both, and edges"):
            GraphBuilder(*texts, **parts)


def test_no_pattern_takes_the_weights_of_another(texts):
    edges = SocialEdges({"near": DynamicDistance(5.0), "far": DynamicDistance(500.0)})
    with pytest.raises(OptionError, match="near and far keep their weights in a graph as 'dynamic_distance', both"):
        GraphBuilder(*texts, edges, EdgeCircles(k=3))

    class Far(DynamicDistance):
        pass

    apart = SocialEdges({"near": DynamicDistance(5.0), "far": Far(500.0)})
    graph = GraphBuilder(*texts, apart, EdgeCircles(k=3))(PAIRS[:1])[0]
    for pattern in apart.patterns.values():
        assert torch.equal(graph[pattern.name], pattern.weights(graph).to(graph[pattern.name].dtype))
