"""MaxP against transformers' BertModel on each window."""

import pytest
import torch
from conftest import pair_inputs, passage_batch
from test_socialformer import circle_texts

from socialgraph.nn.maxp import MaxP
from socialgraph.partition import Windows


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


def test_only_the_best_window_is_trained(tiny_bert):
    model = MaxP.from_backbone(tiny_bert[0], dropout=0.0).train()
    batch = passage_batch((64,), Windows(16, 2, 4))
    seen = []
    model.score.register_forward_pre_hook(lambda _, inputs: inputs[0].retain_grad() or seen.append(inputs[0]))
    model(batch).sum().backward()
    (states,) = seen
    trained = states.grad.abs().sum(1) > 0
    assert trained.sum() == 1
    assert trained.int().argmax() == model.score(states).argmax()
