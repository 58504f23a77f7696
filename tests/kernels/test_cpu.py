"""The kernels on a CPU: edges one by one, circles as from all edges, bounds that hold, and no cache that must be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from circles import LEVELS
from drawing import DOCUMENTS, MIXTURES, PATTERNS, assert_same_circles, documents
from graphs import document, random_document
from scipy import stats
from torch_geometric.data import Batch

from socialgraph.edges import HASH_RANGE, LowRank, QueryToAll, SocialEdges, SocialGraph, StaticCentrality, Uniform
from socialgraph.edges.draws import node_hashes, pair_hash
from socialgraph.kernels import ClosedForm, cpu


class SecondCentrality(StaticCentrality):
    """The same weights under another name."""

    name = "second_centrality"


SAMPLERS = {
    **{name: SocialEdges(patterns, sparsity=0.8) for name, patterns in MIXTURES.items()},
    "clipped": SocialEdges(MIXTURES["three"], sparsity=0.05),
    "uniform": SocialEdges([Uniform()], sparsity=0.5),
    "more factors than the inner loop has": SocialEdges([*MIXTURES["three"], QueryToAll(), SecondCentrality()]),
}
levels = pytest.mark.parametrize("level", LEVELS)


def written_out(graph: SocialGraph) -> list[np.ndarray]:
    """Each document's adjacency matrix: the hash of each pair against its probability, nothing else."""
    matrices = []
    for key, p in zip(graph.key, graph.probability.dense(), strict=True):
        lower, higher = node_hashes(key.expand(len(p)), torch.arange(len(p)))
        upper = (pair_hash(lower[:, None], higher) < p * HASH_RANGE).numpy() & np.triu(np.ones(p.shape, dtype=bool), 1)
        matrices.append(upper | upper.T)
    return matrices


@pytest.mark.parametrize("name", SAMPLERS)
def test_edges_are_those_of_every_pair(name: str) -> None:
    data = [one.clone() for one in DOCUMENTS.values()]
    for key, one in enumerate(data):
        one.draw_key = torch.tensor([11 * key])
    graph = SAMPLERS[name].sampled(Batch.from_data_list(data))
    assert graph.closed_form is not None
    edge_index, weight = graph.edges()
    found = torch.zeros(graph.batch.numel(), graph.batch.numel(), dtype=torch.bool)
    found[tuple(edge_index)] = True
    want = torch.block_diag(*(torch.from_numpy(matrix) for matrix in written_out(graph))).bool()
    assert torch.equal(found, want)
    assert torch.equal(edge_index, want.nonzero().T)
    assert torch.equal(weight, graph.weight(*edge_index))


@pytest.mark.parametrize("columns", [0, 1, 3, 4, 7])
def test_any_number_of_factors(columns: int) -> None:
    generator = torch.Generator().manual_seed(columns)
    factor = torch.rand(70, columns, generator=generator, dtype=torch.float64) / max(1, columns)
    batch, ptr = torch.zeros(70, dtype=torch.long), torch.tensor([0, 70])
    sign = tuple((-1.0) ** number for number in range(columns))
    p = LowRank(batch, ptr, factor=factor, sign=sign, constant=torch.tensor([0.1]))
    graph = SocialGraph(p, torch.tensor([5]))
    assert graph.closed_form is not None
    assert graph.closed_form.u.size(0) == columns
    (want,) = written_out(graph)
    assert np.array_equal(graph.edges()[0].numpy(), want.nonzero())
    members, _ = cpu.greedy_circles(graph.closed_form, 3, 70, False, True)
    assert (members[0] >= 0).sum(1).tolist()[0] == want.sum(1).max() + 1


