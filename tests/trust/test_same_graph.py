"""The same edges, circles and leaders everywhere, bit for bit: in any batch, thread, worker, process, on any device."""

import graph_digest
import pytest
import torch
from cases import cases
from drawing import Rule
from hypothesis import given
from hypothesis import strategies as st
from in_batches import backbone, batches, threads  # noqa: F401  (a fixture)
from torch_geometric.data import Batch

from socialgraph.data.graph import document_graph
from socialgraph.edges import (
    HASH_RANGE,
    DynamicDistance,
    Kleinberg,
    Nearby,
    QueryToAll,
    ReadingOrder,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
    Uniform,
    WattsStrogatz,
    draw_key,
)
from socialgraph.edges.affinity import LowRank
from socialgraph.edges.draws import node_hashes, pair_hash
from socialgraph.edges.mixture import mix
from socialgraph.edges.social import scale
from socialgraph.edges.social_graph import SocialGraph
from socialgraph.partition import partition_resolver
from socialgraph.partition.resolver import PARTITIONS

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

    key = draw_key(seed, asked[query], ids)
    return document_graph(ids, asked[query], key, tfidf=weights(), dynamic_centrality=weights().float())


class Own(StaticDistance):
    """Somebody's pattern without a closed form: a different number for each distance and sum of places."""

    def forward(self, graph):
        place = torch.arange(graph.num_nodes) - graph.ptr[graph.batch]

        def rule(i, j):
            one, two = place[i], place[j]
            return ((one + two) % 7 + 1).double() / 7.0 / (1.0 + (one - two).abs())

        return Rule(graph.batch, graph.ptr, rule)


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


@cases(60)
@given(st.data())
def test_an_edge_is_a_coin_below_its_probability(data):
    """However it is drawn, as a whole or row by row."""
    documents = data.draw(st.lists(graphs(), min_size=1, max_size=3))
    batch = Batch.from_data_list(documents)
    edges = data.draw(mixtures())
    with torch.no_grad():
        sampled = edges.sampled(batch)
        expected, weight = [], []
        for start, p in zip(batch.ptr.tolist(), sampled.probability.dense(), strict=False):
            ids = torch.arange(start, start + len(p))
            key = batch.draw_key[batch.batch[ids]] if "batch" in batch else batch.draw_key.expand(len(ids))
            lower, higher = node_hashes(key, ids - start)
            coins = pair_hash(lower[:, None], higher[None, :])
            upper = ((coins < p * HASH_RANGE) & (ids[:, None] < ids[None, :])).nonzero() + start
            expected.append(torch.cat([upper, upper.flip(1)]))
            weight.append(p.clamp(max=1.0).float()[tuple((expected[-1] - start).T)])
        expected = torch.cat(expected)
        order = torch.argsort(expected[:, 0] * 10_000 + expected[:, 1])
        expected, weight = expected[order].T, torch.cat(weight)[order]
        assert same(sampled.edges(), (expected, weight))


@cases(40)
@given(st.integers(2, 300), st.integers(0, 1 << 62), st.randoms(use_true_random=False))
def test_a_hash_close_to_its_threshold_is_decided_exactly(size, key, random):
    """P of the first node and each other is the hash of the pair, a sixteenth beside: no float32 can tell."""
    batch, ptr = torch.zeros(size, dtype=torch.long), torch.tensor([0, size])
    lower, higher = node_hashes(torch.full((size,), key), torch.arange(size))
    beside = torch.tensor([random.choice([-1, 1]) for _ in range(size)])
    p = LowRank(batch, ptr, (pair_hash(lower[0], higher) + beside.double() / 16) / HASH_RANGE)
    row, column = SocialGraph(p, torch.tensor([key])).edges()[0]
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
def test_a_document_has_the_same_circles_in_every_batch(name, backbone):  # noqa: F811
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
