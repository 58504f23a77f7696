"""What a checkpoint knows is what a model starts from: cross-encoders against transformers' own logits."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from conftest import document_batch, pair_inputs, passage_batch, shaken, write_tokenizer
from lab.reader.publish import save_as_bert
from safetensors.torch import load_file, save_file
from test_colbert import passage_texts
from torch import Tensor
from transformers import BertConfig, BertForSequenceClassification

from socialgraph.edges import DynamicCentrality
from socialgraph.errors import CheckpointError
from socialgraph.nn import PARADE, ColBERT, KeyB, MaxP, Socialformer, SparseTransformer, VanillaBERT


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


@pytest.mark.parametrize("kind", [MaxP, PARADE, Socialformer])
def test_several_passages(tiny_bert, kind):
    """Of MaxP the highest logit counts; of PARADE and Socialformer, which pool before they score, the mean."""
    theirs = cross_encoder(tiny_bert)
    batch = passage_batch(lengths=(70, 33, 40))
    options = {} if kind is MaxP else {"readout": "mean"}
    model = kind.from_backbone(tiny_bert[0], **options).eval()
    found = [logits(theirs, graph) for graph in batch.to_data_list()]
    expected = torch.stack([(one.max() if kind is MaxP else one.mean()) for one in found])
    with torch.no_grad():
        torch.testing.assert_close(model(batch), expected, atol=1e-5, rtol=0)


def test_of_two_labels_the_score_is_the_log_odds_of_the_second(tiny_bert):
    theirs = cross_encoder(tiny_bert, labels=2)
    batch = passage_batch(lengths=(16, 9))
    expected = torch.cat([logits(theirs, graph) for graph in batch.to_data_list()]).softmax(-1)
    with torch.no_grad():
        found = MaxP.from_backbone(tiny_bert[0]).eval()(batch)
    torch.testing.assert_close(found, torch.logit(expected[:, 1]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [MaxP, PARADE, Socialformer, SparseTransformer, KeyB])
def test_a_saved_model_has_the_pooler(tiny_bert, tmp_path, kind):
    theirs = cross_encoder(tiny_bert)
    model = kind.from_backbone(tiny_bert[0])
    assert torch.equal(model.pooler.weight, theirs.bert.pooler.dense.weight)
    assert torch.equal(model.score.bias, theirs.classifier.bias)
    model.save_pretrained(tmp_path / "saved")
    again = kind.from_pretrained(tmp_path / "saved")
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())


def test_vectors_are_made_without_the_pooler(tiny_bert):
    cross_encoder(tiny_bert)
    assert ColBERT.from_backbone(tiny_bert[0]).pooler is None


def test_cross_encoders_that_do_not_fit_are_refused_in_one_line(tiny_bert):
    folder = tiny_bert[0]
    cross_encoder(tiny_bert, labels=3)
    with pytest.raises(CheckpointError, match=r"a classifier of 3 labels; a ranker has one, or two \(irrelevant"):
        MaxP.from_backbone(folder)
    ColBERT.from_backbone(folder)  # takes the BERT alone
    cross_encoder(tiny_bert)
    weights = load_file(f"{folder}/model.safetensors")
    for missing in ("classifier.bias", "bert.pooler.dense.weight"):
        some = {key: value for key, value in weights.items() if key != missing}
        save_file(some, f"{folder}/model.safetensors", metadata={"format": "pt"})
        with pytest.raises(CheckpointError, match=f"1 weights are missing, the first is '{missing}'"):
            MaxP.from_backbone(folder)
    for key, value, message in (
        ("classifier.weight", torch.zeros(1, 16), r"classifier.weight has the shape \(1, 16\)"),
        ("bert.pooler.dense.bias", torch.full((32,), torch.inf), "holds a number that is not finite"),
    ):
        save_file({**weights, key: value}, f"{folder}/model.safetensors", metadata={"format": "pt"})
        with pytest.raises(CheckpointError, match=message):
            MaxP.from_backbone(folder)


def test_a_tokenizer_with_more_words_than_the_bert_is_refused(tiny_bert):
    folder = Path(tiny_bert[0])
    words = [*(folder / "vocab.txt").read_text().split("\n"), "w195", "w196"]
    for old in folder.glob("*token*"):
        old.unlink()
    write_tokenizer(folder, words)
    for make in (MaxP.from_backbone, DynamicCentrality):
        with pytest.raises(CheckpointError, match="the tokenizer has 202 words, the BERT knows 200 of them"):
            make(str(folder))


def test_a_bert_with_one_kind_of_segment_is_refused_where_two_are_needed(tiny_bert, tmp_path):
    folder = Path(shutil.copytree(tiny_bert[0], tmp_path / "one"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "type_vocab_size": 1}))
    weights = load_file(folder / "model.safetensors")
    name = "embeddings.token_type_embeddings.weight"
    weights[name] = weights[name][:1].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for make in (MaxP.from_backbone, Socialformer.from_backbone, DynamicCentrality):
        with pytest.raises(CheckpointError, match="'type_vocab_size' is 1, so it cannot tell query and document apart"):
            make(str(folder))
    assert ColBERT.from_backbone(str(folder))(document_batch()).isfinite().all()


@pytest.mark.parametrize("crossed", [False, True])
def test_what_is_copied_and_saved_is_the_same_checkpoint(tiny_bert, tmp_path, crossed):
    folder = Path(tiny_bert[0])
    if crossed:
        cross_encoder(tiny_bert)
    else:
        save_file({"weight": torch.rand(1, 32), "bias": torch.rand(1)}, folder / "score.safetensors")
    save_as_bert(MaxP.from_backbone(str(folder)), tmp_path / "again")
    for name in ["model.safetensors", "tokenizer.json", *([] if crossed else ["score.safetensors"])]:
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes(), name
    one, two = (json.loads((place / "config.json").read_text()) for place in (folder, tmp_path / "again"))
    assert one == two


def test_a_trained_model_becomes_a_backbone(tiny_bert, tmp_path):
    """Repeated positions, too; a model's own weights stay behind."""
    model = shaken(Socialformer.from_backbone(tiny_bert[0], max_positions=150, readout="attention"))
    save_as_bert(model, tmp_path / "again")
    again = Socialformer.from_backbone(str(tmp_path / "again"), readout="attention")
    same = {name for name, value in model.state_dict().items() if torch.equal(value, again.state_dict()[name])}
    assert same == {name for name in model.state_dict() if name.startswith(("embedding", "layers", "score"))}
    with pytest.raises(CheckpointError, match="this MaxP names no backbone"):
        save_as_bert(MaxP(hidden_size=8, num_layers=1, num_heads=1, intermediate_size=8), tmp_path / "none")
