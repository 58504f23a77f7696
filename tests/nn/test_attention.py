"""Every backend against softmax(q k^T / sqrt(d)) v, segment by segment."""

import pytest
import torch

from socialgraph.errors import OptionError
from socialgraph.nn import BACKENDS, BertConv, complete_edges, segment_attention
from socialgraph.nn.segments import Segments


def segments(sizes, heads=3, width=5, **options):
    torch.manual_seed(0)
    ptr = torch.tensor([0, *sizes], device=options.get("device")).cumsum(0)
    return (*(torch.randn(int(ptr[-1]), heads, width, **options) for _ in range(3)), ptr)


def written_out(query, key, value, ptr):
    out = torch.zeros_like(value)
    for start, end in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True):
        q, k, v = (x[start:end].transpose(0, 1) for x in (query, key, value))
        out[start:end] = ((q @ k.transpose(1, 2) / query.size(-1) ** 0.5).softmax(-1) @ v).transpose(0, 1)
    return out


@pytest.mark.parametrize("backend", ["padded", "edges", None])
@pytest.mark.parametrize("sizes", [[4, 1, 7], [5, 5, 5], [0, 3, 0, 0, 2], [], [0], [1]])
def test_backends(backend, sizes):
    inputs = segments(sizes)
    torch.testing.assert_close(segment_attention(*inputs, backend), written_out(*inputs), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("trained", [False, True])
def test_half_precision_on_a_cpu(trained):
    *inputs, ptr = segments([4, 1, 0, 70, 33], width=16, dtype=torch.bfloat16)
    want = written_out(*(x.float() for x in inputs), ptr)
    found = segment_attention(*(x.requires_grad_(trained) for x in inputs), ptr, "padded")
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), want, atol=2e-2, rtol=2e-2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="varlen attention needs a GPU")
@pytest.mark.parametrize("sizes", [[4, 1, 7], [128, 3, 140]])
def test_varlen_on_a_gpu(sizes):
    inputs = segments(sizes, width=32, device="cuda", dtype=torch.bfloat16)
    torch.testing.assert_close(segment_attention(*inputs), written_out(*inputs), atol=2e-2, rtol=2e-2)


def test_unknown_or_unsupported_backends_are_refused():
    assert set(BACKENDS) == {"padded", "edges", "varlen"}
    with pytest.raises(OptionError, match="no attention backend is called 'fast'"):
        segment_attention(*segments([2]), backend="fast")
    with pytest.raises(OptionError, match="varlen attention needs a GPU and half precision"):
        segment_attention(*segments([2]), backend="varlen")


def test_complete_edges():
    edges = complete_edges(torch.tensor([0, 2, 2, 5]))
    expected = [(0, 0), (1, 0), (0, 1), (1, 1)] + [(j, i) for i in (2, 3, 4) for j in (2, 3, 4)]
    assert edges.T.tolist() == [list(edge) for edge in expected]


def test_a_conv_over_edges_hears_only_its_neighbours():
    torch.manual_seed(0)
    conv = BertConv(8, 2, 16).eval()
    x = torch.randn(4, 8)
    edges = torch.tensor([[1, 2, 0, 1, 2, 3], [0, 0, 0, 1, 2, 3]])  # 0 hears 1 and 2; nobody hears 3 but itself
    with torch.no_grad():
        before = conv(x, edges)
        x[3] += 1
        assert torch.equal(conv(x, edges)[:3], before[:3])
        x[2] += 1
        after = conv(x, edges)
    assert not torch.allclose(after[0], before[0])
    assert torch.equal(after[1], before[1])
    with pytest.raises(OptionError, match="3 heads do not divide"):
        BertConv(8, 3, 16)


@pytest.mark.parametrize("sizes", [[4, 1, 7, 9, 2, 30, 1], [0, 3, 0, 0, 2], [50], []])
@pytest.mark.parametrize("rows", [1, 6, 20])
def test_parts_of_the_rows_compute_the_same(monkeypatch, sizes, rows):
    torch.manual_seed(0)
    conv, ptr = BertConv(8, 2, 16), torch.tensor([0, *sizes]).cumsum(0)
    x = torch.randn(int(ptr[-1]), 8, requires_grad=True)
    conv.eval()
    whole = conv.circles(x, ptr)
    monkeypatch.setattr("socialgraph.nn.bert_conv.CACHE", 16 * rows)
    parts = Segments(ptr).parts(rows)
    assert [amount for amount, _ in parts] == [int(part.ptr[-1]) for _, part in parts]
    assert all(part.ptr.diff()[:-1].sum() < rows for _, part in parts), "no more than the last segment too much"
    torch.testing.assert_close(conv.circles(x, ptr), whole, atol=1e-6, rtol=1e-5)
    mine, want = (torch.autograd.grad(y.square().sum(), x)[0] for y in (conv.circles(x, ptr), whole))
    torch.testing.assert_close(mine, want, atol=1e-5, rtol=1e-5)
