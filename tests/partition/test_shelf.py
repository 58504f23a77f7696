"""The shelf of partitions: each library's own answer, and the same rules that turn it into circles."""

from __future__ import annotations

import random
import sys
import warnings

import networkx as nx
import numpy as np
import pytest
import reference
import torch
from graphs import HARD, Graph, clique, collate, from_pairs, random_document, random_graph
from test_circles import circles_of
from torch import Tensor

from socialgraph.edges import SocialEdges, SocialGraph, StaticDistance
from socialgraph.errors import OptionError
from socialgraph.partition.communities import Communities
from socialgraph.partition.edge_circles import EdgeCircles
from socialgraph.partition.k_core import KCore
from socialgraph.partition.label_propagation import LabelPropagation
from socialgraph.partition.leiden import Leiden
from socialgraph.partition.louvain import Louvain
from socialgraph.partition.metis import Metis
from socialgraph.partition.node_circles import NodeCircles
from socialgraph.partition.random_circles import RandomCircles
from socialgraph.partition.resolver import PARTITIONS, partition_resolver
from socialgraph.partition.sentences import Sentences
from socialgraph.partition.spectral import Spectral

Circles = list[tuple[int, list[int]]]
LIBRARY = {"metis": "pymetis", "leiden": "igraph", "spectral": "sklearn"}
CLUSTERINGS = ["metis", "louvain", "leiden", "label-propagation", "k-core", "spectral"]
TWO_CLIQUES = ["two equal cliques", "two equal cliques, interleaved"]
clusterings = pytest.mark.parametrize("name", CLUSTERINGS)
shelf = pytest.mark.parametrize("name", [*CLUSTERINGS, "random", "sentences"])


def shelved(name: str, **options) -> Communities:
    """A partition of the shelf; its test is skipped where its library is not installed."""
    if name in LIBRARY:
        pytest.importorskip(LIBRARY[name])
    return partition_resolver(name, **options)


class Given(Communities):
    """Communities that the test names."""

    def __init__(self, pairs: list[tuple[int, int]], **options: int) -> None:
        super().__init__(**options)
        self.pairs = pairs

    def communities(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        return torch.tensor(self.pairs, dtype=torch.long).reshape(-1, 2).T


def ruled(graph: Graph, groups: list[list[int]], k: int, max_size: int) -> Circles:
    """The rules of Communities, as its docstring says them."""
    adjacency, _ = graph.dense()
    found = []
    for name, group in enumerate(groups):
        friends = {node: int(adjacency[node, group].sum()) for node in group}
        members = sorted(node for node in group if friends[node] > 0)
        if members:
            leader = min(members, key=lambda node: (-friends[node], node))
            others = reference.strongest([node for node in members if node != leader], leader, friends)
            found.append((-len(members), members[0], name, leader, sorted([leader, *others[: max_size - 1]])))
    return [(leader, members) for *_, leader, members in sorted(found)[:k]]


def compact(graph: Graph) -> tuple[list[int], nx.Graph]:
    """The nodes with a friend, and the graph of these, numbered from 0."""
    nodes, ends = torch.unique(graph.edge_index, return_inverse=True)
    g = nx.empty_graph(nodes.numel())
    g.add_weighted_edges_from(zip(*ends.tolist(), graph.edge_weight.tolist(), strict=True))
    return nodes.tolist(), g


def grouped(nodes: list[int], labels) -> list[list[int]]:
    """Labels as lists of nodes, in the graph's own ids."""
    return [[node for node, own in zip(nodes, labels, strict=True) if own == label] for label in sorted(set(labels))]


# The rules.


def test_rules_by_hand() -> None:
    # 0-1-2-3 is a clique but for 0-3; 4-5; 6 alone; 7-8-9 a path; 4 and 7 are friends
    graph = from_pairs(10, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (4, 5), (7, 8), (8, 9), (4, 7)])
    # nodes with a friend are 0 1 2 3 4 5 7 8 9, so 6, 7, 8 are called 6 -> 7, 7 -> 8, 8 -> 9
    disjoint = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 2), (7, 2), (8, 2)]
    want = [(1, [0, 1, 2, 3]), (8, [7, 8, 9]), (4, [4, 5])]
    assert circles_of(Given(disjoint), [graph]) == [want]
    assert circles_of(Given(disjoint[::-1]), [graph]) == [want]
    assert circles_of(Given(disjoint, k=2), [graph]) == [want[:2]]
    # 1 and 2 have most friends inside; of 0 and 3 one stays, as of 7 and 9 beside 8: that with the lower coin
    third, beside = (min(pair, key=lambda node: reference.coin(x, node)) for x, pair in ((1, (0, 3)), (8, (7, 9))))
    three = [(1, sorted([1, 2, third])), (8, [7, 8, 9]), (4, [4, 5])]
    assert circles_of(Given(disjoint, max_size=3), [graph]) == [three]
    two = [(1, [1, 2]), (8, sorted([8, beside])), (4, [4, 5])]
    assert circles_of(Given(disjoint, max_size=2), [graph]) == [two]
    # 3 knows nobody in the second community and leaves, so does all of the third; a pair said twice is one member
    overlapping = [(0, 5), (1, 5), (1, 5), (1, 2), (2, 2), (3, 2), (4, 2), (0, 9), (8, 9)]
    assert circles_of(Given(overlapping), [graph]) == [[(0, [0, 1]), (1, [1, 2, 3])][::-1]]
    assert circles_of(Given([]), [graph]) == [[]]


