"""A score without a circle is the score of the document that never had it."""

from __future__ import annotations

import pytest
import torch
from conftest import document_batch
from torch_geometric.data import Batch

from socialgraph.data import DocumentGraph
from socialgraph.errors import InputError, OptionError
from socialgraph.inspect.leave_one_out import scores_without
from socialgraph.nn import Socialformer


class Numbers(torch.nn.Module):
    """Scores a document by what its circles hold: the sum over memberships of (node + 1) * size of the circle."""

    def forward(self, graph: Batch) -> torch.Tensor:
        assert not self.training
        assert not torch.is_grad_enabled()
        node, circle = graph.circle_index
        size = torch.bincount(circle, minlength=graph.leader_index.numel())
        place = node - graph.ptr[graph.batch[node]]
        assert torch.equal(graph.batch[graph.leader_index][circle], graph.batch[node])  # no circle across documents
        value = (place + 1.0) * size[circle]
        return torch.zeros(graph.num_graphs).index_add_(0, graph.batch[node], value)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_each_circle_is_left_out_once(batch_size):
    graph = document_batch()[0]
    node, circle = graph.circle_index
    worth = {
        number: sum(place + 1 for place in node[circle == number].tolist()) * int((circle == number).sum())
        for number in range(graph.num_circles)
    }
    score, without = scores_without(Numbers(), graph, batch_size)
    assert score == sum(worth.values())
    assert without == {number: score - value for number, value in worth.items()}


def test_a_socialformer_scores_the_document_without_the_circle():
    torch.manual_seed(0)
    model = Socialformer(
        vocab_size=200, hidden_size=32, num_layers=2, num_heads=2, intermediate_size=48, max_positions=96, dropout=0.5
    )
    graph = document_batch()[2]
    score, without = scores_without(model, graph)
    assert model.training  # as it was
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
            assert without[number] == pytest.approx(model(DocumentGraph(**fields)).item(), abs=1e-5)
    assert len({round(value, 6) for value in without.values()}) > 1


def test_a_document_of_one_circle_is_scored_without_any():
    graph = document_batch(lengths=(1,))[0]
    assert graph.num_circles == 1
    assert scores_without(Numbers(), graph) == (1.0, {0: 0.0})


def test_what_cannot_be_done_is_said():
    batch = document_batch()
    with pytest.raises(InputError, match=r"take batch\[i\]"):
        scores_without(Numbers(), batch)
    with pytest.raises(OptionError, match="batch_size"):
        scores_without(Numbers(), batch[0], 0)
    with pytest.raises(InputError, match="no circles"):
        scores_without(Numbers(), DocumentGraph(input_ids=torch.arange(3)))
