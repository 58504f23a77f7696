"""What the models with a BERT of ours share: its layers, and its weights from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data

from socialgraph.backbone import load_bert, load_cross_encoder, special_tokens
from socialgraph.errors import OptionError, check_choice
from socialgraph.nn.attention import SEGMENT_BACKENDS
from socialgraph.nn.bert_conv import BertConv, BertEmbedding, draw_linear
from socialgraph.nn.bert_weights import bert_options, copy_bert, copy_classifier, copy_score, is_cross_encoder
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.nn.sequences import Sequences, circle_sequences


class BertRanker(HubRanker):
    """Base of the models with a BERT of ours, which reads packed sequences: a score for each document.

    A subclass implements :meth:`scores`. What it needs beside BERT it takes as arguments of its own and passes the
    rest on, so that every model is built in the same way: :meth:`from_backbone` starts from a pre-trained BERT.

    Args:
        vocab_size: word pieces.
        hidden_size: width E of a state.
        num_layers: layers.
        num_heads: attention heads.
        intermediate_size: width of the feed-forward networks.
        max_positions: longest sequence. Where it is more than the backbone has, the backbone's positions are
            repeated from the start (tiled), as Longformer begins.
        type_vocab_size: segments; 0 is the query, 1 the document.
        layer_norm_eps: epsilon of the layer norms.
        dropout: of embeddings and residual outputs. Attention has no dropout: the ragged GPU kernels have none.
        cls_token_id: id of [CLS].
        sep_token_id: id of [SEP].
        backbone: name of the BERT it started from, kept for the tokenizer.
        pooler: put BERT's pooler, tanh(W h + b), behind the last states of all leaders, before anything reads them: as
            a cross-encoder of transformers does before its classifier. It starts from the backbone's, and is drawn as
            BERT draws its own where that has none.
        attention: backend of :func:`~socialgraph.nn.segment_attention` (of a sparse transformer,
            :func:`~socialgraph.nn.masked_attention`); None chooses by device.

    Raises:
        OptionError: no such backend.
    """

    #: kinds of segments that BERT must tell apart: query and document in one sequence; 1 where each is read alone,
    #: which no cross-encoder's pooler was made for
    segments = 2
    #: names that ``attention`` may have
    attention_backends: ClassVar[Collection[str]] = SEGMENT_BACKENDS
    #: from a state to a score, of the models that have such a layer
    score: torch.nn.Linear

    def __init__(
        self,
        vocab_size: int = 30522,
        hidden_size: int = 768,
        num_layers: int = 12,
        num_heads: int = 12,
        intermediate_size: int = 3072,
        max_positions: int = 512,
        type_vocab_size: int = 2,
        layer_norm_eps: float = 1e-12,
        dropout: float = 0.1,
        cls_token_id: int = 101,
        sep_token_id: int = 102,
        backbone: str | None = None,
        pooler: bool = False,
        attention: str | None = None,
    ) -> None:
        super().__init__()
        check_choice("attention", attention, (*self.attention_backends, None))
        self.cls_token_id = cls_token_id
        self.sep_token_id = sep_token_id
        self.hidden_size = hidden_size
        self.backbone = backbone
        self.attention = attention
        self.stage = self.stages[-1]
        self.checkpointed = range(0)  # layers that are recomputed in the backward pass
        self.checkpoint_options: dict[str, Any] = {}
        self.embedding = BertEmbedding(vocab_size, max_positions, type_vocab_size, hidden_size, dropout, layer_norm_eps)
        self.layers = torch.nn.ModuleList(
            BertConv(hidden_size, num_heads, intermediate_size, dropout, layer_norm_eps) for _ in range(num_layers)
        )
        self.pooler = torch.nn.Linear(hidden_size, hidden_size) if pooler else None

    @classmethod
    def from_backbone(cls, backbone: str = "minilm", **options: Any) -> Self:
        """Return a model that starts from a pre-trained BERT.

        Args:
            backbone: "minilm" (extra ``offline``), a hub id such as "bert-base-uncased", or a folder. What it knows of
                scores is taken along: a cross-encoder such as "cross-encoder/ms-marco-MiniLM-L6-v2" brings its pooler
                and classifier, see :func:`~socialgraph.nn.bert_weights.copy_classifier`; and a folder may hold a
                linear layer over [CLS] beside its BERT, see :func:`~socialgraph.nn.bert_weights.copy_score`.
            options: arguments of the class that are not the BERT's own.

        Raises:
            CheckpointError: the backbone cannot be loaded or is not a BERT.
            OptionError: an option out of its range.
        """
        crossed = load_cross_encoder(backbone, cls.segments) if is_cross_encoder(backbone) else None
        wanted = {**cls.backbone_options(backbone), "backbone": backbone, **options}
        bert = crossed.bert if crossed else load_bert(backbone, cls.segments, pooler=bool(wanted.get("pooler")))
        model = cls(**{**bert_options(bert.config), **wanted})
        copy_bert(bert, model.embedding, cast("list[BertConv]", list(model.layers)))
        score = getattr(model, "score", None)
        if model.pooler is not None:
            model.pooler.load_state_dict(bert.pooler.dense.state_dict())
        if isinstance(score, torch.nn.Linear) and crossed and model.pooler is not None:
            copy_classifier(backbone, crossed, score)
        elif isinstance(score, torch.nn.Linear) and not crossed and model.pooler is None:
            copy_score(backbone, score)
        model.start()
        return model

    @classmethod
    def backbone_options(cls, backbone: str) -> dict[str, Any]:
        """Return the arguments of the class that the backbone's files decide: here its tokenizer."""
        cls_token_id, sep_token_id = special_tokens(backbone)
        head = {"pooler": True} if cls.segments > 1 and is_cross_encoder(backbone) else {}
        return {"cls_token_id": cls_token_id, "sep_token_id": sep_token_id, **head}

    def start(self) -> None:
        """Set weights of a subclass's own that begin as copies of BERT's; called once BERT's are there."""

    @property
    def max_positions(self) -> int:
        """Longest sequence."""
        return self.embedding.position.num_embeddings

    def states(self, sequences: Sequences) -> Tensor:
        """Return BERT's last states of all tokens, ``[T, E]``."""
        x = self.embedding(sequences.token, sequences.position, sequences.segment, sequences.positions)
        for number, layer in enumerate(self.layers):
            x = self.call(number, cast(BertConv, layer).circles, x, sequences.segments, self.attention)
        return x

    def leaders(self, sequences: Sequences) -> Tensor:
        """Return what :meth:`pooled` makes of BERT's last states of the leaders, ``[C, E]``.

        The last layer computes no other.
        """
        x = self.embedding(sequences.token, sequences.position, sequences.segment, sequences.positions)
        for number, layer in enumerate(self.layers[:-1]):
            x = self.call(number, cast(BertConv, layer).circles, x, sequences.segments, self.attention)
        last = cast(BertConv, self.layers[-1])
        return self.pooled(self.call(len(self.layers) - 1, last.leaders, x, sequences.segments, sequences.leader))

    def circle_scores(self, graph: Data) -> Tensor:
        """Return the score of each circle, read with the query, from its [CLS], ``[C]``. Needs the layer ``score``.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names.
        """
        sequences = circle_sequences(graph, self.cls_token_id, self.sep_token_id, leader="cls")
        score: Tensor = self.score(self.leaders(sequences))
        return score.squeeze(-1)

    def pooled(self, states: Tensor) -> Tensor:
        """Return last states as a cross-encoder's classifier reads them, through its pooler; else as they are."""
        return states if self.pooler is None else torch.tanh(self.pooler(states))

    def call(self, number: int, function: Callable[..., Any], *inputs: Any) -> Any:
        """Call what layer ``number`` does, and recompute it in the backward pass, if it should be."""
        if number in self.checkpointed and self.training:
            return checkpoint(function, *inputs, **self.checkpoint_options)
        return function(*inputs)

    def gradient_checkpointing_enable(
        self,
        gradient_checkpointing_kwargs: dict[str, Any] | None = None,
        every_n_layers: int = 1,
        offload: bool = False,
    ) -> None:
        """Recompute layers in the backward pass: less memory, more time. The trainer calls this.

        Args:
            gradient_checkpointing_kwargs: arguments of ``torch.utils.checkpoint.checkpoint``.
            every_n_layers: recompute only every n-th layer.
            offload: not offered.

        Raises:
            OptionError: offload is asked for.
        """
        if offload:
            raise OptionError("gradient checkpointing with offload is not offered")
        self.checkpointed = range(0, len(self.layers), every_n_layers)
        self.checkpoint_options = {"use_reentrant": False, **(gradient_checkpointing_kwargs or {})}

    def gradient_checkpointing_disable(self) -> None:
        """Keep all states again."""
        self.checkpointed = range(0)


def score_layer(hidden_size: int) -> torch.nn.Linear:
    """Return the linear layer from a state to a score, drawn as BERT draws its own."""
    return draw_linear(torch.nn.Linear(hidden_size, 1))
