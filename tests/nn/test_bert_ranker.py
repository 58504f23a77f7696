"""What all models share: positions that are repeated, stages, objectives."""

import pytest
import torch
from conftest import document_batch

from socialgraph.errors import OptionError
from socialgraph.nn import PARADE


def test_positions_past_the_backbones_are_repeated(tiny_bert):
    folder, bert = tiny_bert
    model = PARADE.from_backbone(folder, max_positions=250)
    source = bert.embeddings.position_embeddings.weight
    assert len(source) == 96
    for place in (0, 95, 96, 191, 192, 249):
        assert torch.equal(model.embedding.position.weight[place], source[place % 96])
    assert model(document_batch(lengths=(200,), passages=128)).isfinite().all()


def test_an_objective_turns_scores_into_a_loss(tiny_bert):
    model, batch = PARADE.from_backbone(tiny_bert[0]).eval(), document_batch()
    torch.testing.assert_close(model(batch, lambda scores: scores.sum() * 2), model(batch).sum() * 2)


def test_unknown_stages_are_refused(tiny_bert):
    model = PARADE.from_backbone(tiny_bert[0])
    model.enter("ranking")
    with pytest.raises(OptionError, match="PARADE has the stages ranking, got 'distillation'"):
        model.enter("distillation")
