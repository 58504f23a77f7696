"""The whole document as one sequence, read by an encoder of transformers that has positions enough."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_batch

from socialgraph.backbone import READER, load_weights, model_config, special_tokens
from socialgraph.data.graph import circle_document
from socialgraph.errors import CheckpointError, OptionError, check_whole, first_line
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.nn.selection import first, text_room, truncate
from socialgraph.nn.sequences import circle_sequences

#: encoders of transformers that read ``[CLS] query [SEP] text [SEP]``, by their model_type; all but bert have rotary
#: positions
ENCODERS = ("bert", "eurobert", "gte", "jina_embeddings_v3", "modernbert", "nomic_bert")
#: what a config.json may say that is not read: other code, number types, who wrote it
_NOT_READ = ("architectures", "attn_implementation", "auto_map", "dtype", "torch_dtype", "transformers_version")


class WholeDocument(HubRanker):
    """One sequence, ``[CLS] query [SEP] document [SEP]``, through an encoder of transformers and its own head.

    The score is the logit of transformers' ``...ForSequenceClassification``: of the last state of [CLS], or of the mean
    of all, as the encoder's ``classifier_pooling`` says. A checkpoint that is such a classifier with one label brings
    its head; with two labels (irrelevant, relevant) the difference of the logits is the score; any other starts with a
    new head.

    ModernBERT first: Warner et al., "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for Fast, Memory
    Efficient, and Long Context Finetuning and Inference", 2024. What is read is the graph's first circle of each
    document: with the partition :class:`~socialgraph.partition.Whole` as much of it as the encoder has positions for.

    Args:
        encoder: the encoder's config.json.
        cls_token_id: id of [CLS].
        sep_token_id: id of [SEP].
        pooling: "cls" or "mean"; None: as the encoder's config says. Only for encoders that have a choice.
        length: tokens of a sequence at most; no more than the encoder's positions are used.
        dropout: of all the encoder's dropouts; None: as its config says.
        backbone: name of the encoder it started from, kept for the tokenizer.

    Raises:
        CheckpointError: no such encoder, or a config that it does not take.
        OptionError: length leaves no room for text, or an encoder without a choice of pooling.
    """

    def __init__(
        self,
        encoder: dict[str, Any],
        cls_token_id: int = 101,
        sep_token_id: int = 102,
        pooling: str | None = None,
        length: int = 8192,
        dropout: float | None = None,
        backbone: str | None = None,
    ) -> None:
        super().__init__()
        from transformers import AutoModelForSequenceClassification

        check_whole("length", length, 5)
        config = encoder_config(backbone or "encoder", encoder)
        if pooling is not None:
            if not hasattr(config, "classifier_pooling"):
                raise OptionError(f"a {config.model_type} has no choice of pooling, got pooling={pooling!r}")
            config.classifier_pooling = pooling
        for key in config.to_dict() if dropout is not None else ():
            if "dropout" in key:
                setattr(config, key, dropout)
        self.cls_token_id = cls_token_id
        self.sep_token_id = sep_token_id
        self.length = min(length, config.max_position_embeddings)
        self.backbone = backbone
        self.encoder = AutoModelForSequenceClassification.from_config(config, attn_implementation="sdpa").float()

    @classmethod
    def from_backbone(cls, backbone: str = "answerdotai/ModernBERT-base", **options: Any) -> Self:
        """Return a model that starts from a pre-trained encoder. Only safetensors and JSON are read.

        Args:
            backbone: a hub id, a folder, or "minilm", which reads 512 tokens.
            options: arguments of the class.

        Raises:
            CheckpointError: it cannot be loaded, or is none of :data:`ENCODERS`.
            OptionError: an option out of its range.
        """
        from transformers import AutoModelForSequenceClassification

        if backbone == READER:  # what it learned is no part of the folder that it is loaded from
            raise CheckpointError(f"{backbone}: a whole document is read by an encoder of transformers; take 'minilm'")
        values = model_config(backbone)
        known = _read_values(backbone, values)
        labels = encoder_config(backbone, known).num_labels
        is_classifier = any(str(one).endswith("ForSequenceClassification") for one in values.get("architectures") or ())
        if is_classifier and labels not in (1, 2):
            raise CheckpointError(f"{backbone}: a classifier of {labels} labels; a ranker has one, or two")
        if not is_classifier:
            known = {**known, "num_labels": 1}
            known.pop("id2label", None)
            known.pop("label2id", None)
        cls_token_id, sep_token_id = special_tokens(backbone)
        options = {"cls_token_id": cls_token_id, "sep_token_id": sep_token_id, **options}
        model = cls(known, backbone=backbone, **options)
        base = f"{model.encoder.base_model_prefix}."
        head = tuple({key.split(".")[0] + "." for key in model.encoder.state_dict()} - {base})
        may_lack = () if is_classifier else (*head, f"{base}pooler.")  # the head is new; BERT's pooler is a part of it
        loaded = load_weights(AutoModelForSequenceClassification, backbone, model.encoder.config, may_lack)
        model.encoder.load_state_dict(loaded.state_dict())
        return model

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``; without a circle it is 0.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names.

        Raises:
            InputError: a query leaves no room for text.
        """
        beginning = first(graph)
        document = circle_document(beginning)
        scores = torch.zeros(graph.query_length.numel(), device=document.device)
        if document.numel() == 0:
            return scores
        text = truncate(beginning, text_room(graph, self.length)[document])
        sequences = circle_sequences(text, self.cls_token_id, self.sep_token_id, leader="cls")
        owner = torch.repeat_interleave(sequences.ptr.diff())
        config = self.encoder.config
        ids, inside = to_dense_batch(sequences.token, owner, fill_value=config.pad_token_id or 0)
        inputs = {"input_ids": ids, "attention_mask": inside.long()}
        if getattr(config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = to_dense_batch(sequences.segment, owner)[0]
        logits = self.encoder(**inputs).logits.float()
        return scores.index_put((document,), logits[:, -1] - (logits[:, 0] if logits.size(1) == 2 else 0.0))

    def gradient_checkpointing_enable(
        self, gradient_checkpointing_kwargs: dict[str, Any] | None = None, **options: Any
    ) -> None:
        """Recompute layers in the backward pass: less memory, more time. The trainer calls this.

        Args:
            gradient_checkpointing_kwargs: arguments of ``torch.utils.checkpoint.checkpoint``.
            options: of the encoder's own method; newer transformers have ``every_n_layers`` and ``offload``.
        """
        arguments = {"use_reentrant": False, **(gradient_checkpointing_kwargs or {})}
        self.encoder.gradient_checkpointing_enable(arguments, **options)

    def gradient_checkpointing_disable(self) -> None:
        """Keep all states again."""
        self.encoder.gradient_checkpointing_disable()


def encoder_config(where: str, values: dict[str, Any]) -> Any:
    """Return the config of an encoder of transformers from what a config.json says.

    Raises:
        CheckpointError: none of :data:`ENCODERS`, or values that it does not take.
    """
    from transformers import CONFIG_MAPPING

    known = _read_values(where, values)
    try:
        return CONFIG_MAPPING[known.pop("model_type")](**known)
    except Exception as error:  # each config has checks of its own
        raise CheckpointError(f"{where}: no readable config.json ({first_line(error)})") from error


def _read_values(where: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return what is read of an encoder's config.json."""
    if values.get("model_type") not in ENCODERS:
        reason = f"the encoder must be one of {', '.join(ENCODERS)}, this is a {values.get('model_type')!r}"
        raise CheckpointError(f"{where}: {reason}")
    if values.get("quantization_config") is not None:
        raise CheckpointError(f"{where}: the encoder is quantised; use the plain weights")
    if values.get("is_decoder", False) is not False:
        raise CheckpointError(f"{where}: a decoder, where an encoder is needed")
    return {key: value for key, value in values.items() if not key.startswith("_") and key not in _NOT_READ}