@pytest.mark.parametrize("seed", range(40))
def test_rules_over_random_overlapping_communities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(int(rng.integers(2, 40)), float(rng.random() * 0.4), seed)
    nodes, _ = compact(graph)
    pairs = [(int(rng.integers(len(nodes))), int(rng.integers(6))) for _ in range(60)] if nodes else []
    k, max_size = int(rng.integers(1, 8)), int(rng.integers(2, 9))
    groups = [sorted({nodes[node] for node, label in pairs if label == name}) for name in range(6)]
    assert circles_of(Given(pairs, k=k, max_size=max_size), [graph]) == [ruled(graph, groups, k, max_size)]


@clusterings
def test_options_out_of_range(name: str) -> None:
    for options in ({"k": 0}, {"max_size": 1}):
        with pytest.raises(OptionError, match="must be at least"):
            PARTITIONS[name](**options)


# What all of them promise.


@shelf
def test_no_edges_no_circles(name: str) -> None:
    graphs = [HARD["empty"], HARD["one node"], HARD["no edges"]]
    assert circles_of(shelved(name), graphs) == [[], [], []]
    assert circles_of(shelved(name), []) == []


@shelf
@pytest.mark.parametrize("weighted", [True, False])
def test_alone_as_in_a_batch(name: str, weighted: bool) -> None:
    graphs = [HARD["empty"], *HARD.values(), random_graph(90, 0.2, 9), HARD["no edges"]]
    partition = shelved(name)
    want = [circles_of(partition, [graph], weighted)[0] for graph in graphs]
    assert circles_of(partition, graphs, weighted) == want
    assert circles_of(partition, graphs[::-1], weighted) == want[::-1]
    again = eval(repr(partition), {type(x).__name__: type(x) for x in (partition, EdgeCircles())})
    assert circles_of(again, graphs, weighted) == want


@shelf
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_every_device_agrees(name: str) -> None:
    graphs = [*HARD.values(), random_graph(90, 0.2, 9)]
    assert circles_of(shelved(name), graphs, device="cuda") == circles_of(shelved(name), graphs)


