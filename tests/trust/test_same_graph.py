"""The same edges, circles and leaders everywhere, bit for bit: in any batch, thread, worker, process, on any device."""

import hashlib
import json
import os
import subprocess
import sys
from contextlib import contextmanager

import graph_digest
import pytest
import torch
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader
from torch_geometric.data import Batch
from transformers import BertConfig, BertModel, BertTokenizerFast

from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens, WeightCache
from socialgraph.data.graph import document_graph
from socialgraph.edges import (
    COIN_SIDES,
    Affinity,
    DynamicCentrality,
    DynamicDistance,
    Kleinberg,
    Learned,
    Nearby,
    QueryToAll,
    ReadingOrder,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
    Uniform,
    WattsStrogatz,
    coin_key,
)
from socialgraph.edges.affinity import LowRank, mix
from socialgraph.edges.coins import node_hashes, toss
from socialgraph.edges.social import scale
from socialgraph.edges.social_graph import SocialGraph
from socialgraph.partition import EdgeCircles, NodeCircles, Windows, partition_resolver
from socialgraph.partition.resolver import PARTITIONS

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: the same graph on a GPU is not tried")
THREADS = torch.get_num_threads()


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    """A random BERT of 2 layers x 32, and a tokenizer that knows 195 words and what ends a sentence."""
    folder = tmp_path_factory.mktemp("backbone")
    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?", ",", *(f"w{i}" for i in range(192))]
    (folder / "vocab.txt").write_text("\n".join(words))
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = BertConfig(vocab_size=200, max_position_embeddings=96, pad_token_id=0, **sizes)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    return str(folder)


@contextmanager
def threads(number):
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(THREADS)


# --- graphs of whole numbers: every pattern, every sparsity ----------------------------------------------------------

LENGTHS = st.one_of(st.sampled_from([0, 1, 2, 3]), st.integers(4, 40), st.sampled_from([63, 64, 65, 129]))


@st.composite
def graphs(draw, length=LENGTHS):
    """A document: many words or one, a query in it or not, weights that are equal, nearly equal or far apart."""
    size, words, seed = draw(length), draw(st.sampled_from([1, 2, 5, 50])), draw(st.integers(0, 1 << 30))
    generator = torch.Generator().manual_seed(seed)
    ids = 10 + torch.randint(0, words, (size,), generator=generator)
    query = draw(st.sampled_from(["nothing matches", "some match", "all match"]))
    asked = {
        "nothing matches": torch.tensor([1, 2]),
        "some match": torch.tensor([10]),
        "all match": torch.arange(10, 60),
    }

    def weights():
        kind = draw(st.sampled_from(["random", "equal", "zero", "levels", "one alone", "two alone", "close"]))
        x = torch.rand(size, generator=generator, dtype=torch.float64)
        some = torch.randperm(size, generator=generator)[: 2 if kind == "two alone" else 1]
        if kind == "random":
            return x
        if kind == "levels":
            return (3.0 * x).ceil()
        if kind == "close":
            return 1.0 + (3.0 * x).floor() * 2.0**-50
        if kind in ("one alone", "two alone"):
            return torch.full_like(x, 1e-9).index_fill_(0, some, 5.0)
        return torch.full_like(x, 0.0 if kind == "zero" else 0.3)

    key = coin_key(seed, "q", str(size))
    return document_graph(ids, asked[query], key, tfidf=weights(), dynamic_centrality=weights().float())


class Alone(Affinity):
    """Somebody's pattern without a closed form: a different number for each distance and sum of places."""

    def __init__(self, batch, ptr):
        super().__init__(batch, ptr)
        self.place = torch.arange(batch.numel()) - ptr[batch]

    def pair(self, i, j):
        one, two = self.place[i], self.place[j]
        return ((one + two) % 7 + 1).double() / 7.0 / (1.0 + (one - two).abs())


class Own(StaticDistance):
    """A pattern that gives :class:`Alone`."""

    def forward(self, graph):
        batch = graph.batch
        return Alone(batch, graph.ptr)


PATTERNS = (
    StaticDistance, StaticCentrality, DynamicDistance, graph_digest.Given, Uniform, Kleinberg, QueryToAll, Own,
    lambda: WattsStrogatz(4), lambda: WattsStrogatz(2, 0.0), lambda: WattsStrogatz(6, 1.0), lambda: Nearby(3),
    lambda: StaticDistance(0.7), lambda: Kleinberg(2.3), lambda: DynamicDistance(1.5),
)  # fmt: skip
SPARSITY = st.one_of(st.sampled_from([0.93, 0.5, 1e-9, 1.0 - 1e-9]), st.floats(0.001, 0.999))


