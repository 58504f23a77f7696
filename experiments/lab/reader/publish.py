"""The reader as a backbone; and as a file that comes along, what training changed in MiniLM, of low rank."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save, save_model
from torch import Tensor

from socialgraph import low_rank
from socialgraph.backbone import load_bert, load_tokenizer
from socialgraph.data.files import atomic_write, sha256
from socialgraph.errors import CheckpointError
from socialgraph.nn import BertRanker, MaxP
from socialgraph.nn.bert_weights import SCORE, bert_weights


def publish(model: MaxP, file: Path, rank: int) -> str:
    """Write the file of ``minilm-reader`` and return its sha256, which ``socialgraph/backbone.py`` has to name.

    Args:
        model: the reader.
        file: where to.
        rank: of each linear layer's change.
    """
    after = bert_weights(model.embedding, model.layers)
    before = load_bert("minilm").state_dict()
    change = low_rank.cut(before, {name: after[name].detach() for name in before if name in after}, rank)
    score = {f"score.{name}": value.detach().clone() for name, value in model.score.state_dict().items()}
    with atomic_write(file, "wb") as written:
        written.write(save({**change, **score}))
    return sha256(file)


def save_as_bert(model: BertRanker, folder: str | Path) -> None:
    """Write the BERT of a model, with what scores its [CLS], as a backbone: the inverse of ``from_backbone``.

    What other weights the model has is left out. A model with a pooler becomes a cross-encoder of transformers with one
    label; else the linear layer goes into a file beside the BERT, see :func:`~socialgraph.nn.bert_weights.copy_score`.
    The tokenizer is that of the backbone from which the model started.

    Args:
        model: it names its backbone.
        folder: is made.

    Raises:
        CheckpointError: the model names no backbone, or that cannot be loaded.
    """
    from transformers import BertForSequenceClassification, BertModel

    if model.backbone is None:
        raise CheckpointError(f"this {type(model).__name__} names no backbone, so its tokenizer is not known")
    config = load_bert(model.backbone).config
    config.max_position_embeddings = model.max_positions
    ours = bert_weights(model.embedding, model.layers)
    weights: dict[str, Tensor] = {key: value.detach().cpu() for key, value in ours.items()}
    score = getattr(model, "score", None)
    if model.pooler is not None and isinstance(score, torch.nn.Linear):
        config.num_labels = 1
        weights = {f"bert.{key}": value for key, value in weights.items()}
        for name, part in (("bert.pooler.dense", model.pooler), ("classifier", score)):
            weights |= {f"{name}.{kind}": value.cpu() for kind, value in part.state_dict().items()}
        bert = BertForSequenceClassification(config)
    else:
        bert = BertModel(config, add_pooling_layer=False)
    bert.load_state_dict(weights)
    bert.save_pretrained(folder)
    if model.pooler is None and isinstance(score, torch.nn.Linear):
        save_model(score, Path(folder) / SCORE)
    load_tokenizer(model.backbone).save_pretrained(folder)
