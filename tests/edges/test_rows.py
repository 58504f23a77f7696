"""Rows of a social graph: all ways to draw them are those of probabilities and coins, edge by edge; and bounds hold."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from shutil import which

import numpy as np
import pytest
import torch
from drawing import DOCUMENTS, MIXTURES, OwnPattern
from graphs import random_document
from scipy import stats
from torch_geometric.data import Batch, Data

from socialgraph.edges import (
    COIN_SIDES,
    DynamicDistance,
    SocialEdges,
    SocialGraph,
    StaticCentrality,
    StaticDistance,
    Uniform,
    exact_rows,
    filtered_rows,
    social_graph,
)
from socialgraph.edges.coins import node_hashes, toss
from socialgraph.edges.exact_rows import upper_tail
from socialgraph.edges.filtered_rows import FilteredRows
from socialgraph.edges.fused import fused

SAMPLERS = {
    **{name: SocialEdges(patterns, sparsity=0.8) for name, patterns in MIXTURES.items()},
    "clipped": SocialEdges(MIXTURES["three"], sparsity=0.05),
    "no closed form": SocialEdges({"own": OwnPattern(), "words": StaticCentrality()}, sparsity=0.8),
    "two kernels": SocialEdges({"near": StaticDistance(9.0), "far": StaticDistance(200.0)}),
    "uniform": SocialEdges([Uniform()], sparsity=0.5),
}


def written_out(graph: SocialGraph, data: list[Data]) -> list[np.ndarray]:
    """Each document's adjacency matrix: its coins against its probabilities in float64, nothing else."""
    matrices = []
    for one, p in zip(data, graph.probability.dense(), strict=True):
        n = int(one.num_nodes)
        lower, higher = node_hashes(one.coin_key.expand(n), torch.arange(n))
        coin = toss(lower[:, None], higher[None, :]).double()
        upper = (coin < p * COIN_SIDES).numpy() & np.triu(np.ones((n, n), dtype=bool), 1)
        matrices.append(upper | upper.T)
    return matrices


def drawn(graph: SocialGraph, data: list[Data], how: str) -> list[np.ndarray]:
    """The same by one of the graph's ways."""
    matrices = [np.zeros((int(one.num_nodes),) * 2, dtype=bool) for one in data]
    for group in graph.groups():
        documents = graph.batch[group.node[:, 0]].tolist()
        everybody = torch.arange(group.width).expand(len(documents), -1)
        d, w = torch.arange(len(documents)).repeat_interleave(group.width), everybody.flatten()
        if how == "matrix":
            found = group.matrix()
        elif how == "rows":
            found = group.friends(d, w).view(-1, group.width, group.width)
        else:  # columns in any order, one of them twice
            order = torch.randperm(group.width, generator=torch.Generator().manual_seed(0))
            order = torch.cat([order, order[:1]])
            found = torch.empty(len(documents), group.width, group.width, dtype=torch.int32)
            mixed = group.friends(d, w, order.expand(len(documents), -1))
            found[:, :, order] = mixed.view(len(documents), group.width, -1)
        assert set(found.unique().tolist()) <= {0, 1}
        for number, name in enumerate(documents):
            n = len(matrices[name])
            matrices[name] = found[number, :n, :n].bool().numpy()
            assert not found[number, n:].any(), "the pad has no friend"
            assert not found[number, :, n:].any()
    return matrices


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("how", ["matrix", "rows", "columns"])
def test_every_way_draws_the_coins_as_written_out(name: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = [one.clone() for one in DOCUMENTS.values()]
    for key, one in enumerate(data):
        one.coin_key = torch.tensor([11 * key])
    graph = SAMPLERS[name].sampled(Batch.from_data_list(data))
    for group_bytes, block_pairs in ((1, 1), (1 << 25, 1 << 18), (1 << 30, 1 << 26)):
        monkeypatch.setitem(social_graph.GROUP_BYTES, "cpu", group_bytes)
        monkeypatch.setitem(exact_rows.BLOCK_PAIRS, "cpu", block_pairs)
        for found, want in zip(drawn(graph, data, how), written_out(graph, data), strict=True):
            assert np.array_equal(found, want)


def test_deciding_everything_exactly_changes_nothing() -> None:
    data = random_document(120, 3, coin_key=2)
    (group,) = SAMPLERS["three"].sampled(data).groups()
    want = group.matrix()
    group.error = torch.full_like(group.error, 1e9)
    assert torch.equal(group.matrix(), want)
    assert torch.equal(group.friends(torch.zeros(120).long(), torch.arange(120)), want[0, :120].int())


def test_thresholds_are_off_by_no_more_than_they_say() -> None:
    data = random_document(200, 4, coin_key=9)
    for sampler in SAMPLERS.values():
        graph = sampler.sampled(data)
        (group,) = graph.groups()
        if not isinstance(group, FilteredRows):
            continue
        (p,) = graph.probability.dense()
        place = group.place[:-1].long()
        float32 = group.column[0, None, :-1] + group.gain[0] * group.kernel[(place[:, None] - place).abs()]
        float32 = float32 + group.row[0, :-1, None]
        for left, right in zip(group.left, group.right, strict=True):
            float32 = float32 + left[0, :-1, None] * right[0, None, :-1]
        off = (float32.double() - p * COIN_SIDES).abs().fill_diagonal_(0).max()
        assert off <= group.error[0]
        assert group.error[0] < 2000, "or nothing is gained"


# --- the bound on a degree ------------------------------------------------------------------------


@pytest.mark.parametrize("surprise", [2.0, 10.0, 40.0])
@pytest.mark.parametrize("n", [1, 2, 10, 300, 32_768])
def test_no_binomial_tail_exceeds_its_bound(surprise: float, n: int) -> None:
    p = np.concatenate([10.0 ** np.arange(-9, 0.0), np.linspace(0.05, 1.0, 39)])
    count = torch.tensor(float(n))
    bound = upper_tail(torch.from_numpy(p) * n, count, torch.tensor(surprise)).numpy()
    assert (bound <= n).all()
    assert (bound >= p * n - 1e-9).all()
    tail = stats.binom.sf(np.floor(bound), n, p)  # P(X > U)
    assert (tail <= math.exp(-surprise)).all()
    if n == 32_768 and surprise == 40.0:  # and it is no idle bound: within 9 standard deviations and a bit
        assert (bound <= p * n + 9 * np.sqrt(p * (1 - p) * n) + 30).all()


def test_unequal_coins_and_means_that_are_too_high() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 60))
        p = rng.random(n) ** rng.integers(1, 8)
        surprise = float(rng.uniform(0.5, 20))
        exact = np.ones(1)
        for q in p:
            exact = np.convolve(exact, [1 - q, q])
        for excess in (0.0, 0.3, 5.0):
            bound = upper_tail(torch.tensor(p.sum() + excess), torch.tensor(float(n)), torch.tensor(surprise))
            assert exact[int(bound) + 1 :].sum() <= math.exp(-surprise) + 1e-15