@levels
@pytest.mark.parametrize("lengths", [(2048,), (4097, 100, 0, 4500)])  # from 4,097 on few rows are drawn
@pytest.mark.parametrize("name", ["three", "uniform"])
def test_circles_of_long_documents(level: str, lengths: tuple[int, ...], name: str) -> None:
    batch = Batch.from_data_list([random_document(n, n, vocabulary=400, draw_key=n) for n in lengths])
    assert assert_same_circles(LEVELS[level][0](), SocialEdges(PATTERNS[name]), batch) >= 16


@levels
def test_more_circles_than_a_word_has_bits(level: str) -> None:
    batch = Batch.from_data_list([*documents(8, 1, 150), random_document(4100, 8)])
    assert assert_same_circles(LEVELS[level][0](k=70, max_size=3), SocialEdges(PATTERNS["three"]), batch) > 150


@levels
def test_threads_do_not_matter(level: str) -> None:
    form = SocialEdges(PATTERNS["three"]).sampled(Batch.from_data_list(documents(9, 4))).closed_form
    threads, found = torch.get_num_threads(), []
    for number in (1, 3):
        torch.set_num_threads(number)
        found.append(cpu.greedy_circles(form, 5, 20, level == "node", True))
    torch.set_num_threads(threads)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


# --- the bound on a degree --------------------------------------------------------------------------------------------


def bounds(form: ClosedForm, d: int = 0, gone: tuple[int, ...] = ()) -> np.ndarray:
    arrays = [x.numpy() for x in form]
    tables = cpu.document_tables(tuple(arrays), d)
    bound = np.full(tables[0], tables[0] - 1)
    cpu.lower_bounds(tables, np.array(gone, dtype=np.int64), bound)
    return bound


@pytest.mark.parametrize("name", SAMPLERS)
def test_degrees_keep_their_bound(name: str) -> None:
    data = [random_document(length, length, draw_key=length) for length in (2, 40, 300)]
    graph = SAMPLERS[name].sampled(Batch.from_data_list(data))
    for d, matrix in enumerate(written_out(graph)):
        for gone in ((), tuple(range(0, len(matrix), 3))):
            left = np.setdiff1d(np.arange(len(matrix)), gone)
            bound = bounds(graph.closed_form, d, gone)
            assert (bound[left] >= matrix[left][:, left].sum(1)).all()
            assert (bound <= max(len(left) - 1, 0)).all()


@pytest.mark.parametrize("n", [2, 11, 301, 8001])
def test_no_binomial_tail_exceeds_its_bound(n: int) -> None:
    for p in (1e-9, 1e-4, 0.01, 0.07, 0.5, 0.93, 1.0):
        graph = LowRank(torch.zeros(n).long(), torch.tensor([0, n]), constant=torch.tensor([p]))
        (bound,) = set(bounds(graph.closed_form(torch.tensor([0]))).tolist())
        assert stats.binom.sf(bound, n - 1, p) <= cpu.FAILURE / n
        # and it is no idle bound: within 10 standard deviations and a bit
        assert bound <= (n - 1) * p + 10 * ((n - 1) * p * (1 - p)) ** 0.5 + 40


def test_the_bound_spares_most_rows() -> None:
    # a few words matter far more than the others, as in real texts
    one = document(range(6000), [7], np.random.default_rng(0).pareto(3.0, 6000).tolist())
    graph = SocialEdges(PATTERNS["three"]).sampled(one)
    degree = torch.bincount(graph.edges()[0][0], minlength=6000)
    assert (bounds(graph.closed_form) >= int(degree.max())).mean() < 0.2


def test_without_a_folder_for_its_cache_numba_compiles_all_the_same(tmp_path: Path) -> None:
    code = """
import torch, numba
from numba.core import caching
caching.CacheImpl._locator_classes = []  # as where no folder can be written
from socialgraph.edges import SocialEdges, Uniform
from socialgraph.kernels import cpu
@cpu.compiled
def add(x):
    return x + 1
print(add(1), add.stats.cache_path)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, cwd=tmp_path)
    assert done.stdout == "2 None\n", done.stderr
