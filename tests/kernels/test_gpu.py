"""The kernels on a GPU do what those on a CPU do: on a GPU where there is one, else in Triton's interpreter.

Tiles are made small there, so that documents are longer than they are.
"""

from __future__ import annotations

import os

import pytest
import torch
from drawing import PATTERNS, documents
from graphs import random_document
from torch_geometric.data import Batch

from socialgraph.edges import SocialEdges
from socialgraph.edges.draws import constant_key
from socialgraph.kernels import ClosedForm, cpu

gpu = pytest.importorskip("socialgraph.kernels.gpu", reason="needs Triton: pip install 'socialgraph-ir[triton]'")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("Triton's interpreter is off: TRITON_INTERPRET=1", allow_module_level=True)

SMALL = {"ROWS": 8, "COLUMNS": 16, "TILE": 64, "MEMBERS": 16}
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


def form_of(name: str, batch: Batch, sparsity: float = 0.8) -> ClosedForm:
    form = SocialEdges(PATTERNS[name], sparsity=sparsity).sampled(batch).closed_form
    assert form is not None
    return form


def there(form: ClosedForm) -> ClosedForm:
    return ClosedForm(*(x.to(DEVICE) for x in form))


def assert_same(form: ClosedForm, *options) -> None:
    for found, want in zip(gpu.greedy_circles(there(form), *options), cpu.greedy_circles(form, *options), strict=True):
        assert torch.equal(found.cpu(), want), options


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE == "cpu":
        for name, size in SMALL.items():
            monkeypatch.setattr(gpu, name, size)


def test_probabilities(small_tiles: None) -> None:
    """To the last bit, for documents without a pair, with equal weights, with one large weight, longer than a tile."""
    ptr = torch.tensor([0, 0, 1, 3, 6, 10, 150, 400])
    weights = torch.rand(3, 400, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.1
    weights[:, 6:10], weights[1, 10:150], weights[2, 200] = 0.5, 0.0, 1e12
    share = torch.tensor([0.25, 1 / 3, 0.4], dtype=torch.float64)
    want = cpu.smooth_products(ptr, weights, share)
    for found, one in zip(gpu.smooth_products(*(x.to(DEVICE) for x in (ptr, weights, share))), want, strict=True):
        assert torch.equal(found.cpu(), one)
    row, factor, constant = want
    kernel, scale = (
        1.0 / (1.0 + torch.arange(250, dtype=torch.float64)),
        torch.linspace(0.5, 2.0, 7, dtype=torch.float64),
    )
    form = ClosedForm(ptr, (kernel * 2**30).round() / 2**30, constant, scale, row, -factor, factor, ptr[1:])
    for found, one in zip(gpu.totals(there(form)), cpu.totals(form), strict=True):
        assert torch.equal(found.cpu(), one)


@pytest.mark.parametrize("node_level", [False, True], ids=["edge", "node"])
@pytest.mark.parametrize("by_weight", [False, True], ids=["first", "strongest"])
@pytest.mark.parametrize("name", ["three", "uniform", "words"])
def test_circles(name: str, node_level: bool, by_weight: bool, small_tiles: None) -> None:
    batch = Batch.from_data_list([*documents(3, 3, 40), random_document(100, 4)])
    assert_same(form_of(name, batch), 3, 20, node_level, by_weight)


@pytest.mark.parametrize("node_level", [False, True], ids=["edge", "node"])
def test_more_circles_than_a_word_has_bits(node_level: bool, small_tiles: None) -> None:
    batch = Batch.from_data_list([random_document(50, 4), random_document(0, 1), random_document(1, 1)])
    assert_same(form_of("three", batch, 0.3), 35, 2, node_level, True)


@pytest.mark.parametrize("node_level", [False, True], ids=["edge", "node"])
def test_tiles_as_they_are(node_level: bool) -> None:
    assert_same(form_of("three", Batch.from_data_list([random_document(1100, 4)])), 2, 128, node_level, True)


@pytest.mark.parametrize("name", ["three", "steep", "uniform"])
def test_edges(name: str, small_tiles: None) -> None:
    form = form_of(name, Batch.from_data_list(documents(6, 7, 70)))
    for found, want in zip(gpu.all_edges(there(form)), cpu.all_edges(form), strict=True):
        assert torch.equal(found.cpu(), want)


def test_one_hash_for_all_pairs(small_tiles: None) -> None:
    form = form_of("three", Batch.from_data_list(documents(3, 3, 70)))
    form = form._replace(key=constant_key(torch.tensor([1 << 20, 1 << 22, 0])))
    assert torch.equal(gpu.all_edges(there(form))[0].cpu(), cpu.all_edges(form)[0])
    assert_same(form, 3, 20, False, True)


def test_nothing_at_all() -> None:
    form = form_of("three", Batch.from_data_list([random_document(0, 1)]))
    assert gpu.all_edges(there(form))[0].shape == (2, 0)
    assert (gpu.greedy_circles(there(form), 2, 5, False, True)[1] == -1).all()
