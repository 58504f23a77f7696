"""The way from a BERT checkpoint to our layers, and back: every name and shape is checked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from safetensors.torch import load_model, save_model
from torch import Tensor

from socialgraph.backbone import (
    READER,
    load_bert,
    load_tokenizer,
    locate,
    model_file,
    reader_score,
    weight_files,
)
from socialgraph.errors import CheckpointError
from socialgraph.model_files import check_finite, check_shapes, header, read_json
from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.embedding import BertEmbedding

if TYPE_CHECKING:
    from socialgraph.nn.bert_ranker import BertRanker

#: the linear layer of a passage ranker, beside its BERT
SCORE = "score.safetensors"

#: a cross-encoder as transformers and sentence-transformers save one, and what stands behind its BERT
CROSS_ENCODER = "BertForSequenceClassification"
POOLER = "bert.pooler.dense"
CLASSIFIER = "classifier"

#: ours -> BERT's
EMBEDDING_NAMES = {
    "word": "embeddings.word_embeddings",
    "position": "embeddings.position_embeddings",
    "segment": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
LAYER_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}


def bert_options(config: Any) -> dict[str, Any]:
    """Return the arguments of :class:`~socialgraph.nn.BertRanker` that a BERT's config decides.

    Raises:
        CheckpointError: the BERT uses another activation than gelu.
    """
    if config.hidden_act != "gelu":
        raise CheckpointError(f"the backbone's activation must be 'gelu', this one has {config.hidden_act!r}")
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "max_positions": config.max_position_embeddings,
        "type_vocab_size": config.type_vocab_size,
        "layer_norm_eps": config.layer_norm_eps,
        "dropout": config.hidden_dropout_prob,
    }


@torch.no_grad()
def copy_bert(bert: Any, embedding: BertEmbedding, layers: Iterable[BertConv]) -> None:
    """Copy the weights of a ``transformers.BertModel`` into our embedding and layers.

    Where our embedding has more positions than the BERT, the BERT's are repeated from the start.

    Raises:
        CheckpointError: a weight is missing, has another shape, or is left over.
    """
    source = {name: value for name, value in bert.state_dict().items() if not name.startswith("pooler.")}
    source.pop("embeddings.position_ids", None)  # 0, 1, 2, ... in old checkpoints
    positions = f"{EMBEDDING_NAMES['position']}.weight"
    if positions in source and embedding.position.num_embeddings > len(source[positions]):
        again = torch.arange(embedding.position.num_embeddings) % len(source[positions])
        source[positions] = source[positions][again]
    target = bert_weights(embedding, layers)
    if source.keys() != target.keys():
        odd = sorted(source.keys() ^ target.keys())
        raise CheckpointError(f"the checkpoint and a BERT differ in {len(odd)} weights, the first is {odd[0]!r}")
    for name, value in target.items():
        if source[name].shape != value.shape:
            raise CheckpointError(f"{name} has the shape {tuple(source[name].shape)}, expected {tuple(value.shape)}")
        value.copy_(source[name])


def bert_weights(embedding: BertEmbedding, layers: Iterable[torch.nn.Module]) -> dict[str, torch.nn.Parameter]:
    """Return our weights under the names that a ``transformers.BertModel`` has for them."""
    ours = {f"{EMBEDDING_NAMES[k.split('.')[0]]}.{k.split('.')[1]}": v for k, v in embedding.named_parameters()}
    for number, layer in enumerate(layers):
        for name, value in layer.named_parameters():
            part, kind = name.rsplit(".", 1)
            ours[f"encoder.layer.{number}.{LAYER_NAMES[part]}.{kind}"] = value
    return ours


def save_as_bert(model: BertRanker, folder: str | Path) -> None:
    """Write the BERT of a model, with what scores its [CLS], as a backbone: the inverse of ``from_backbone``.

    What other weights the model has is left out. A model with a pooler becomes a cross-encoder of transformers with one
    label; else the linear layer goes into a file beside the BERT, see :func:`copy_score`. The tokenizer is that of the
    backbone from which the model started.

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
        for name, part in ((POOLER, model.pooler), (CLASSIFIER, score)):
            weights |= {f"{name}.{kind}": value.cpu() for kind, value in part.state_dict().items()}
        bert = BertForSequenceClassification(config)
    else:
        bert = BertModel(config, add_pooling_layer=False)
    bert.load_state_dict(weights)
    bert.save_pretrained(folder)
    if model.pooler is None and isinstance(score, torch.nn.Linear):
        save_model(score, Path(folder) / SCORE)
    load_tokenizer(model.backbone).save_pretrained(folder)


