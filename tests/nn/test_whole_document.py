"""The whole document through encoders of transformers, made on the spot, against transformers' own logits."""

import json
from pathlib import Path

import pytest
import torch
from conftest import SPECIAL, pair_inputs, passage_batch, shaken, write_tokenizer
from safetensors.torch import load_file, save_file
from torch_geometric.data import Batch
from training_task import OPTIONS as TRAINING
from training_task import task_for
from transformers import CONFIG_MAPPING, AutoModel, AutoModelForSequenceClassification

from socialgraph.data import TrainingGroups
from socialgraph.errors import CheckpointError, InputError, OptionError
from socialgraph.nn import WholeDocument
from socialgraph.partition import Whole
from socialgraph.ranking import train

SIZES = {
    "vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 256, "pad_token_id": 0, "num_labels": 1, "initializer_range": 0.2,
}  # fmt: skip
OPTIONS = {
    "modernbert": {"local_attention": 16, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
    "eurobert": {"num_key_value_heads": 2, "bos_token_id": 2, "eos_token_id": 3, "classifier_pooling": "mean"},
}


def encoder(folder: Path, kind: str = "modernbert", bare: bool = False, **options: object):
    """Save a small random encoder of a kind with a tokenizer, as a classifier or bare; return it."""
    torch.manual_seed(0)
    config = CONFIG_MAPPING[kind](**{**SIZES, **OPTIONS.get(kind, {}), **options})
    model = shaken((AutoModel if bare else AutoModelForSequenceClassification).from_config(config).eval())
    model.save_pretrained(folder)
    write_tokenizer(folder, [*SPECIAL, *(f"w{i}" for i in range(195))])
    return model


def whole_batch(lengths=(120, 0, 33, 1)) -> Batch:
    return passage_batch(lengths, Whole())


def their_logits(model, batch: Batch, length: int = 256) -> torch.Tensor:
    """Return transformers' own logits, document by document, without padding; 0 for an empty one."""
    found = []
    for graph in batch.to_data_list():
        query = graph.query_ids.tolist()
        text = graph.input_ids.tolist()[: length - len(query) - 3]
        if not text:
            found.append(torch.zeros(model.config.num_labels))
            continue
        inputs = pair_inputs(query, text)
        if getattr(model.config, "type_vocab_size", 0) < 2:
            del inputs["token_type_ids"]
        with torch.no_grad():
            found.append(model(**inputs).logits[0])
    return torch.stack(found)


@pytest.mark.parametrize("kind", ["modernbert", "eurobert", "bert", "gte", "jina_embeddings_v3", "nomic_bert"])
def test_scores_are_transformers_own_with_and_without_padding(tmp_path, kind):
    if kind not in CONFIG_MAPPING:
        pytest.skip(f"this transformers does not know {kind}")
    theirs = encoder(tmp_path, kind)
    batch = whole_batch()
    expected = their_logits(theirs, batch)[:, 0]
    model = WholeDocument.from_backbone(str(tmp_path)).eval()
    with torch.no_grad():
        padded = model(batch)
        alone = torch.cat([model(graph) for graph in batch.to_data_list()])
        backwards = model(Batch.from_data_list(batch.to_data_list()[::-1])).flip(0)
    for found in (padded, alone, backwards):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert expected.unique().numel() == 4


def test_two_labels_give_the_difference_long_documents_are_cut_and_pooling_is_chosen(tmp_path):
    theirs = encoder(tmp_path, num_labels=2, classifier_pooling="mean")
    batch = whole_batch((150, 40))
    model = WholeDocument.from_backbone(str(tmp_path), length=60, pooling="cls").eval()
    theirs.config.classifier_pooling = "cls"
    expected = their_logits(theirs, batch, length=60)
    with torch.no_grad():
        torch.testing.assert_close(model(batch), expected[:, 1] - expected[:, 0], atol=1e-5, rtol=1e-4)
    assert WholeDocument.from_backbone(str(tmp_path), length=9999).length == 256
    with pytest.raises(InputError, match="leaves no room for text in 5 tokens"):
        WholeDocument.from_backbone(str(tmp_path), length=5)(batch)


def test_a_bare_encoder_gets_a_new_head_and_a_saved_model_scores_the_same(tmp_path):
    theirs = encoder(tmp_path / "bare", bare=True)
    model = WholeDocument.from_backbone(str(tmp_path / "bare"), dropout=0.1).eval()
    assert model.encoder.config.num_labels == 1
    assert model.encoder.config.mlp_dropout == 0.1
    for name, value in theirs.state_dict().items():
        assert torch.equal(model.encoder.state_dict()[f"model.{name}"], value), name
    model.save_pretrained(tmp_path / "saved")
    again = WholeDocument.from_pretrained(tmp_path / "saved")
    with torch.no_grad():
        assert torch.equal(model(whole_batch()), again(whole_batch()))


def test_the_trainer_recomputes_layers(tmp_path):
    """What transformers' Trainer passes is handed on: each document is read again by all layers."""
    encoder(tmp_path)
    model = WholeDocument.from_backbone(str(tmp_path))
    runs = [0] * len(model.encoder.model.layers)
    for number, layer in enumerate(model.encoder.model.layers):
        layer.attn.register_forward_hook(lambda *_, number=number: runs.__setitem__(number, runs[number] + 1))
    split, builder = task_for(tmp_path, edges=False)
    builder.passages = Whole()
    options = {"gradient_checkpointing": True, "max_steps": 1}
    train(model, builder, TrainingGroups(split, size=4, negatives=3), tmp_path / "out", **TRAINING, **options)
    assert runs == [2, 2, 2]


def test_what_does_not_fit_is_refused_in_one_line(tmp_path):
    encoder(tmp_path)
    config, weights = json.loads((tmp_path / "config.json").read_text()), load_file(tmp_path / "model.safetensors")

    def refused(match: str, changed: dict | None = None, kept: dict | None = None, error=CheckpointError, **options):
        (tmp_path / "config.json").write_text(json.dumps({**config, **(changed or {})}))
        save_file(weights if kept is None else kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(error, match=match) as caught:
            WholeDocument.from_backbone(str(tmp_path), **options)
        assert "\n" not in str(caught.value)

    refused("must be one of bert, .*, this is a 'llama'", {"model_type": "llama"})
    refused("the encoder is quantised", {"quantization_config": {"quant_method": "x"}})
    refused("no readable config.json", {"classifier_pooling": "median"})
    refused("a classifier of 3 labels", {"id2label": {"0": "a", "1": "b", "2": "c"}})
    key = "model.layers.1.mlp.Wi.weight"
    refused("1 weights are missing", kept={k: v for k, v in weights.items() if k != key})
    refused("length must be at least 5, got 4", error=OptionError, length=4)
    encoder(tmp_path / "bert", "bert")
    with pytest.raises(OptionError, match="a bert has no choice of pooling"):
        WholeDocument.from_backbone(str(tmp_path / "bert"), pooling="mean")