@clusterings
@pytest.mark.parametrize(("k", "max_size"), [(1, 2), (3, 5), (16, 128)])
def test_laws(name: str, k: int, max_size: int) -> None:
    graphs = [*HARD.values(), random_graph(200, 0.08, 1)]
    for graph, circles in zip(graphs, circles_of(shelved(name, k=k, max_size=max_size), graphs), strict=True):
        adjacency, _ = graph.dense()
        assert len(circles) <= k
        assert bool(circles) == bool(adjacency.any())
        seen: list[int] = []
        for leader, members in circles:
            assert leader in members
            assert len(members) <= max_size
            assert adjacency[leader].any()
            seen += members
        assert name == "k-core" or len(seen) == len(set(seen))


@clusterings
@pytest.mark.parametrize("hard", TWO_CLIQUES)
def test_two_cliques_are_two_circles(name: str, hard: str) -> None:
    graph = HARD[hard]
    a, b = sorted(sorted(c) for c in nx.connected_components(nx.Graph(graph.edge_index.T.tolist())))
    options = {"k": 2} if name in ("metis", "spectral") else {}
    assert circles_of(shelved(name, **options), [graph]) == [[(a[0], a), (b[0], b)]]


@pytest.mark.parametrize("name", [name for name in CLUSTERINGS if name != "k-core"])  # a core may hold several groups
def test_four_loosely_tied_groups_are_found(name: str) -> None:
    rng = np.random.default_rng(3)
    home = rng.permutation(np.repeat(np.arange(4), 25))
    chance = np.where(home[:, None] == home, 0.7, 0.01)
    graph = from_pairs(100, np.argwhere(rng.random((100, 100)) < np.triu(chance, 1)).tolist())
    circles = circles_of(shelved(name, k=4), [graph])[0]
    assert len(circles) == 4
    for _, members in circles:
        assert np.unique(home[members]).size == 1
    assert {int(home[leader]) for leader, _ in circles} == {0, 1, 2, 3}
    assert sum(len(members) for _, members in circles) >= 80


@clusterings
def test_isolated_nodes_change_nothing(name: str) -> None:
    graph = HARD["random, with ties"]
    adjacency, weight = (np.pad(table, (3, 4)) for table in graph.dense())
    row, column = adjacency.nonzero()
    wider = Graph(torch.tensor(np.stack([row, column])), len(adjacency), torch.tensor(weight[row, column]).float())
    moved = [(leader + 3, [node + 3 for node in members]) for leader, members in circles_of(shelved(name), [graph])[0]]
    assert circles_of(shelved(name), [wider]) == [moved]


@pytest.mark.parametrize("name", LIBRARY)
def test_a_missing_library_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = {"spectral": "sklearn.cluster"}.get(name, LIBRARY[name])
    package = {"spectral": "scikit-learn"}.get(name, LIBRARY[name])
    monkeypatch.setitem(sys.modules, module, None)
    want = f"{PARTITIONS[name].__name__} needs {package}: pip install 'socialgraph-ir\\[partitions\\]'"
    with pytest.raises(OptionError, match=want):
        circles_of(PARTITIONS[name](), [HARD["one edge"]])


def test_names() -> None:
    kinds = [Metis, Louvain, Leiden, LabelPropagation, KCore, Spectral, RandomCircles, Sentences]
    assert [PARTITIONS[name] for name in [*CLUSTERINGS, "random", "sentences"]] == kinds
    assert partition_resolver("metis", k=8).k == 8
    assert repr(Metis(8)) == "Metis(k=8, max_size=128, seed=0)"
    assert repr(Louvain(8, resolution=2.0)) == "Louvain(k=8, max_size=128, resolution=2.0, seed=0)"
    assert repr(Leiden(seed=3)) == "Leiden(k=16, max_size=128, resolution=1.0, seed=3)"
    assert repr(KCore()) == "KCore(k=16, max_size=128)"
    assert repr(Sentences(64, k=3)) == "Sentences(max_size=64, k=3)"
    assert repr(RandomCircles(NodeCircles(), 2)) == f"RandomCircles(like={NodeCircles()!r}, seed=2)"


# Each against its library.

SOME = [HARD["random, as in the paper"], HARD["random, with ties"], HARD["windmill"], random_graph(120, 0.15, 8)]
some = pytest.mark.parametrize("graph", SOME)


