"""PARADE's four ways to pool, each against a plain statement over transformers' BertModel."""

import pytest
import torch
from conftest import pair_inputs, passage_batch, shaken
from test_socialformer import circle_texts
from transformers import BertConfig, BertModel
from transformers.models.bert.modeling_bert import BertLayer

from socialgraph.nn import PARADE, Socialformer
from socialgraph.nn.bert_weights import LAYER_NAMES


def bert_layer(conv):
    """Return transformers' layer with the weights of ours."""
    config = BertConfig(hidden_size=32, num_attention_heads=4, intermediate_size=64, attn_implementation="eager")
    layer = BertLayer(config).eval()
    names = {f"{LAYER_NAMES[n.rsplit('.', 1)[0]]}.{n.rsplit('.', 1)[1]}": p for n, p in conv.named_parameters()}
    layer.load_state_dict(names)
    return layer


def transformer(readout, states):
    states = torch.cat([readout.aggregation.agg[None], states])[None]
    for conv in readout.aggregation.layers:
        found = bert_layer(conv)(states)
        states = found[0] if isinstance(found, tuple) else found
    return states[0, 0]


def attention(readout, states):
    weight = torch.softmax(readout.aggregation.gate_nn(states).squeeze(-1), 0)
    return (weight[:, None] * states).sum(0)


POOLS = {
    "max": lambda _, states: states.max(0).values,
    "mean": lambda _, states: states.mean(0),
    "attention": attention,
    "transformer": transformer,
}


@pytest.mark.parametrize("kind", [PARADE, Socialformer])
def test_berts_pooler_stands_before_the_readout(tiny_bert, kind):
    """As in both released codes: what is pooled is transformers' ``pooler_output`` of each passage."""
    folder, _ = tiny_bert
    theirs = shaken(BertModel(BertConfig.from_pretrained(folder))).eval()
    theirs.save_pretrained(folder)
    batch = passage_batch((50, 20, 16, 1))
    torch.manual_seed(4)
    model = kind.from_backbone(folder, pooler=True, readout="mean").eval()
    with torch.no_grad():
        states = torch.cat([theirs(**pair_inputs(query, text)).pooler_output for query, text, _ in circle_texts(batch)])
        document = batch.batch[batch.leader_index]
        pooled = torch.stack([states[document == number].mean(0) for number in range(4)])
        torch.testing.assert_close(model(batch), model.score(pooled)[:, 0], atol=1e-5, rtol=0)
    assert kind.from_backbone(folder).pooler is None


@pytest.mark.parametrize("readout", POOLS)
def test_parade_pools_the_states_of_its_windows(tiny_bert, readout):
    folder, bert = tiny_bert
    batch = passage_batch((50, 20, 16, 1, 0))
    torch.manual_seed(4)
    model = PARADE.from_backbone(folder, readout=readout).eval()
    if readout == "transformer":  # it begins as BERT's [CLS]
        assert torch.equal(model.readout.aggregation.agg, bert.embeddings.word_embeddings.weight[2])
    for parameter in [*model.readout.parameters(), *model.score.parameters()]:
        parameter.data += 0.1 * torch.randn_like(parameter)
    states = []
    with torch.no_grad():
        for query, text, _ in circle_texts(batch):
            states.append(bert(**pair_inputs(query, text)).last_hidden_state[0, 0])
        states, document = torch.stack(states), batch.batch[batch.leader_index]
        assert document.bincount(minlength=5).tolist() == [4, 2, 1, 1, 0]
        pooled = [POOLS[readout](model.readout, states[document == number]) for number in range(4)]
        expected = model.score(torch.stack([*pooled, torch.zeros(32)]))[:, 0]
        torch.testing.assert_close(model(batch), expected, atol=1e-5, rtol=0)
