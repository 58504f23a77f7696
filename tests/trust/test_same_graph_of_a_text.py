"""The same graph of a text everywhere, bit for bit: among others, in workers, in half precision, on any device."""

import hashlib

import pytest
import torch
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from in_batches import backbone, batches, cuda, threads  # noqa: F401  (a fixture)
from tales import random_texts
from torch.utils.data import DataLoader
from torch_geometric.data import Batch

from socialgraph.data import Cache, Document, GraphBuilder, TermStatistics, Tokens
from socialgraph.edges import (
    DynamicCentrality,
    DynamicDistance,
    Kleinberg,
    Learned,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
)
from socialgraph.partition import EdgeCircles, NodeCircles, Windows

WORDS = st.sampled_from([f"w{i}" for i in range(30)] + [".", ",", "?", "unknown"])
TEXTS = st.one_of(
    st.just(""),
    WORDS,
    st.builds(lambda word, times: " ".join([word] * times), WORDS, st.sampled_from([2, 3, 60])),
    st.lists(WORDS, max_size=60).map(" ".join),
    st.text(max_size=40),
    st.integers(0, 9).map(lambda seed: spoken(seed, 300)),
)
QUERIES = st.sampled_from(["w1", "w1 w7 w9 w1", "w100 w101", " ".join(f"w{i}" for i in range(64)), "never, heard?"])
KEYS = ("tfidf", "dynamic_distance", "dynamic_centrality", "circle_index", "leader_index", "passage_mask")


def spoken(seed, length):
    """Return a text of so many words."""
    return random_texts([length], words=190, seed=seed)[0]


class Builders:
    """Builders that share tokens and kept weights, over documents that are named by their texts."""

    def __init__(self, backbone):  # noqa: F811
        self.documents, self.tokens, self.cache = {}, Tokens(backbone, max_document_length=4000), Cache()
        frequency = 1 + 5000 // (1 + torch.arange(self.tokens.vocab_size))
        self.statistics = TermStatistics(frequency, 5001)
        patterns = [StaticDistance(), StaticCentrality(), DynamicDistance(), DynamicCentrality(backbone)]
        self.edges = SocialEdges(patterns)
        self.learned = SocialEdges([*patterns, Learned(backbone, 8), Kleinberg(1.7)])

    def pair(self, query, text, spice=""):
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12] + spice
        self.documents[name] = Document(name, text)
        return (f"q {query}{spice}", query, name)

    def make(self, edges=None, circles=None, keep=False, device="cpu"):
        circles = EdgeCircles(k=5, max_size=20) if circles is None else circles
        own = (self.documents, self.tokens, self.statistics, edges or self.edges)
        return GraphBuilder(*own, circles, Windows(64), keep_edges=keep, cache=self.cache, device=device)


@pytest.fixture(scope="module")
def builders(backbone):  # noqa: F811
    return Builders(backbone)


def assert_same(expected, batch, numbers, edges=True):
    for place, number in enumerate(numbers):
        graph = batch[place].cpu()
        for key in (*KEYS, "edge_index", "edge_weight") if edges else KEYS:
            one, two = expected[number][key], graph[key]
            assert one.dtype == two.dtype
            assert torch.equal(one, two), (key, number)


def test_a_text_has_the_same_graph_in_every_batch(builders):
    @cases(25)
    @given(st.data())
    def check(data):
        texts = data.draw(st.lists(st.tuples(QUERIES, TEXTS, st.text(max_size=3)), min_size=1, max_size=5))
        pairs = [builders.pair(*text) for text in texts]
        edges = data.draw(st.sampled_from([builders.edges, builders.edges, builders.learned]))
        circles = data.draw(st.sampled_from([EdgeCircles(k=5, max_size=20), NodeCircles(k=3, max_size=6)]))
        drawing = builders.make(edges, circles, keep=True)
        expected = [drawing([pair])[0] for pair in pairs]
        for some in data.draw(batches(len(pairs))):
            keep = data.draw(st.booleans())
            enabled = data.draw(st.booleans())
            with threads(data.draw(st.sampled_from([1, 2]))), torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                batch = builders.make(edges, circles, keep)([pairs[number] for number in some])
            assert_same(expected, batch, some, edges=keep)

    check()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=cuda)])
def test_a_long_text_has_the_same_graph_among_short_ones(builders, device):
    texts = [("w1 w7", spoken(1, 3000)), ("w1 w7", "w3 " * 3000), ("w191", spoken(2, 2100)), ("w5", "w5"), ("w5", "")]
    pairs = [builders.pair(*text) for text in texts]
    for circles in (EdgeCircles(k=8, max_size=64), NodeCircles(k=8, max_size=64)):
        expected = [builders.make(circles=circles, keep=True)([pair])[0] for pair in pairs]
        for keep in (True, False):
            batch = builders.make(circles=circles, keep=keep, device=device)(pairs[::-1])
            assert_same(expected, batch, range(len(pairs))[::-1], edges=keep)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_worker_builds_the_same_graph(builders, workers, tmp_path):
    pairs = [builders.pair(query, spoken(seed, 40 * seed + 1)) for seed in range(6) for query in ("w1 w7", "w9")]
    builder = builders.make(keep=True)
    builder.cache = Cache(tmp_path)  # another process weighs anew, unless a file has what came
    expected = [builder([pair])[0] for pair in pairs]
    order = [7, 2, 11, 0, 5, 5, 9, 1]
    loader = DataLoader([pairs[i] for i in order], batch_size=3, collate_fn=builder.ahead, num_workers=workers)
    for number, batch in enumerate(loader):
        assert_same(expected, builder.finish(batch), order[3 * number : 3 * number + 3])


def test_names_do_not_decide(builders):
    """The graph is one of the texts: other names of document and query change nothing, another seed does."""
    query, text = "w1 w7", spoken(3, 200)
    builder, found = builders.make(keep=True), []
    for spice in ("", " b", "/c"):
        found.append(builder([builders.pair(query, text, spice)])[0])
    assert_same(found[:1], Batch.from_data_list(found[1:2]), [0])
    assert_same(found[:1], Batch.from_data_list(found[2:]), [0])
    builder.seed = 1
    assert not torch.equal(builder([builders.pair(query, text)])[0].edge_index, found[0].edge_index)