@pytest.mark.parametrize("name", SAMPLERS)
def test_degrees_keep_their_bound(name: str) -> None:
    data = [random_document(length, length, coin_key=length) for length in (2, 40, 300)]
    graph = SAMPLERS[name].sampled(Batch.from_data_list(data))
    expected = torch.cat([p.clamp(max=1.0).sum(1) for p in graph.probability.dense()])
    assert (graph.expected >= expected - 1e-6).all()
    degree = torch.from_numpy(np.concatenate([matrix.sum(1) for matrix in written_out(graph, data)]))
    for group in graph.groups():
        bound = group.degree_bound()
        others = group.inside.sum(1, keepdim=True) - 1
        assert (bound >= torch.where(group.inside, degree[group.node], 0)).all()
        assert (bound <= others).all()
        assert (bound[~group.inside] == 0).all()


def test_the_bound_is_worth_something() -> None:
    data = random_document(4000, 1, vocabulary=300)
    graph = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()]).sampled(data)
    (group,) = graph.groups()
    bound = group.degree_bound()[0, :-1]
    assert (bound < graph.expected.max()).sum() > 2000  # half of the nodes need never be looked at


@pytest.mark.skipif(
    not torch.cuda.is_available() and which("g++") is None, reason="torch.compile on a CPU needs a C++ compiler"
)
def test_fused_kernel_draws_the_same_edges() -> None:
    patterns = dict(SAMPLERS["three"].patterns.items())
    plain, kernel = (SocialEdges(patterns, compile=compiled) for compiled in (False, True))
    assert "compile=True" in repr(kernel)
    for lengths in ((300,), (0, 2, 150, 300, 299, 1), (700, 40)):
        batch = Batch.from_data_list([random_document(n, n, coin_key=7 * n) for n in lengths])
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="coins are tossed without")
            found = kernel(batch)
        for mine, want in zip(found, plain(batch), strict=True):
            assert torch.equal(mine, want)


def cannot(function: Callable, dynamic: bool) -> Callable:
    def kernel(*arguments: object) -> None:
        raise RuntimeError("no compiler here\nand much more")

    return kernel


def wrong(function: Callable, dynamic: bool) -> Callable:
    return lambda lower, *others: function(lower + 1, *others)


@pytest.mark.parametrize(("compiler", "why"), [(cannot, "no compiler here"), (wrong, "not do what its parts do")])
def test_without_a_fused_kernel_edges_are_the_same(monkeypatch: pytest.MonkeyPatch, compiler, why: str) -> None:
    monkeypatch.setattr(torch, "compile", compiler)
    fused.cache_clear()
    one, patterns = random_document(300, 3), dict(SAMPLERS["three"].patterns.items())
    with pytest.warns(UserWarning, match=rf"coins are tossed without a fused kernel, which is slower \(.*{why}\)"):
        found = SocialEdges(patterns, compile=True)(one)
    fused.cache_clear()
    assert all(torch.equal(x, y) for x, y in zip(found, SocialEdges(patterns, compile=False)(one), strict=True))


def test_on_a_cpu_nothing_is_compiled_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered_rows, "fused", lambda *_: pytest.fail("compiled"))
    assert SocialEdges(dict(SAMPLERS["three"].patterns.items()))(random_document(50, 1))[0].numel() > 0
