"""Attention along edges: each backend against the sum written out node by node."""

import pytest
import torch

from socialgraph.nn.masked_attention import BACKENDS, default_backend, hub_attention, masked_attention

CALM = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
LENGTHS = {
    "unequal": [40, 1, 0, 67, 33, 3],
    "over a tile": [150, 100, 7],
    "empty": [0, 0],
    "one node": [1],
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


def written_out(edge_index, query, key, value):
    """Return the sum for every node, who hears itself and those that an edge leads from."""
    rows = []
    for node in range(query.size(0)):
        heard = [node, *edge_index[0][edge_index[1] == node].tolist()]
        logits = torch.einsum("hc,nhc->nh", query[node], key[heard]) / query.size(-1) ** 0.5
        rows.append(torch.einsum("nh,nhc->hc", logits.softmax(0), value[heard]))
    return torch.stack(rows) if rows else torch.zeros_like(value)


@CALM
@pytest.mark.parametrize("backend", [*sorted(BACKENDS), None])
@pytest.mark.parametrize("case", LENGTHS)
def test_every_backend_is_the_sum_written_out(case, backend):
    edge_index, ptr = random_edges(LENGTHS[case])
    query, key, value = states(int(ptr[-1]))
    attend = masked_attention(edge_index, ptr, backend)
    for _ in range(2):  # what is prepared serves all layers
        heard = attend(query, key, value)
        torch.testing.assert_close(heard, written_out(edge_index, query, key, value), atol=1e-5, rtol=1e-5)
        query, key, value = value, query, key


@pytest.mark.parametrize("backend", ["dense", "edges"])
def test_half_precision_stays_near(backend):
    edge_index, ptr = random_edges(LENGTHS["unequal"])
    query, key, value = (x.bfloat16() for x in states(int(ptr[-1])))
    heard = masked_attention(edge_index, ptr, backend)(query, key, value)
    assert heard.dtype == torch.bfloat16
    expected = written_out(edge_index, query.float(), key.float(), value.float())
    torch.testing.assert_close(heard.float(), expected, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("case", LENGTHS)
def test_hubs_hear_their_whole_document(case):
    edge_index, ptr = random_edges(LENGTHS[case], density=1.1)  # all pairs of each document
    nodes = int(ptr[-1])
    query, key, value = states(nodes)
    hub = torch.rand(nodes, generator=torch.Generator().manual_seed(3)) < 0.2
    if nodes > 40:
        hub[40:41] = True  # the only node of its document
        assert bool(hub.any())
    expected = written_out(edge_index, query, key, value)[hub]
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
