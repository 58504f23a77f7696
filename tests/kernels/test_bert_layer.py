"""A BERT layer by Triton's kernels against PyTorch's in float64: on a GPU where there is one, else interpreted.

There it computes in float32, since numpy has no bfloat16.
"""

from __future__ import annotations

import importlib
import os

import pytest
import torch
from conftest import document_batch
from torch.nn import functional as F

from socialgraph.nn import PARADE, BertConv, Socialformer, segment_attention
from socialgraph.nn.bert_conv import BertEmbedding
from socialgraph.nn.segments import Segments

pytest.importorskip("triton", reason="needs Triton: pip install 'socialgraph-ir[triton]'")
attention, bert_layer, passes = (
    importlib.import_module(f"socialgraph.kernels.{name}") for name in ("attention", "bert_layer", "passes")
)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("Triton's interpreter is off: TRITON_INTERPRET=1", allow_module_level=True)

KIND = torch.bfloat16 if DEVICE == "cuda" else torch.float32
NEAR = 5e-2 if DEVICE == "cuda" else 1e-5  # relative error
#: segments of one row, of odd lengths, of a tile and one more, and empty ones
SIZES = {"odd": [1, 137, 0, 64, 65, 3], "one row each": [1, 1, 1], "one": [33], "empty ones": [0, 0, 7, 0], "none": [],
         "no rows": [0, 0]}  # fmt: skip
sizes = pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)


def assert_near(found: torch.Tensor, want: torch.Tensor, near: float = NEAR) -> None:
    assert found.shape == want.shape
    assert found.isfinite().all()
    assert (found.double().cpu() - want.cpu()).norm() <= near * (want.norm().cpu() + want.numel() ** 0.5 / 10)


def bounds(size: list[int]) -> torch.Tensor:
    return F.pad(torch.tensor(size, dtype=torch.long, device=DEVICE).cumsum(0), (1, 0))


def drawn(*shape: int, scale: float = 1.0) -> torch.Tensor:
    return (scale * torch.randn(*shape, device=DEVICE)).to(KIND)


@sizes
@pytest.mark.parametrize("tiles", [(64, 16, 4), (16, 32, 4)], ids=str)
def test_attention(size: list[int], tiles: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "FORWARD", tiles)
    monkeypatch.setattr(attention, "BACKWARD", tiles)
    torch.manual_seed(0)
    ptr, longest, heads = bounds(size), max(size, default=0), 3
    packed = drawn(sum(size), 3, heads, 16, scale=2.0)
    query, key, value = packed.unbind(1)
    out, lse = attention.attention(query, key, value, ptr, ptr, longest)
    leaves = [x.double().requires_grad_() for x in (query, key, value)]
    want = segment_attention(*leaves, ptr, "edges")
    assert_near(out, want)
    grad = drawn(*out.shape)
    grads = torch.full_like(packed, float("nan"))
    parts = grads.unbind(1)
    attention.attention_backward(grad, query, key, value, out, lse, ptr, ptr, longest, parts)
    if sum(size):
        for found, one in zip(parts, torch.autograd.grad(want, leaves, grad.double()), strict=True):
            assert_near(found, one)


def test_attention_of_large_logits() -> None:
    torch.manual_seed(1)
    ptr = bounds([70, 5])
    query, key, value = (drawn(75, 1, 16, scale=scale) for scale in (30.0, 30.0, 1.0))
    out, lse = attention.attention(query, key, value, ptr, ptr, 70)
    assert_near(out, segment_attention(query.double(), key.double(), value.double(), ptr, "edges"))
    grads = [torch.empty_like(query) for _ in range(3)]
    attention.attention_backward(drawn(75, 1, 16), query, key, value, out, lse, ptr, ptr, 70, tuple(grads))
    assert all(one.isfinite().all() for one in grads)