@st.composite
def mixtures(draw, patterns=PATTERNS):
    """Edges from one to four patterns with weights that are equal or far apart."""
    chosen = draw(st.lists(st.sampled_from(patterns), min_size=1, max_size=4, unique=True))
    chosen = {f"pattern {number}": make() for number, make in enumerate(chosen)}
    share = st.sampled_from([1.0, 0.3, 1e-3, 1e-6])
    return SocialEdges(chosen, {name: draw(share) for name in chosen}, draw(SPARSITY))


@st.composite
def batches(draw, amount):
    """An order of the documents, cut in batches."""
    order, found = draw(st.permutations(range(amount))), []
    while order:
        size = draw(st.integers(1, len(order)))
        found.append(order[:size])
        order = order[size:]
    return found


def drawn(edges, documents):
    """Return for each document P, expected degrees, edges and their weights."""
    batch = Batch.from_data_list(documents)
    with torch.no_grad():
        sampled = edges.sampled(batch)
        edge_index, edge_weight = sampled.edges()
        matrices = sampled.probability.dense()
    found = []
    for number, (start, end) in enumerate(zip(batch.ptr[:-1].tolist(), batch.ptr[1:].tolist(), strict=True)):
        own = batch.batch[edge_index[0]] == number
        found.append(
            (matrices[number].clamp(max=1.0), sampled.expected[start:end], edge_index[:, own] - start, edge_weight[own])
        )
    return found


def same(one, two):
    return all(x.dtype == y.dtype and torch.equal(x, y) for x, y in zip(one, two, strict=True))


@cases(40)
@given(st.data())
def test_a_document_has_the_same_probabilities_and_edges_in_every_batch(data):
    documents = data.draw(st.lists(graphs(), min_size=1, max_size=4))
    edges = data.draw(mixtures())
    alone = [drawn(edges, [document])[0] for document in documents]
    for some in data.draw(batches(len(documents))):
        with threads(data.draw(st.sampled_from([1, 2]))):
            found = drawn(edges, [documents[number] for number in some])
        for number, graph in zip(some, found, strict=True):
            for what, x, y in zip(("P", "expected degrees", "edges", "weights"), alone[number], graph, strict=True):
                assert x.dtype == y.dtype
                assert torch.equal(x, y), (what, number)


@cases(60)
@given(graphs(st.integers(2, 12)), mixtures(), st.floats(0.9, 1.0))
def test_mu_does_not_depend_on_how_well_the_highest_probability_is_known(document, edges, room):
    """In a batch the bound on P is looser than alone; that must not be seen, above all where it comes close to mu."""
    with torch.no_grad():
        batch = Batch.from_data_list([document])
        p = mix(
            [pattern(batch) for pattern in edges.patterns.values()],
            [torch.ones(1).double() * w for w in edges.weights.values()],
        )
        target = room * p.totals() / max(float(p.dense()[0].max()), 1e-9)  # so that the highest pair gets about 1
        expected = scale(p, target)
        p.highest = lambda: torch.full((1,), 1e9, dtype=torch.float64)
        assert torch.equal(scale(p, target), expected)


def test_expected_degrees_stay_exact_when_probabilities_are_scaled_far_beyond_1():
    documents = [document_graph(torch.arange(size), torch.tensor([0]), size) for size in range(15, 65)]
    edges = SocialEdges([Nearby(3), Kleinberg()], {"kleinberg": 1e-6}, sparsity=1e-9)
    found = drawn(edges, documents)
    assert all(same(drawn(edges, [document])[0], graph) for document, graph in zip(documents, found, strict=True))


