"""The sentence encoder against sentence-transformers' own vectors, over windows and over circles."""

import json
from pathlib import Path

import pytest
import torch
from conftest import document_batch, passage_batch
from sentence_transformers import SentenceTransformer
from test_late_interaction import CLS, SEP, passage_texts

from socialgraph.errors import CheckpointError, OptionError
from socialgraph.nn import SentenceEncoder

POOLINGS = {
    "mean": {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
    "cls": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
    "max": {"pooling_mode_max_tokens": True},
    "mean_sqrt_len_tokens": {"pooling_mode_mean_sqrt_len_tokens": True},
}


def with_pooling(folder: str, **pooling: object) -> str:
    """Make a sentence encoder of a BERT's folder, as sentence-transformers saves one."""
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(kinds)
    ]
    Path(folder, "modules.json").write_text(json.dumps(modules))
    for _, path in kinds:
        Path(folder, path).mkdir(exist_ok=True)
    Path(folder, "1_Pooling", "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **pooling}))
    return folder


def their_vectors(theirs: SentenceTransformer, texts: list[list[int]]) -> torch.Tensor:
    """Return sentence-transformers' vectors of texts that are word pieces already, padded together."""
    longest = max(map(len, texts))
    ids = torch.tensor([text + [0] * (longest - len(text)) for text in texts])
    mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in texts])
    features = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
    with torch.no_grad():
        return theirs(features)["sentence_embedding"]


def their_scores(theirs, batch, reduce):
    """Return documents' scores by sentence-transformers: its cosine of the query and each circle."""
    found = []
    for graph in batch.to_data_list():
        texts = passage_texts(graph)
        if not texts:
            found.append(-1.0)
            continue
        vectors = their_vectors(theirs, [[CLS, *graph.query_ids.tolist(), SEP], *texts])
        found.append(float(reduce(theirs.similarity(vectors[:1], vectors[1:])[0])))
    return torch.tensor(found)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("readout", ["max", "mean"])
@pytest.mark.parametrize("circles", [False, True])
def test_scores_are_those_of_sentence_transformers(tiny_bert, pooling, readout, circles):
    folder = with_pooling(tiny_bert[0], **POOLINGS[pooling])
    theirs = SentenceTransformer(folder, device="cpu")
    batch = document_batch() if circles else passage_batch()
    model = SentenceEncoder.from_backbone(folder, readout=readout).eval()
    assert model.pooling == pooling.removesuffix("_sqrt_len_tokens")
    with torch.no_grad():
        found = model(batch)
    expected = their_scores(theirs, batch, torch.max if readout == "max" else torch.mean)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
    assert found.unique().numel() == 4


def test_the_checkpoints_files_decide_the_pooling_or_are_refused_in_one_line(tiny_bert):
    folder = tiny_bert[0]
    with pytest.raises(OptionError, match="pooling must be one of mean, max, cls, got 'min'"):
        SentenceEncoder.from_backbone(folder, pooling="min")
    assert SentenceEncoder.from_backbone(folder).pooling == "mean"  # a backbone without such files
    with_pooling(folder, pooling_mode="cls", include_prompt=True)
    assert SentenceEncoder.from_backbone(folder).pooling == "cls"  # files of today name it in a word
    with_pooling(folder, pooling_mode_cls_token=True, pooling_mode_max_tokens=True)
    with pytest.raises(CheckpointError, match=r"1_Pooling/config.json: pooling must be .*, got cls \+ max"):
        SentenceEncoder.from_backbone(folder)
    Path(folder, "1_Pooling", "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"no 1_Pooling/config\.json"):
        SentenceEncoder.from_backbone(folder)
    modules = json.loads(Path(folder, "modules.json").read_text())
    modules[1]["path"] = "../elsewhere"
    Path(folder, "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match="names no folder with the Pooling"):
        SentenceEncoder.from_backbone(folder)
    modules.append({"type": "sentence_transformers.models.Dense", "path": "2_Dense"})
    Path(folder, "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match=r"names 'Dense'; read are Transformer, Pooling and Normalize"):
        SentenceEncoder.from_backbone(folder)
