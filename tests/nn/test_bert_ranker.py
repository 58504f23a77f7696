"""What all models share: positions that are repeated, stages, objectives."""

import json
from pathlib import Path

import pytest
import torch
from conftest import document_batch
from safetensors.torch import load_file, save_file

from socialgraph.errors import CheckpointError
from socialgraph.nn import PARADE, MaxP, Socialformer, SparseTransformer


def test_positions_past_the_backbones_are_repeated(tiny_bert):
    folder, bert = tiny_bert
    model = PARADE.from_backbone(folder, max_positions=250)
    source = bert.embeddings.position_embeddings.weight
    assert len(source) == 96
    for place in (0, 95, 96, 191, 192, 249):
        assert torch.equal(model.embedding.position.weight[place], source[place % 96])
    assert model(document_batch(lengths=(200,), passages=128)).isfinite().all()


def test_a_passage_rankers_layer_over_cls_is_where_a_model_starts(tiny_bert):
    folder, _ = tiny_bert
    before = Socialformer.from_backbone(folder).score.weight
    layer = torch.nn.Linear(32, 1)
    save_file({"weight": layer.weight.detach(), "bias": layer.bias.detach()}, Path(folder) / "score.safetensors")
    for kind in (Socialformer, MaxP, SparseTransformer):
        model = kind.from_backbone(folder)
        assert torch.equal(model.score.weight, layer.weight)
        assert torch.equal(model.score.bias, layer.bias)
    assert not torch.equal(before, layer.weight)
    save_file({"weight": torch.zeros(1, 16), "bias": torch.zeros(1)}, Path(folder) / "score.safetensors")
    with pytest.raises(CheckpointError, match=r"score.safetensors: no layer of 32 numbers"):
        PARADE.from_backbone(folder)


def test_a_saved_model_with_other_keys_is_refused(tiny_bert, tmp_path):
    PARADE.from_backbone(tiny_bert[0]).save_pretrained(tmp_path / "saved")
    weights = load_file(tmp_path / "saved" / "model.safetensors")
    save_file({key.replace("layers.", "intra."): value for key, value in weights.items()},
              tmp_path / "saved" / "model.safetensors")  # fmt: skip
    with pytest.raises(CheckpointError, match="not a saved PARADE"):
        PARADE.from_pretrained(tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    (tmp_path / "saved" / "config.json").write_text(json.dumps(config | {"vocab_size": 10**9}))
    with pytest.raises(CheckpointError, match=r"config.json asks for 32,000,\d\d\d,\d\d\d weights"):  # 128 GB
        PARADE.from_pretrained(tmp_path / "saved")
