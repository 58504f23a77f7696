"""Every backend against softmax(q k^T / sqrt(d)) v written out: segment by segment, and node by node along edges."""

import pytest
import torch

from socialgraph.errors import OptionError
from socialgraph.nn import BertConv, masked_attention, segment_attention
from socialgraph.nn.attention import EDGE_BACKENDS, default_backend, hub_attention
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
@pytest.mark.parametrize("sizes", [[4, 1, 7], [0, 3, 0, 0, 2, 70, 33], []])
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
    with pytest.raises(OptionError, match="backend must be one of edges, padded, varlen, got 'fast'"):
        segment_attention(*segments([2]), backend="fast")
    with pytest.raises(OptionError, match="varlen attention needs a GPU and half precision"):
        segment_attention(*segments([2]), backend="varlen")
    with pytest.raises(OptionError, match="backend must be one of edges, dense, flex, got 'padded'"):
        masked_attention(*random_edges([2]), "padded")


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


@pytest.mark.parametrize("sizes", [[4, 1, 7, 9, 2, 30, 1], [0, 3, 0, 0, 2], []])
@pytest.mark.parametrize("rows", [1, 20])
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


# --- along edges ----------------------------------------------------------------------------------

CALM = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
LENGTHS = {
    "unequal": [40, 1, 0, 67, 33, 3],
    "over a tile": [150, 100, 7],
    "empty": [0, 0],
}


def random_edges(lengths, density=0.1, seed=0):
    """Return directed edges inside documents, sorted, and the documents' bounds; some nodes hear nobody."""
    generator = torch.Generator().manual_seed(seed)
    ptr = torch.tensor([0, *lengths]).cumsum(0)
    there = torch.zeros(int(ptr[-1]), int(ptr[-1]), dtype=torch.bool)
    for start, end in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True):
        there[start:end, start:end] = torch.rand(end - start, end - start, generator=generator) < density
    there.fill_diagonal_(False)
    return there.nonzero().T.contiguous(), ptr


def states(nodes, seed=1, heads=4, channels=8):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(nodes, heads, channels, generator=generator) for _ in range(3)]


def summed_up(edge_index, query, key, value):
    """Return the sum for every node, who hears itself and those that an edge leads from."""
    rows = []
    for node in range(query.size(0)):
        heard = [node, *edge_index[0][edge_index[1] == node].tolist()]
        logits = torch.einsum("hc,nhc->nh", query[node], key[heard]) / query.size(-1) ** 0.5
        rows.append(torch.einsum("nh,nhc->hc", logits.softmax(0), value[heard]))
    return torch.stack(rows) if rows else torch.zeros_like(value)


@CALM
@pytest.mark.parametrize("backend", [*EDGE_BACKENDS, None])
@pytest.mark.parametrize("case", LENGTHS)
def test_every_backend_is_the_sum_summed_up(case, backend):
    edge_index, ptr = random_edges(LENGTHS[case])
    query, key, value = states(int(ptr[-1]))
    attend = masked_attention(edge_index, ptr, backend)
    for _ in range(2):  # what is prepared serves all layers
        heard = attend(query, key, value)
        torch.testing.assert_close(heard, summed_up(edge_index, query, key, value), atol=1e-5, rtol=1e-5)
        query, key, value = value, query, key


@pytest.mark.parametrize("case", LENGTHS)
def test_hubs_hear_their_whole_document(case):
    edge_index, ptr = random_edges(LENGTHS[case], density=1.1)  # all pairs of each document
    nodes = int(ptr[-1])
    query, key, value = states(nodes)
    hub = torch.rand(nodes, generator=torch.Generator().manual_seed(3)) < 0.2
    if nodes > 40:
        hub[40:41] = True  # the only node of its document
        assert bool(hub.any())
    expected = summed_up(edge_index, query, key, value)[hub]
    torch.testing.assert_close(hub_attention(hub, ptr)(query[hub], key, value), expected, atol=1e-5, rtol=1e-5)
    nobody = torch.zeros_like(hub)
    assert hub_attention(nobody, ptr)(query[nobody], key, value).shape == (0, 4, 8)


@CALM
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_the_default_on_a_gpu_equals_the_reference_with_gradients():
    edge_index, ptr = (x.cuda() for x in random_edges([700, 33, 128, 1, 300]))
    gradients = {}
    for backend in (None, "edges"):
        inputs = [x.cuda().requires_grad_() for x in states(int(ptr[-1]), channels=32)]
        masked_attention(edge_index, ptr, backend)(*inputs).square().sum().backward()
        gradients[backend] = [x.grad for x in inputs]
    for flex, edges in zip(gradients[None], gradients["edges"], strict=True):
        torch.testing.assert_close(flex, edges, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize(
    ("device", "width", "backend"), [("cuda", 16, "flex"), ("cuda", 8, "dense"), ("cpu", 64, "dense")]
)
def test_a_gpu_takes_flex_where_heads_are_wide_enough(device, width, backend):
    assert default_backend(torch.device(device), width) == backend