def test_sums_over_long_documents_are_rounded_once():
    """A GPU adds in any order, so the sums are whole numbers: 9,000 tokens are more than float64 can add up exactly."""
    size = 9000
    batch, ptr = torch.zeros(size, dtype=torch.long), torch.tensor([0, size])
    kernel = 1.0 - torch.rand(size, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 0.01
    p = LowRank(batch, ptr, kernel)
    whole = (p.kernel * 2.0**30).long().tolist()
    total = sum(2 * (size - distance) * whole[distance] for distance in range(1, size))
    assert p.totals().tolist() == [total / 2**30]
    rows = [2**23 - number for number in range(size)]
    p.row_sums = lambda: 4500.0 + torch.tensor(rows, dtype=torch.float64) * 2.0**-30
    assert Affinity.totals(p).tolist() == [sum((4500 << 30) + row for row in rows) / 2**30]


@cases(60)
@given(st.data())
def test_an_edge_is_a_coin_below_its_probability(data):
    """However it is drawn, as a whole or row by row."""
    documents = data.draw(st.lists(graphs(), min_size=1, max_size=3))
    batch = Batch.from_data_list(documents)
    edges = data.draw(mixtures())
    with torch.no_grad():
        sampled = edges.sampled(batch)
        expected = []
        for start, p in zip(batch.ptr.tolist(), sampled.probability.dense(), strict=False):
            ids = torch.arange(start, start + len(p))
            coins = toss(sampled.lower[ids][:, None], sampled.higher[ids][None, :])
            upper = ((coins < p * COIN_SIDES) & (ids[:, None] < ids[None, :])).nonzero() + start
            expected.append(torch.cat([upper, upper.flip(1)]))
        expected = torch.cat(expected)
        expected = expected[torch.argsort(expected[:, 0] * 10_000 + expected[:, 1])].T
        for dense_up_to in (4096, 0):
            sampled.dense_up_to = dense_up_to
            assert torch.equal(sampled.edges()[0], expected)


@cases(40)
@given(st.integers(2, 300), st.integers(0, 1 << 62), st.floats(0.3, 3.0), st.randoms(use_true_random=False))
def test_a_coin_close_to_its_threshold_is_decided_exactly(size, key, gain, random):
    """P of the first node and each other is the pair's own coin, a sixteenth of a side beside: no float32 can tell."""
    batch, ptr = torch.zeros(size, dtype=torch.long), torch.tensor([0, size])
    lower, higher = node_hashes(torch.full((size,), key), torch.arange(size))
    beside = torch.tensor([random.choice([-1, 1]) for _ in range(size)])
    gain = torch.tensor([gain], dtype=torch.float64)
    p = LowRank(batch, ptr, (toss(lower[0], higher) + beside.double() / 16) / COIN_SIDES / gain, gain)
    for dense_up_to in (4096, 0):
        row, column = SocialGraph(p, torch.tensor([key]), dense_up_to=dense_up_to).edges()[0]
        expected = (beside > 0) & (torch.arange(size) > 0)
        assert column[row == 0].tolist() == expected.nonzero().flatten().tolist()
        assert row[column == 0].tolist() == column[row == 0].tolist()


# --- circles ---------------------------------------------------------------------------------------------------------


def circles(partition, edges, documents, sampled):
    """Return circles and leaders of each document, in its own places."""
    batch = Batch.from_data_list(documents)
    with torch.no_grad():
        if sampled and isinstance(edges, SocialEdges):
            (node, circle), leader = partition.from_sampled(edges.sampled(batch))
        else:
            edge_index, edge_weight = edges(batch)
            (node, circle), leader = partition.gathered(edge_index, batch.batch, batch.num_graphs, edge_weight, batch)
    home, found = batch.batch[leader], []
    for number, start in enumerate(batch.ptr[:-1].tolist()):
        own = home[circle] == number
        first = int((home < number).sum())
        found.append((node[own] - start, circle[own] - first, leader[home == number] - start))
    return found


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_document_has_the_same_circles_in_every_batch(name, backbone):
    pytest.importorskip(graph_digest.LIBRARIES.get(name, "torch"))
    chain = ReadingOrder(backbone)

    @cases(8)
    @given(st.data())
    def check(data):
        documents = data.draw(st.lists(graphs(), min_size=1, max_size=4))
        edges = chain if name in ("blocks", "sentences") else data.draw(mixtures())
        options = {"k": data.draw(st.integers(1, 9))} if name not in ("windows", "blocks", "whole", "random") else {}
        partition = partition_resolver(name, **options)
        alone = [circles(partition, edges, [document], False)[0] for document in documents]
        for some in data.draw(batches(len(documents))):
            with threads(data.draw(st.sampled_from([1, 2]))):
                found = circles(partition, edges, [documents[number] for number in some], data.draw(st.booleans()))
            for number, graph in zip(some, found, strict=True):
                assert same(alone[number], graph), number

    check()


# --- texts, through the builder --------------------------------------------------------------------------------------

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
    generator = torch.Generator().manual_seed(seed)
    return " ".join(f"w{int(i)}" for i in torch.randint(0, 190, (length,), generator=generator))


class Builders:
    """Builders that share tokens and kept weights, over documents that are named by their texts."""

    def __init__(self, backbone):
        self.documents, self.tokens, self.cache = {}, Tokens(backbone, max_document_length=4000), WeightCache()
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
def builders(backbone):
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


def test_a_long_text_has_the_same_graph_among_short_ones(builders):
    texts = [("w1 w7", spoken(1, 3000)), ("w1 w7", "w3 " * 3000), ("w191", spoken(2, 2100)), ("w5", "w5"), ("w5", "")]
    pairs = [builders.pair(*text) for text in texts]
    for circles in (EdgeCircles(k=8, max_size=64), NodeCircles(k=8, max_size=64)):
        expected = [builders.make(circles=circles, keep=True)([pair])[0] for pair in pairs]
        for keep in (True, False):
            batch = builders.make(circles=circles, keep=keep)(pairs[::-1])
            assert_same(expected, batch, range(len(pairs))[::-1], edges=keep)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_worker_builds_the_same_graph(builders, workers):
    pairs = [builders.pair(query, spoken(seed, 40 * seed + 1)) for seed in range(6) for query in ("w1 w7", "w9")]
    builder = builders.make(keep=True)
    expected = [builder([pair])[0] for pair in pairs]
    order = [7, 2, 11, 0, 5, 5, 9, 1]
    loader = DataLoader([pairs[i] for i in order], batch_size=3, collate_fn=builder.ahead, num_workers=workers)
    for number, batch in enumerate(loader):
        assert_same(expected, builder.finish(batch), order[3 * number : 3 * number + 3])


# --- other processes, instructions and devices: the numbers that must come out ---------------------------------------


@pytest.fixture(scope="module")
def golden():
    return json.loads(graph_digest.GOLDEN.read_text())


def differences(golden, found):
    return {name: (golden.get(name), found.get(name)) for name in golden | found if golden.get(name) != found.get(name)}


COUNT = len(graph_digest.DOCUMENTS)
SPLITS = {"all at once": [COUNT], "alone": [1] * COUNT, "by fives": [5] * (COUNT // 5) + [COUNT % 5]}


@pytest.mark.parametrize("sizes", [SPLITS["alone"], SPLITS["by fives"]], ids=["alone", "by fives"])
def test_fixed_documents_have_the_graphs_they_always_had(golden, sizes):
    assert differences(golden, graph_digest.compute(sizes=sizes)) == {}


def test_other_processes_and_processors_draw_the_same_graphs(golden):
    """All documents at once, without vector instructions and with those of 2013; Python's hashes differ too."""
    running = {}
    for number, instructions in enumerate(("default", "avx2")):
        own = {"ATEN_CPU_CAPABILITY": instructions, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": str(number)}
        program = [sys.executable, graph_digest.__file__, "libraries"]
        running[instructions] = subprocess.Popen(program, env=os.environ | own, stdout=subprocess.PIPE, text=True)
    expected = golden | graph_digest.by_libraries()
    for instructions, process in running.items():
        printed, _ = process.communicate()
        assert process.returncode == 0, instructions
        assert differences(expected, json.loads(printed)) == {}, instructions


@cuda
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("sizes", SPLITS.values(), ids=SPLITS)
def test_a_gpu_draws_the_same_graphs(golden, sizes, fused):
    assert differences(golden, graph_digest.compute("cuda", sizes, fused)) == {}


@cuda
def test_a_gpu_builds_the_same_graph_of_a_text(builders):
    texts = [("w1 w7", spoken(1, 3000)), ("w1 w7", spoken(3, 300)), ("w191", spoken(2, 2100)), ("w5", "w5"), ("w5", "")]
    pairs = [builders.pair(*text) for text in texts]
    for circles in (EdgeCircles(k=8, max_size=64), NodeCircles(k=8, max_size=64)):
        expected = [builders.make(circles=circles, keep=True)([pair])[0] for pair in pairs]
        for keep in (True, False):
            batch = builders.make(circles=circles, keep=keep, device="cuda")(pairs[::-1])
            assert_same(expected, batch, range(len(pairs))[::-1], edges=keep)
