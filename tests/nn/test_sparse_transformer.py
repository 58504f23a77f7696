"""Sparse transformers against transformers' Longformer and BERT, and their own promises."""

from functools import partial

import pytest
import torch
from conftest import assert_backends_agree, shaken
from torch_geometric.data import Batch
from transformers import LongformerConfig, LongformerModel

from socialgraph.data.graph import connect, document_graph, weigh
from socialgraph.edges.draws import draw_key
from socialgraph.edges.sparse import BigBirdEdges, LongformerEdges, QDSEdges, SparseEdges
from socialgraph.errors import InputError, OptionError
from socialgraph.nn.sparse_transformer import SparseTransformer

CLS, SEP = 2, 3
LENGTHS = (70, 0, 33, 1)


def joint_batch(edges: SparseEdges, lengths=LENGTHS, seed=0) -> Batch:
    """Return joint graphs of random documents with their edges and hubs."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for number, length in enumerate(lengths):
        draw = lambda n: torch.randint(5, 200, (n,), generator=generator)  # noqa: E731
        query, document = draw(2 + number), draw(length)
        ids = torch.cat([torch.tensor([CLS]), query, torch.tensor([SEP]), document, torch.tensor([SEP])])
        segment = torch.tensor([0] * (len(query) + 2) + [1] * (length + 1))
        graphs.append(document_graph(ids, query, draw_key(0, query, document), segment=segment))
    batch = Batch.from_data_list(graphs)
    connect(batch, *edges(batch))
    weigh(batch, "hub_mask", edges.hubs(batch))
    return batch


def as_longformer(model: SparseTransformer) -> LongformerModel:
    """Return transformers' Longformer of a window of 16 with the model's weights."""
    config = LongformerConfig(
        vocab_size=200, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=98, attention_window=16, type_vocab_size=2, pad_token_id=1,
    )  # fmt: skip
    longformer = LongformerModel(config, add_pooling_layer=False).eval()
    ours, theirs = model.embedding, longformer.embeddings
    theirs.word_embeddings.load_state_dict(ours.word.state_dict())
    theirs.token_type_embeddings.load_state_dict(ours.segment.state_dict())
    theirs.LayerNorm.load_state_dict(ours.norm.state_dict())
    theirs.LayerNorm.eps = ours.norm.eps
    theirs.position_embeddings.weight.data[2:] = ours.position.weight.data  # rows 0 and 1 are for padding
    for number, (mine, layer) in enumerate(zip(model.layers, longformer.encoder.layer, strict=True)):
        attention = layer.attention.self
        pairs = {
            attention.query: mine.query, attention.key: mine.key, attention.value: mine.value,
            layer.attention.output.dense: mine.attention_output,
            layer.attention.output.LayerNorm: mine.attention_norm,
            layer.intermediate.dense: mine.intermediate, layer.output.dense: mine.output,
            layer.output.LayerNorm: mine.output_norm,
        }  # fmt: skip
        if model.own_global:
            heads = model.global_heads[number]
            pairs |= {
                attention.query_global: heads.query, attention.key_global: heads.key,
                attention.value_global: heads.value,
            }  # fmt: skip
        for target, source in pairs.items():
            target.load_state_dict(source.state_dict())
            if hasattr(target, "eps"):
                target.eps = source.eps
    return longformer


@pytest.mark.parametrize("case", ["window", "hubs with copies", "hubs with heads of their own", "sentences too"])
def test_a_sliding_window_equals_transformers_longformer(tiny_bert, case):
    folder, _ = tiny_bert
    hubs = case != "window"
    model = SparseTransformer.from_backbone(folder, own_global=hubs)
    if hubs:
        for heads, layer in zip(model.global_heads, model.layers, strict=True):
            assert torch.equal(heads.query.weight, layer.query.weight)
            assert torch.equal(heads.value.bias, layer.value.bias)
    if case != "hubs with copies":
        shaken(model, by=0.05)
    model.eval()
    edges = LongformerEdges(window=16, query=hubs)
    if case == "sentences too":
        edges = QDSEdges(window=16, backbone=folder)
        edges.rules[-1].marks = torch.arange(10, 30)  # every word piece of these ends a sentence
    batch = joint_batch(edges)
    longformer = as_longformer(model)
    states = []
    with torch.no_grad():
        for graph in batch.to_data_list():
            hears_all = (graph.segment == 0).long() if hubs else torch.zeros_like(graph.segment)
            if case == "sentences too":
                ends = (graph.input_ids >= 10) & (graph.input_ids < 30) & (graph.segment == 1)
                begins = (ends | (graph.segment == 0)).roll(1) & (graph.segment == 1) & ~ends
                begins[-1] = False  # the last [SEP]
                assert int(begins.sum()) >= min(len(begins) // 20, 2)
                hears_all |= begins.long()
            hidden = longformer(
                graph.input_ids[None], token_type_ids=graph.segment[None], global_attention_mask=hears_all[None],
                attention_mask=torch.ones_like(graph.input_ids)[None],
            )  # fmt: skip
            states.append(hidden.last_hidden_state[0, 0])
        torch.testing.assert_close(model.documents(batch), torch.stack(states), atol=2e-5, rtol=1e-5)
        torch.testing.assert_close(model(batch), model.score(torch.stack(states))[:, 0], atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("own_global", [False, True])
def test_dense_equals_edges_with_gradients(tiny_bert, own_global):
    make = partial(SparseTransformer.from_backbone, tiny_bert[0], own_global=own_global)
    gradients = assert_backends_agree(make, joint_batch(BigBirdEdges(block=4, random=2)), "dense", "edges")
    assert len(gradients) == len(list(make().parameters()))  # all weights learn


def test_bad_options_are_refused(tiny_bert):
    folder, _ = tiny_bert
    batch = joint_batch(LongformerEdges(16))
    with pytest.raises(OptionError, match="attention must be one of edges, dense, flex, None, got 'padded'"):
        SparseTransformer.from_backbone(folder, attention="padded")
    with pytest.raises(InputError, match="this BERT reads 96"):
        SparseTransformer.from_backbone(folder)(joint_batch(LongformerEdges(16), lengths=(200, 20)))
    del batch["hub_mask"]
    with pytest.raises(InputError, match="hub_mask"):
        SparseTransformer.from_backbone(folder, own_global=True)(batch)
    assert SparseTransformer.from_backbone(folder)(batch).shape == (4,)