def copy_score(backbone: str, layer: torch.nn.Linear) -> None:
    """Copy the linear layer over [CLS] that a passage ranker has beside its BERT, if there is one.

    "minilm-reader" has one, and a folder may hold one.

    ``score.safetensors`` (``weight [1, E]``, ``bias [1]``) says what the [CLS] of a BERT that was trained to score
    passages means; without it a model would have to learn it again. The hub's BERTs have none.

    Raises:
        CheckpointError: the file is broken, or of another width.
    """
    if backbone == READER:
        layer.load_state_dict(reader_score())
        return
    file = Path(locate(backbone)) / SCORE
    if file.is_file():
        check_shapes(str(file), layer.state_dict(), header(file))
        load_model(layer, file)
        check_finite(str(file), layer)


def is_cross_encoder(backbone: str) -> bool:
    """Whether a backbone's config.json says that it is a ``BertForSequenceClassification``."""
    architectures = read_json(model_file(backbone, locate(backbone), "config.json")).get("architectures")
    return isinstance(architectures, list) and CROSS_ENCODER in architectures


@torch.no_grad()
def copy_classifier(backbone: str, pooler: torch.nn.Linear, score: torch.nn.Linear) -> None:
    r"""Copy what a cross-encoder has behind its BERT, so that a passage's score is its logit.

    .. math:: s = w^\top \tanh(W h_{CLS} + b) + c

    A checkpoint with two labels, 0 for irrelevant and 1 for relevant, as monoBERT, gives the difference of its logits:
    the log odds of relevance, by which its probabilities rank too. The order of a score is all that counts here, so
    the activation that sentence-transformers puts behind the logit is left out.

    Args:
        backbone: see :func:`is_cross_encoder`.
        pooler: W, b.
        score: w, c.

    Raises:
        CheckpointError: weights are missing, of another shape or not finite, or there are more than two labels.
    """
    wanted = {f"{part}.{kind}" for part in (POOLER, CLASSIFIER) for kind in ("weight", "bias")}
    place = {key: file for file in weight_files(backbone, locate(backbone)) for key in header(file) if key in wanted}
    missing = sorted(wanted - place.keys())
    if missing:
        raise CheckpointError(f"{backbone}: not a whole {CROSS_ENCODER}, the weight {missing[0]!r} is missing")
    shapes = {key: header(file)[key] for key, file in place.items()}
    labels = shapes[f"{CLASSIFIER}.bias"][0]
    if labels not in (1, 2):
        raise CheckpointError(
            f"{backbone}: a classifier of {labels} labels; a ranker has one, or two (irrelevant, relevant). To start "
            "from its BERT alone, save that: transformers.BertModel.from_pretrained(name).save_pretrained(folder)"
        )
    meta = {f"{POOLER}.{k}": v for k, v in pooler.state_dict().items()}
    meta |= {f"{CLASSIFIER}.{k}": v.expand(labels, *v.shape[1:]) for k, v in score.state_dict().items()}
    check_shapes(backbone, meta, shapes)
    weights: dict[str, Tensor] = {}
    for key, file in place.items():
        with safe_open(file, framework="pt") as opened:
            weights[key] = opened.get_tensor(key)
    for kind in ("weight", "bias"):
        logits = weights[f"{CLASSIFIER}.{kind}"].float()
        getattr(score, kind).copy_(logits if labels == 1 else logits[1:] - logits[:1])
        getattr(pooler, kind).copy_(weights[f"{POOLER}.{kind}"])
    for part in (pooler, score):
        check_finite(backbone, part)