@pytest.mark.parametrize("rows", [0, 1, 9, 60])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_add_norm(rows: int, dropout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "PROGRAMS", 50)
    torch.manual_seed(2)
    x, added, grad = (drawn(rows, 48) for _ in range(3))
    weight, bias = torch.randn(2, 48, device=DEVICE)
    out, stats = passes.add_norm(x, added, weight, bias, 1e-5, dropout, 17)
    # what was taken out shows in a sum with nothing, whose norm does nothing
    kept = torch.ones(rows, 48, device=DEVICE)
    if dropout and rows:
        ones = torch.ones(rows, 48, device=DEVICE, dtype=KIND)
        low = passes.add_norm(torch.zeros_like(ones), ones, weight * 0 + 1, bias * 0, 1e-5, dropout, 17)[0]
        kept = (low > 0).float()
        assert rows < 60 or abs(kept.mean() - 0.6) < 0.04
        assert rows < 60 or (kept.mean(0) - 0.6).abs().max() < 0.25
        kept /= 1 - dropout
    leaves = [one.double().requires_grad_() for one in (x, added, weight, bias)]
    moved = leaves[1] * kept
    moved.retain_grad()
    want = F.layer_norm(leaves[0] + moved, (48,), leaves[2], leaves[3], 1e-5)
    assert_near(out, want)
    want.backward(grad.double())
    grad_x, grad_added, sums = passes.add_norm_backward(grad, x, added, weight, stats, dropout, 17)
    for found, one in zip((grad_x, grad_added, sums[0], sums[1]), leaves, strict=False):
        assert_near(found, one.grad)
    assert_near(sums[0], leaves[2].grad)
    assert_near(sums[1], leaves[3].grad)
    assert_near(sums[2], leaves[1].grad.sum(0))


def test_other_seeds_drop_others() -> None:
    ones, weight = torch.ones(40, 32, device=DEVICE, dtype=KIND), torch.ones(32, device=DEVICE)
    first, again, other = (
        passes.add_norm(torch.zeros_like(ones), ones, weight, 0 * weight, 1e-5, 0.5, seed)[0] for seed in (3, 3, 4)
    )
    assert torch.equal(first, again)
    assert ((first > 0) == (other > 0)).float().mean() < 0.6


@pytest.mark.parametrize(("rows", "columns"), [(0, 64), (1, 64), (21, 300), (130, 256)])
def test_gelu_backward(rows: int, columns: int) -> None:
    torch.manual_seed(3)
    x, grad = drawn(rows, columns, scale=2.0), drawn(rows, columns)
    leaf = x.double().requires_grad_()
    F.gelu(leaf).backward(grad.double())
    found = grad.clone()
    assert_near(passes.gelu_backward(found, x), leaf.grad.sum(0))
    assert_near(found, leaf.grad)


@pytest.mark.parametrize("rows", [0, 1, 50])
def test_embedding(rows: int) -> None:
    torch.manual_seed(5)
    embedding = BertEmbedding(30, 20, 2, 48).to(DEVICE).eval()
    embedding.norm.weight.data += 0.1 * torch.randn_like(embedding.norm.weight)
    ids = tuple(torch.randint(n, (rows,), device=DEVICE) for n in (30, 20, 2))
    tables = tuple(part.weight for part in (embedding.word, embedding.position, embedding.segment))
    found = passes.embed(ids, tables, embedding.norm.weight, embedding.norm.bias, 1e-12, KIND)
    assert_near(found, embedding(*ids).detach().double())
    if rows:
        ids[0][-1] = 30
        found = passes.embed(ids, tables, embedding.norm.weight, embedding.norm.bias, 1e-12, KIND)
        assert found[:-1].isfinite().all()
        assert found[-1].isnan().all()


def layers(width: int = 64, heads: int = 2) -> tuple[BertConv, BertConv]:
    torch.manual_seed(4)
    layer = BertConv(width, heads, 3 * width, dropout=0.0).to(DEVICE)
    for parameter in layer.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    exact = BertConv(width, heads, 3 * width, dropout=0.0).to(DEVICE).double()
    exact.load_state_dict(layer.state_dict())
    return layer, exact


def computed(layer: BertConv, x: torch.Tensor, ptr: torch.Tensor, rows: torch.Tensor | None, dropout: float = 0.0):
    """The layer as it is computed on a GPU in half precision."""
    parts = {name: [part.weight, part.bias] for name, part in layer.named_children() if hasattr(part, "weight")}
    attended = [weight for name in ("query", "key", "value") for weight in parts[name]]
    names = ("attention_output", "attention_norm", "intermediate", "output", "output_norm")
    others = [weight for name in names for weight in parts[name]]
    listener, heard = bert_layer.attend(x, layer.num_heads, ptr, Segments(ptr).widest, attended, rows)
    return bert_layer.transform(listener, heard, others, (1e-12, 1e-12), dropout)


