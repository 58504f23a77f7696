"""What a checkpoint knows is what a model starts from: cross-encoders against transformers' own logits."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from conftest import document_batch, pair_inputs, passage_batch, shaken
from lab.reader.publish import save_as_bert
from safetensors.torch import load_file, save_file
from test_late_interaction import passage_texts
from torch import Tensor
from transformers import BertConfig, BertForSequenceClassification

from socialgraph.edges import DynamicCentrality
from socialgraph.errors import CheckpointError
from socialgraph.nn import ColBERT, MaxP, Socialformer, VanillaBERT


def cross_encoder(tiny_bert, labels: int = 1) -> BertForSequenceClassification:
    """Put a random cross-encoder in the tiny BERT's place."""
    folder, bert = tiny_bert
    config = BertConfig(**bert.config.to_dict())
    config.num_labels = labels  # among the others, older versions of transformers would not see it
    torch.manual_seed(1)
    model = BertForSequenceClassification(config).eval()
    for name, parameter in model.named_parameters():
        if "pooler" in name or "classifier" in name or "bias" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    model.save_pretrained(folder)
    return model


def logits(model: BertForSequenceClassification, graph) -> Tensor:
    """Return what transformers' cross-encoder says of each passage of a document, read with the query."""
    with torch.no_grad():
        texts = [pair_inputs(graph.query_ids.tolist(), text[1:-1]) for text in passage_texts(graph)]
        return torch.stack([model(**inputs).logits[0] for inputs in texts])


@pytest.mark.parametrize("kind", [MaxP, VanillaBERT])
def test_a_cross_encoder_scores_a_passage_by_its_own_logit(tiny_bert, kind):
    theirs = cross_encoder(tiny_bert)
    batch = passage_batch(lengths=(16, 9, 1, 12))  # one window each
    model = kind.from_backbone(tiny_bert[0]).eval()
    expected = torch.cat([logits(theirs, graph)[0] for graph in batch.to_data_list()])
    with torch.no_grad():
        torch.testing.assert_close(model(batch), expected, atol=1e-5, rtol=0)
    assert expected.unique().numel() == 4


def test_of_two_labels_the_score_is_the_log_odds_of_the_second(tiny_bert):
    theirs = cross_encoder(tiny_bert, labels=2)
    batch = passage_batch(lengths=(16, 9))
    expected = torch.cat([logits(theirs, graph) for graph in batch.to_data_list()]).softmax(-1)
    with torch.no_grad():
        found = MaxP.from_backbone(tiny_bert[0]).eval()(batch)
    torch.testing.assert_close(found, torch.logit(expected[:, 1]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [MaxP, Socialformer])
def test_a_saved_model_has_the_pooler(tiny_bert, tmp_path, kind):
    theirs = cross_encoder(tiny_bert)
    model = kind.from_backbone(tiny_bert[0])
    assert torch.equal(model.pooler.weight, theirs.bert.pooler.dense.weight)
    assert torch.equal(model.score.bias, theirs.classifier.bias)
    model.save_pretrained(tmp_path / "saved")
    again = kind.from_pretrained(tmp_path / "saved")
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())


def test_cross_encoders_that_do_not_fit_are_refused_in_one_line(tiny_bert):
    folder = tiny_bert[0]
    cross_encoder(tiny_bert, labels=3)
    with pytest.raises(CheckpointError, match=r"a classifier of 3 labels; a ranker has one, or two \(irrelevant"):
        MaxP.from_backbone(folder)
    assert ColBERT.from_backbone(folder).pooler is None  # takes the BERT alone
    cross_encoder(tiny_bert)
    weights = load_file(f"{folder}/model.safetensors")
    del weights["classifier.bias"]
    save_file(weights, f"{folder}/model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"1 weights are missing, the first is 'classifier\.bias'"):
        MaxP.from_backbone(folder)


def test_a_bert_with_one_kind_of_segment_is_refused_where_two_are_needed(tiny_bert, tmp_path):
    folder = Path(shutil.copytree(tiny_bert[0], tmp_path / "one"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "type_vocab_size": 1}))
    weights = load_file(folder / "model.safetensors")
    name = "embeddings.token_type_embeddings.weight"
    weights[name] = weights[name][:1].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for make in (MaxP.from_backbone, DynamicCentrality):
        with pytest.raises(CheckpointError, match="'type_vocab_size' is 1, so it cannot tell query and document apart"):
            make(str(folder))
    assert ColBERT.from_backbone(str(folder))(document_batch()).isfinite().all()


def test_a_trained_model_becomes_a_backbone(tiny_bert, tmp_path):
    """Repeated positions, too; a model's own weights stay behind."""
    model = shaken(Socialformer.from_backbone(tiny_bert[0], max_positions=150, readout="attention"))
    save_as_bert(model, tmp_path / "again")
    again = Socialformer.from_backbone(str(tmp_path / "again"), readout="attention")
    same = {name for name, value in model.state_dict().items() if torch.equal(value, again.state_dict()[name])}
    assert same == {name for name in model.state_dict() if name.startswith(("embedding", "layers", "score"))}
    with pytest.raises(CheckpointError, match="this MaxP names no backbone"):
        save_as_bert(MaxP(hidden_size=8, num_layers=1, num_heads=1, intermediate_size=8), tmp_path / "none")
