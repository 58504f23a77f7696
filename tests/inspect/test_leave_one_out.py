"""A score without a circle is the score of the document that never had it."""

from __future__ import annotations

import pytest
import torch
from conftest import document_batch

from socialgraph.data import DocumentGraph
from socialgraph.errors import InputError, OptionError
from socialgraph.inspect.leave_one_out import scores_without
from socialgraph.nn import Socialformer


@pytest.mark.parametrize("batch_size", [1, 3, 100])
@pytest.mark.parametrize(("length", "circles"), [(33, 7), (1, 1)])
def test_a_socialformer_scores_the_document_without_the_circle(length, circles, batch_size):
    torch.manual_seed(0)
    model = Socialformer(
        vocab_size=200, hidden_size=32, num_layers=2, num_heads=2, intermediate_size=48, max_positions=96, dropout=0.5
    )
    graph, asked = document_batch(lengths=(length,))[0], []
    model.register_forward_pre_hook(lambda *_: asked.append(torch.is_grad_enabled()))
    score, without = scores_without(model, graph, batch_size)
    assert model.training  # as it was
    assert not any(asked)
    model.eval()
    with torch.no_grad():
        assert score == pytest.approx(model(graph).item(), abs=1e-5)
        for number in range(graph.num_circles):
            node, circle = graph.circle_index[:, graph.circle_index[1] != number]
            fields = {
                **graph.to_dict(),
                "circle_index": torch.stack([node, circle - (circle > number).long()]),
                "leader_index": torch.cat([graph.leader_index[:number], graph.leader_index[number + 1 :]]),
                "passage_mask": torch.cat([graph.passage_mask[:number], graph.passage_mask[number + 1 :]]),
            }
            assert float(without[number]) == pytest.approx(model(DocumentGraph(**fields)).item(), abs=1e-5)
    assert len(without) == graph.num_circles == circles
    assert len({round(value, 6) for value in without.tolist()}) > (circles > 1)


def test_what_cannot_be_done_is_said():
    batch = document_batch()
    with pytest.raises(InputError, match=r"take batch\[i\]"):
        scores_without(torch.nn.Identity(), batch)
    with pytest.raises(OptionError, match="batch_size"):
        scores_without(torch.nn.Identity(), batch[0], 0)
    with pytest.raises(InputError, match="no circles"):
        scores_without(torch.nn.Identity(), DocumentGraph(input_ids=torch.arange(3)))
