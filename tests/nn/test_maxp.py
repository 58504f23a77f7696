"""MaxP and vanilla BERT against transformers' BertModel: on each window, and on the beginning."""

import pytest
import torch
from conftest import pair_inputs, passage_batch
from test_socialformer import circle_texts

from socialgraph.errors import InputError, OptionError
from socialgraph.nn.maxp import MaxP, VanillaBERT
from socialgraph.partition import Whole, Windows


def test_the_best_window_is_the_score(tiny_bert):
    folder, bert = tiny_bert
    model = MaxP.from_backbone(folder).eval()
    model.score.bias.data.fill_(-7.0)  # all scores below 0: no empty place may win
    batch = passage_batch(partition=Windows(16, 2, 4))
    document = batch.batch[batch.leader_index]
    found = [[] for _ in range(4)]
    with torch.no_grad():
        for number, (query, text, _) in enumerate(circle_texts(batch)):
            state = bert(**pair_inputs(query, text)).last_hidden_state[0, 0]
            found[int(document[number])].append(model.score(state).item())
        scores = model(batch)
    assert [len(mine) for mine in found] == [5, 0, 3, 1]
    expected = [max(mine) if mine else -7.0 for mine in found]
    assert scores.tolist() == pytest.approx(expected, abs=1e-5)


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
    with pytest.raises(OptionError, match="length must be at least 5, got 4"):
        VanillaBERT.from_backbone(tiny_bert[0], length=4)