@some
def test_louvain(graph: Graph) -> None:
    nodes, g = compact(graph)
    groups = [[nodes[i] for i in found] for found in nx.community.louvain_communities(g, resolution=1.4, seed=5)]
    assert circles_of(Louvain(5, 7, resolution=1.4, seed=5), [graph]) == [ruled(graph, groups, 5, 7)]


@some
def test_label_propagation(graph: Graph) -> None:
    nodes, g = compact(graph)
    groups = [[nodes[i] for i in found] for found in nx.community.label_propagation_communities(g)]
    assert circles_of(LabelPropagation(5, 7), [graph]) == [ruled(graph, groups, 5, 7)]


@some
def test_leiden(graph: Graph) -> None:
    igraph = pytest.importorskip("igraph")
    nodes, g = compact(graph)
    other = igraph.Graph(len(nodes), list(g.edges))
    weight = [g.edges[edge]["weight"] for edge in g.edges]
    igraph.set_random_number_generator(random.Random(0))
    found = other.community_leiden("modularity", weights=weight, n_iterations=-1)
    igraph.set_random_number_generator(random)
    circles = circles_of(Leiden(100, 1000), [graph])[0]
    label = {node: number for number, (_, members) in enumerate(circles) for node in members}
    assert len(label) == len(nodes)
    # another order of edges may lead elsewhere, but not to something worse
    got = other.modularity([label[node] for node in nodes], weight)
    assert got == pytest.approx(found.modularity, abs=0.02)
    assert got > 0.1
    # the last of igraph's own random numbers are Python's again
    random.seed(1)
    one = other.community_leiden("modularity", n_iterations=1).membership
    circles_of(Leiden(), [graph])
    random.seed(1)
    assert other.community_leiden("modularity", n_iterations=1).membership == one


@some
def test_metis(graph: Graph) -> None:
    pymetis = pytest.importorskip("pymetis")
    nodes, g = compact(graph)
    friends = [sorted(g[node]) for node in range(len(nodes))]
    starts = np.cumsum([0, *map(len, friends)]).tolist()
    parts = pymetis.CSRAdjacency(starts, [node for row in friends for node in row])
    _, label = pymetis.part_graph(4, parts, options=pymetis.Options(seed=7))
    circles = circles_of(Metis(4, 1000, seed=7), [graph], weighted=False)[0]
    assert circles == ruled(graph, grouped(nodes, label), 4, 1000)
    # with weights, the weight cut is about what METIS says it can be
    _, weight = graph.dense()
    sizes = [len(members) for _, members in circles_of(Metis(4, 1000), [graph])[0]]
    assert max(sizes) <= 1.1 * len(nodes) / 4 + 1
    cut = lambda circles: weight.sum() - sum(weight[np.ix_(m, m)].sum() for _, m in circles)  # noqa: E731
    assert cut(circles_of(Metis(4, 1000), [graph])[0]) <= 1.02 * cut(circles)


def test_metis_cuts_light_ties() -> None:
    adjacency = ~np.eye(8, dtype=bool)
    home = np.array([0, 1, 1, 0, 0, 1, 0, 1])
    weight = np.where(home[:, None] == home, 0.01, 1e-5)
    row, column = adjacency.nonzero()
    graph = Graph(torch.tensor(np.stack([row, column])), 8, torch.tensor(weight[row, column]).float())
    pytest.importorskip("pymetis")
    assert circles_of(Metis(2), [graph]) == [[(0, [0, 3, 4, 6]), (1, [1, 2, 5, 7])]]


