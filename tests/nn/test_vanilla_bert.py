"""Vanilla BERT against transformers' BertModel on the text that is left."""

import pytest
import torch
from conftest import pair_inputs, passage_batch

from socialgraph.errors import InputError, OptionError
from socialgraph.nn.vanilla_bert import VanillaBERT
from socialgraph.partition import Windows
from socialgraph.partition.windows import Whole


@pytest.mark.parametrize(("length", "partition", "cut"), [(512, Whole(), 96), (40, Whole(), 40), (40, Windows(16), 40)])
def test_reads_the_beginning(tiny_bert, length, partition, cut):
    folder, bert = tiny_bert
    model = VanillaBERT.from_backbone(folder, length=length).eval()
    model.score.bias.data.fill_(0.3)
    batch = passage_batch(partition=partition)
    expected = []
    with torch.no_grad():
        for graph in batch.to_data_list():
            query = graph.query_ids.tolist()
            text = graph.input_ids[: cut - 3 - len(query)].tolist()[: 16 if isinstance(partition, Windows) else None]
            state = bert(**pair_inputs(query, text)).last_hidden_state[0, 0]
            expected.append(model.score(state) if text else model.score.bias)
        scores = model(batch)
    torch.testing.assert_close(scores, torch.cat(expected), atol=1e-5, rtol=0)
    assert scores[1].item() == pytest.approx(0.3)


def test_no_room_is_refused(tiny_bert):
    with pytest.raises(InputError, match="a query of 5 word pieces leaves no room for text in 8 tokens"):
        VanillaBERT.from_backbone(tiny_bert[0], length=8)(passage_batch(partition=Whole()))
    with pytest.raises(OptionError, match="at least 5 tokens, got 4"):
        VanillaBERT.from_backbone(tiny_bert[0], length=4)
