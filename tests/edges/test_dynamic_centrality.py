"""Dynamic centrality against its rule written out with transformers' own attention maps."""

from pathlib import Path

import pytest
import reference
import torch
from conftest import pair_inputs, write_tiny_bert
from torch_geometric.data import Batch
from transformers import BertModel

from socialgraph.data.graph import document_graph
from socialgraph.edges import DynamicCentrality
from socialgraph.errors import OptionError


def pair(length, query, seed=0):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 200, (length,), generator=generator)
    return document_graph(ids, torch.tensor(query, dtype=torch.long), seed)


def cosines(bert, graph):
    """Return the cosine of each word with the mean of the query's, not below 0."""
    words = bert.embeddings.word_embeddings.weight.detach()
    query = words[graph.query_ids].sum(0)
    return [max(0.0, float(torch.cosine_similarity(words[i], query, dim=0))) for i in graph.input_ids]


def written_out(folder, graph, top):
    """Return the weights, step by step, for one document."""
    bert = BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    cosine = cosines(bert, graph)
    room = max(0, min(top, 96 - 3 - len(graph.query_ids)))
    best = sorted(sorted(range(len(cosine)), key=lambda i: (-cosine[i], i))[:room])
    if not best:  # the query fills BERT: cosines stay
        return torch.tensor(cosine)
    with torch.no_grad():
        output = bert(**pair_inputs(graph.query_ids.tolist(), graph.input_ids[best].tolist()), output_attentions=True)
    attention = output.attentions[-1][0].mean(0)[0, len(graph.query_ids) + 2 : -1].tolist()
    factor = sum(cosine[i] for i in best) / sum(attention)
    for i, value in zip(best, attention, strict=True):
        cosine[i] = value * factor
    return torch.tensor(cosine)


@pytest.mark.parametrize("top", [512, 20])
def test_weights_follow_the_rule(tiny_bert, top):
    folder, _ = tiny_bert
    graphs = [
        pair(150, [9, 30, 31], 1),
        pair(0, [7], 2),
        pair(1, [50], 4),
        pair(95, [6], 5),
        pair(20, [], 6),
        *(pair(25, [5 + i % 90 for i in range(length)], length) for length in (92, 93, 94, 200)),  # BERT reads 96
    ]
    pattern = DynamicCentrality(folder, top=top)
    weights = pattern.weights(Batch.from_data_list(graphs))
    expected = torch.cat([written_out(folder, graph, top) for graph in graphs if graph.num_nodes])
    torch.testing.assert_close(weights, expected, atol=1e-5, rtol=1e-4)
    assert (weights >= 0).all()
    torch.testing.assert_close(pattern.weights(graphs[0]), expected[:150], atol=1e-5, rtol=1e-4)


def test_the_cheap_mode_is_the_cosines(tiny_bert):
    folder, _ = tiny_bert
    graph = pair(50, [9, 30])
    cheap = DynamicCentrality(folder, mode="cosine").weights(graph)
    full = DynamicCentrality(folder).weights(graph)
    assert cheap.tolist() == pytest.approx(cosines(tiny_bert[1], graph), abs=1e-6)
    assert not torch.allclose(cheap, full)
    torch.testing.assert_close(cheap.sum(), full.sum())  # all 50 tokens were replaced, their sum was kept
    assert (cheap == 0).any()  # negative cosines


def test_in_bfloat16_weights_are_nearly_the_same(tiny_bert):
    folder, _ = tiny_bert
    precise, fast = (DynamicCentrality(folder, bf16=bf16) for bf16 in (False, True))
    assert "bf16=True" in repr(fast)
    graph = pair(60, [9, 30])
    one, other = precise.weights(graph), fast.weights(graph)
    assert one.dtype == other.dtype == torch.float32
    assert not torch.equal(one, other)
    assert torch.allclose(one, other, rtol=0.05, atol=1e-4)


@pytest.mark.parametrize("has", [True, False])
def test_bfloat16_is_taken_where_the_hardware_has_it(tiny_bert, monkeypatch, has):
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx512_bf16": has})
    pattern = DynamicCentrality(tiny_bert[0], bf16="auto")
    assert f"bf16={has}" in repr(pattern)
    assert "bf16=False" in repr(pattern.to("meta"))  # of which nothing is known
    assert not DynamicCentrality(tiny_bert[0]).bf16  # a CPU only where it is asked for


def test_a_gpu_reads_as_bert_does(tiny_bert, monkeypatch):
    pytest.importorskip("triton", reason="needs Triton: pip install 'socialgraph-ir[triton]'")
    write_tiny_bert(Path(tiny_bert[0]), num_attention_heads=2)  # kernels take heads of 16 channels or more
    pattern = DynamicCentrality(tiny_bert[0], bf16=False)
    torch.manual_seed(2)
    ids, inside = torch.randint(5, 200, (3, 40)), torch.arange(40) < torch.tensor([40, 7, 23])[:, None]
    types = (torch.arange(40) > 5).long().expand(3, -1)
    want = pattern.bert(input_ids=ids, attention_mask=inside.long(), token_type_ids=types).last_hidden_state
    found = pattern.read_packed(ids, inside, types, torch.float32)
    assert torch.allclose(found[inside], want[inside], atol=1e-3)  # gelu is by tanh


def test_probabilities_are_those_of_the_weights_and_of_weights_that_the_graph_brings(tiny_bert):
    pattern, graph = DynamicCentrality(tiny_bert[0]), pair(25, [9, 30])
    expected = reference.f(pattern.weights(graph).tolist())
    assert pattern(graph).dense()[0].numpy() == pytest.approx(expected, abs=1e-5)
    graph["dynamic_centrality"] = torch.arange(25.0)
    assert pattern(graph).dense()[0].numpy() == pytest.approx(reference.f(list(range(25))), abs=1e-5)


def test_bad_options(tiny_bert):
    folder, _ = tiny_bert
    with pytest.raises(OptionError, match="mode must be one of attention, cosine"):
        DynamicCentrality(folder, mode="tfidf")
    with pytest.raises(OptionError, match="bf16 must be True, False, 'auto' or None, got 1"):
        DynamicCentrality(folder, bf16=1)
