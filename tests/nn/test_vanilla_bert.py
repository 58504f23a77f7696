"""Vanilla BERT against transformers' BertModel on the text that is left."""

import pytest
import torch
from conftest import document_batch

from socialgraph.data.circles import compose
from socialgraph.data.graph import gather
from socialgraph.errors import InputError, OptionError
from socialgraph.nn.vanilla_bert import VanillaBERT
from socialgraph.partition import Windows
from socialgraph.partition.whole import Whole

LENGTHS = (70, 0, 33, 1)


def passages(partition, lengths=LENGTHS):
    batch = document_batch(lengths)
    gather(batch, *compose(partition, None, batch.edge_index, batch.batch, batch.num_graphs))
    return batch


def cls_state(bert, query, text):
    """BERT's last state of [CLS] after [CLS] query [SEP] text [SEP], by transformers."""
    ids = [2, *query.tolist(), 3, *text.tolist(), 3]
    types = [0] * (len(query) + 2) + [1] * (len(text) + 1)
    with torch.no_grad():
        return bert(torch.tensor([ids]), token_type_ids=torch.tensor([types])).last_hidden_state[0, 0]


@pytest.mark.parametrize(("length", "partition", "cut"), [(512, Whole(), 96), (40, Whole(), 40), (40, Windows(16), 40)])
def test_reads_the_beginning(tiny_bert, length, partition, cut):
    folder, bert = tiny_bert
    model = VanillaBERT.from_backbone(folder, length=length).eval()
    model.score.bias.data.fill_(0.3)
    batch = passages(partition)
    expected = []
    for graph in batch.to_data_list():
        text = graph.input_ids[: cut - 3 - graph.query_ids.numel()]
        text = text[:16] if isinstance(partition, Windows) else text
        expected.append(model.score(cls_state(bert, graph.query_ids, text)) if len(text) else model.score.bias)
    with torch.no_grad():
        scores = model(batch)
    torch.testing.assert_close(scores, torch.cat(expected).detach(), atol=1e-5, rtol=0)
    assert scores[1].item() == pytest.approx(0.3)


def test_it_trains_under_autocast(tiny_bert):
    model = VanillaBERT.from_backbone(tiny_bert[0], length=50)
    batch = passages(Whole())
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(batch, objective=lambda scores: scores.float().square().sum())
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_no_room_is_refused(tiny_bert):
    with pytest.raises(InputError, match="a query of 5 word pieces leaves no room for text in 8 tokens"):
        VanillaBERT.from_backbone(tiny_bert[0], length=8)(passages(Whole()))
    with pytest.raises(OptionError, match="at least 5 tokens, got 4"):
        VanillaBERT.from_backbone(tiny_bert[0], length=4)
