"""The way from a BERT checkpoint to our layers, name by name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from socialgraph.backbone import READER, check_finite, locate, model_config, reader_score
from socialgraph.errors import CheckpointError, first_line
from socialgraph.nn.bert_conv import BertConv, BertEmbedding

#: the linear layer of a passage ranker, beside its BERT
SCORE = "score.safetensors"

#: a cross-encoder, as transformers and sentence-transformers save one
CROSS_ENCODER = "BertForSequenceClassification"

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
        CheckpointError: a weight is missing or left over.
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
        value.copy_(source[name])


def bert_weights(embedding: BertEmbedding, layers: Iterable[torch.nn.Module]) -> dict[str, torch.nn.Parameter]:
    """Return our weights under the names that a ``transformers.BertModel`` has for them."""
    ours = {f"{EMBEDDING_NAMES[k.split('.')[0]]}.{k.split('.')[1]}": v for k, v in embedding.named_parameters()}
    for number, layer in enumerate(layers):
        for name, value in layer.named_parameters():
            part, kind = name.rsplit(".", 1)
            ours[f"encoder.layer.{number}.{LAYER_NAMES[part]}.{kind}"] = value
    return ours


def copy_score(backbone: str, layer: torch.nn.Linear) -> None:
    """Copy the linear layer over [CLS] that a passage ranker has beside its BERT, if there is one.

    "minilm-reader" has one, and a folder may hold one.

    ``score.safetensors`` (``weight [1, E]``, ``bias [1]``) says what the [CLS] of a BERT that was trained to score
    passages means; without it a model would have to learn it again. The hub's BERTs have none.

    Raises:
        CheckpointError: the file is broken, or of another width.
    """
    file = Path(locate(backbone)) / SCORE
    if backbone != READER and not file.is_file():
        return
    try:
        layer.load_state_dict(reader_score() if backbone == READER else load_file(file))
    except Exception as error:  # SafetensorError is an Exception and no more
        raise CheckpointError(f"{file}: no layer of {layer.in_features} numbers ({first_line(error)})") from error
    check_finite(str(file), layer)


def is_cross_encoder(backbone: str) -> bool:
    """Whether a backbone's config.json says that it is a ``BertForSequenceClassification``."""
    return CROSS_ENCODER in (model_config(backbone).get("architectures") or ())


@torch.no_grad()
def copy_classifier(backbone: str, theirs: Any, score: torch.nn.Linear) -> None:
    r"""Copy the classifier of a cross-encoder, so that a passage's score is its logit.

    .. math:: s = w^\top \tanh(W h_{CLS} + b) + c

    A checkpoint with two labels, 0 for irrelevant and 1 for relevant, as monoBERT, gives the difference of its logits:
    the log odds of relevance, by which its probabilities rank too. The order of a score is all that counts here, so
    the activation that sentence-transformers puts behind the logit is left out.

    Args:
        backbone: its name.
        theirs: a ``transformers.BertForSequenceClassification``.
        score: w, c.

    Raises:
        CheckpointError: there are more than two labels.
    """
    if (labels := len(theirs.classifier.bias)) not in (1, 2):
        raise CheckpointError(
            f"{backbone}: a classifier of {labels} labels; a ranker has one, or two (irrelevant, relevant). To start "
            "from its BERT alone, save that: transformers.BertModel.from_pretrained(name).save_pretrained(folder)"
        )
    for kind in ("weight", "bias"):
        logits = getattr(theirs.classifier, kind)
        getattr(score, kind).copy_(logits if labels == 1 else logits[1:] - logits[:1])