@some
def test_spectral(graph: Graph) -> None:
    cluster = pytest.importorskip("sklearn.cluster")
    nodes, g = compact(graph)
    parts = min(4, len(nodes) // 2)
    affinity = nx.to_scipy_sparse_array(g, nodelist=range(len(nodes)), format="csr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        label = cluster.SpectralClustering(
            parts, affinity="precomputed", assign_labels="cluster_qr", eigen_solver="lobpcg", random_state=0
        ).fit_predict(affinity)
    assert circles_of(Spectral(4, 9), [graph]) == [ruled(graph, grouped(nodes, label.tolist()), 4, 9)]


def test_spectral_says_nothing_of_graphs_in_pieces() -> None:
    pytest.importorskip("sklearn.cluster")
    pieces = from_pairs(400, [pair for first in range(0, 400, 5) for pair in clique(range(first, first + 5))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert circles_of(Spectral(4), [*HARD.values(), pieces])[-1]


@pytest.mark.parametrize("seed", range(30))
def test_the_first_core_is_the_innermost(seed: int) -> None:
    graph = random_graph(30, 0.05 + 0.01 * seed, seed)
    _, g = compact(graph)
    nodes = torch.unique(graph.edge_index).tolist()
    pieces = [{nodes[i] for i in piece} for piece in nx.connected_components(nx.k_core(g))]
    assert set(circles_of(KCore(k=1), [graph])[0][0][1]) in pieces


def test_cores_one_after_the_other() -> None:
    # a clique of 5, a clique of 4 that shares node 4 with it, and a tail
    graph = from_pairs(10, [*clique(range(5)), *clique(range(4, 8)), (7, 8), (8, 9)])
    want = [(0, [0, 1, 2, 3, 4]), (4, [4, 5, 6, 7]), (8, [7, 8, 9])]
    assert circles_of(KCore(), [graph]) == [want]
    assert circles_of(KCore(k=1), [graph]) == [want[:1]]


def test_cores_share_no_edge_and_every_edge_is_met_in_the_end() -> None:
    graph = random_graph(40, 0.3, 2)
    adjacency, _ = graph.dense()
    met = np.zeros_like(adjacency, dtype=int)
    for _, members in circles_of(KCore(k=1000, max_size=6), [graph])[0]:
        assert len(members) <= 6
        met[np.ix_(members, members)] += 1
    assert ((met > 0) >= adjacency).all()
    first = circles_of(KCore(k=1, max_size=6), [graph])[0][0][1]
    by_degree = np.argsort(-adjacency.sum(0), kind="stable")[:6]
    assert adjacency[np.ix_(first, first)].sum() >= adjacency[np.ix_(by_degree, by_degree)].sum()


def test_a_core_that_is_too_large_keeps_its_dense_middle() -> None:
    # a ring of 12 around a clique of 4; all of it is a 3-core
    ring = [(i, 4 + (i - 3) % 12) for i in range(4, 16)]
    spokes = [(i % 4, i) for i in range(4, 16)]
    graph = from_pairs(16, [*clique(range(4)), *ring, *spokes])
    assert circles_of(KCore(k=1, max_size=4), [graph]) == [[(0, [0, 1, 2, 3])]]


# Random circles.


def test_random_circles_have_the_sizes_of_others() -> None:
    graphs = [*HARD.values(), random_graph(300, 0.07, 5)]
    for like in (EdgeCircles(5, 20), NodeCircles(5, 20)):
        model, drawn = circles_of(like, graphs), circles_of(RandomCircles(like), graphs)
        size = lambda found: [[len(members) for _, members in circles] for circles in found]  # noqa: E731
        assert size(model) == size(drawn)
        assert model != drawn
    assert circles_of(RandomCircles(), graphs) == circles_of(RandomCircles(EdgeCircles()), graphs)
    assert circles_of(RandomCircles(seed=1), graphs) != circles_of(RandomCircles(), graphs)


def test_random_circles_are_fair() -> None:
    star = from_pairs(10, [(0, i) for i in range(1, 5)])
    member, leader, both = np.zeros(10), np.zeros(10), np.zeros((10, 10))
    draws = 500
    for seed in range(draws):
        ((first, members),) = circles_of(RandomCircles(EdgeCircles(1), seed), [star])[0]
        assert len(members) == 5
        assert first in members
        member[members] += 1
        leader[first] += 1
        both[np.ix_(members, members)] += 1
    # five standard deviations
    assert abs(member / draws - 0.5).max() < 5 * 0.5 / draws**0.5
    assert abs(leader / draws - 0.1).max() < 5 * 0.3 / draws**0.5
    assert abs(both[np.triu_indices(10, 1)] / draws - 2 / 9).max() < 5 * 0.42 / draws**0.5


def test_random_circles_differ_from_each_other() -> None:
    graph = random_graph(200, 0.1, 1)
    drawn = circles_of(RandomCircles(EdgeCircles(8, 10)), [graph])[0]
    assert len({tuple(members) for _, members in drawn}) == 8
    longer = from_pairs(201, graph.edge_index.T.tolist())
    assert circles_of(RandomCircles(EdgeCircles(8, 10)), [longer])[0] != drawn


def test_random_circles_draw_what_their_model_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    one = random_document(200, 1)
    edges, batch = SocialEdges([StaticDistance()]), torch.zeros(200).long()
    want = RandomCircles()(*edges(one)[:1], batch, 1, edges(one)[1])
    monkeypatch.setattr(SocialGraph, "edges", lambda self: pytest.fail("all edges are drawn"))
    got = RandomCircles().from_sampled(edges.sampled(one))
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


# Sentences.


def chain(*texts: str) -> tuple[Tensor, Tensor, int, Tensor]:
    """Documents of one letter a token, tied as reading order ties them."""
    graphs = []
    for text in texts:
        cost = [{".": 1.0, "?": 1.0, "!": 1.0, ",": 2.0}.get(letter, 8.0) for letter in text[:-1]]
        row = torch.arange(len(cost))
        ends = torch.stack([torch.cat([row, row + 1]), torch.cat([row + 1, row])])
        order = torch.argsort(ends[0] * 1000 + ends[1])
        graphs.append(Graph(ends[:, order], len(text), torch.tensor(cost * 2)[order]))
    return collate(graphs)


def sentences(partition: Sentences, *texts: str) -> list[str]:
    (node, circle), leader = partition(*chain(*texts))
    letters = "".join(texts)
    found = ["".join(letters[i] for i in node[circle == c].tolist()) for c in range(leader.numel())]
    assert leader.tolist() == [int(node[circle == c][0]) for c in range(leader.numel())]
    return found


def test_sentences_by_hand() -> None:
    text = "ab,cd.efg?h!ij.klm"
    assert sentences(Sentences(), text) == ["ab,cd.", "efg?", "h!", "ij.", "klm"]
    assert sentences(Sentences(k=3), text, "", "x", "xy") == ["ab,cd.", "efg?", "ij.", "xy"]
    assert sentences(Sentences(k=1), text, text) == ["ab,cd.", "ab,cd."]
    # too long: cut at the comma; no comma: cut after so many tokens
    assert sentences(Sentences(5), text) == ["ab,", "cd.", "efg?", "h!", "ij.", "klm"]
    assert sentences(Sentences(4), "abcdefg.hi.") == ["abcd", "efg.", "hi."]
    # a full stop by itself is nobody's circle
    assert sentences(Sentences(), "ab...cd.") == ["ab.", "cd."]
    for bad in ({"max_size": 1}, {"k": 0}):
        with pytest.raises(OptionError, match="must be at least"):
            Sentences(**bad)


def test_sentences_of_random_texts() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        text = "".join(rng.choice(list("abcdefgh,.?"), int(rng.integers(1, 80))))
        want, start = [], 0
        for end in range(len(text)):
            if text[end] in ".?" or end == len(text) - 1:
                want.append(text[start : end + 1])
                start = end + 1
        assert sentences(Sentences(), text) == [sentence for sentence in want if len(sentence) > 1]


def test_random_circles_are_of_the_sizes_that_are_asked_for():
    assert RandomCircles(k=3, max_size=9).like.k == 3
    assert RandomCircles(k=3, max_size=9).like.max_size == 9
    with pytest.raises(OptionError, match="k, the number of circles"):
        RandomCircles(k=0)