@sizes
@pytest.mark.parametrize("led", [False, True], ids=["all", "leaders"])
def test_a_layer(size: list[int], led: bool) -> None:
    assert_same_layer(size, led)


@pytest.mark.skipif(DEVICE == "cpu", reason="no GPU: flash attention in long segments is not tried")
@pytest.mark.parametrize("led", [False, True], ids=["all", "leaders"])
def test_a_layer_of_long_segments(led: bool) -> None:
    assert_same_layer([700, 3, 513], led)


def assert_same_layer(size: list[int], led: bool) -> None:
    if led:
        size = [n for n in size if n]
    ptr, (layer, exact) = bounds(size), layers()
    x, rows = drawn(sum(size), 64), ptr[:-1] + torch.tensor(size, device=DEVICE, dtype=torch.long) // 2 if led else None
    leaf, leaf_64 = x.clone().requires_grad_(), x.double().requires_grad_()
    found = computed(layer, leaf, ptr, rows)
    want = exact.circles(leaf_64, ptr, "edges")
    want = want if rows is None else want[rows]
    assert_near(found, want)
    with torch.no_grad():
        assert_near(computed(layer, x, ptr, rows), want, max(NEAR, 3e-3))  # gelu by tanh
    grad = drawn(*found.shape)
    found.backward(grad)
    assert leaf.grad.shape == x.shape
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())
    if not sum(size):
        return
    want.backward(grad.double())
    assert_near(leaf.grad, leaf_64.grad)
    for (name, one), other in zip(layer.named_parameters(), exact.parameters(), strict=True):
        assert one.grad.dtype == torch.float32, name
        if name == "key.bias":  # which has none: it moves all logits of a row alike
            assert one.grad.abs().max() < 1e-3 * (1 + layer.query.bias.grad.abs().max())
        else:
            assert_near(one.grad, other.grad)


@pytest.mark.skipif(DEVICE == "cuda", reason="on a GPU models take these layers by themselves")
@pytest.mark.parametrize("kind", [Socialformer, PARADE])
@pytest.mark.parametrize("checkpointed", [False, True])
def test_models_with_these_layers(kind: type, checkpointed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(6)
    model = kind(vocab_size=200, hidden_size=32, num_layers=2, num_heads=2, intermediate_size=48, dropout=0.0,
                 cls_token_id=2, sep_token_id=3, readout="mean").train()  # fmt: skip
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    batch, found = document_batch((40, 0, 25)), []
    for half in (False, True):
        monkeypatch.setattr("socialgraph.nn.bert_conv.is_half_on_gpu", lambda x, half=half: half)
        if checkpointed:
            model.gradient_checkpointing_enable()
        model.zero_grad()
        scores = model(batch)
        scores.pow(2).sum().backward()
        found.append([scores.detach(), *(p.grad for p in model.parameters() if p.grad is not None)])
    assert len(found[0]) == len(found[1]) > 30
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-5)


def test_dropout_has_the_same_seeds_forward_and_backward() -> None:
    layer, _ = layers()
    ptr, x = bounds([5, 20]), drawn(25, 64)
    step = drawn(25, 64, scale=1e-3)

    def loss(at: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(9)
        return computed(layer, at, ptr, None, dropout=0.5).float().pow(3).sum()

    leaf = x.clone().requires_grad_()
    loss(leaf).backward()
    if DEVICE == "cpu":  # float32: differences are exact enough
        torch.testing.assert_close(
            (loss(x + step) - loss(x - step)) / 2, (leaf.grad * step).sum(), rtol=0.02, atol=1e-3
        )


def test_gelu_by_tanh_is_nearer_than_bfloat16_rounds() -> None:
    x = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    exact = F.gelu(x)
    off = (F.gelu(x, approximate="tanh") - exact).abs()
    assert off.max() < 5e-4
    rounding = (exact.bfloat16().double() - exact).abs()
    assert off.norm() < 0.1 * rounding.norm()
    assert (off.pow(2).mean() * 8) ** 0.5 < 2**-8
