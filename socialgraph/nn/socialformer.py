"""Socialformer: friend circles that talk inside and across."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn, Self, cast

import torch
from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data

from socialgraph.backbone import load_bert, special_tokens
from socialgraph.errors import CheckpointError, OptionError
from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.bert_weights import bert_options, copy_bert
from socialgraph.nn.embedding import BertEmbedding
from socialgraph.nn.inter_circle import InterCircle
from socialgraph.nn.readout import Readout
from socialgraph.nn.sequences import Sequences, circle_sequences

READS = ("updated", "high")


class Socialformer(
    torch.nn.Module,
    PyTorchModelHubMixin,
    library_name="socialgraph",
    license="apache-2.0",
    pipeline_tag="text-ranking",
    tags=["long-document-ranking", "graph-neural-network"],
):
    """Scores documents through their circles (Zhou, Dou, Yuan, Ma, WWW 2022, sections 3.3 and 3.4).

    L blocks, as many as the BERT has layers. In each, the tokens of every circle and passage talk with the
    query and each other (:class:`~socialgraph.nn.BertConv`), then the leaders of a document talk with each
    other and are updated (:class:`~socialgraph.nn.InterCircle`). The leaders of the last block are pooled
    and a linear layer gives the score.

    A token that belongs to two circles has two states, which never merge: only leaders carry news across.
    A document without tokens has no circle; its pooled state is 0 and its score is the linear layer's bias.

    Build it with :meth:`from_backbone`, load a trained one with ``from_pretrained(folder or hub id)`` (config.json
    and model.safetensors), save it with ``save_pretrained(folder)`` or ``push_to_hub(id)``.

    Args:
        vocab_size: word pieces; this and the next seven describe the BERT, see ``bert_options``.
        hidden_size: width of a state.
        num_layers: BERT layers, which are the blocks.
        num_heads: attention heads.
        intermediate_size: width of the feed-forward networks.
        max_positions: longest sequence of a circle with its query.
        type_vocab_size: segments.
        layer_norm_eps: epsilon of the layer norms.
        dropout: of embeddings and residual outputs. Attention has no dropout: the ragged GPU kernels have none.
        cls_token_id: id of [CLS].
        sep_token_id: id of [SEP].
        backbone: name of the BERT it started from, kept for the tokenizer.
        inter_circle: False leaves the leaders' talk out (an ablation).
        inter_heads: heads of the inter-circle transformer; as the BERT by default.
        inter_width: width of its feed-forward network; as the BERT by default.
        inter_shared: True: one inter-circle transformer and W^C for all blocks; False: one for each.
        leader: "central": the central token leads a friend circle (paper); "cls": its [CLS] does (released
            code). Passages are led by their [CLS].
        readout: see :class:`~socialgraph.nn.Readout`.
        reads: "updated": the readout pools [low, high] W^C of the last block, so that an untrained model is
            BERT on each circle; "high": it pools the high states, as the paper's equation 11 is written.
        attention: backend of :func:`~socialgraph.nn.segment_attention`; None chooses by device.

    Raises:
        OptionError: an option out of its range.
    """

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
        inter_circle: bool = True,
        inter_heads: int | None = None,
        inter_width: int | None = None,
        inter_shared: bool = False,
        leader: str = "central",
        readout: str = "max",
        reads: str = "updated",
        attention: str | None = None,
    ) -> None:
        super().__init__()
        if reads not in READS:
            raise OptionError(f"reads must be one of {', '.join(READS)}, got {reads!r}")
        if reads == "high" and not inter_circle:
            raise OptionError("reads='high' needs inter_circle=True: without it there are no high states")
        self.cls_token_id = cls_token_id
        self.sep_token_id = sep_token_id
        self.backbone = backbone
        self.inter_shared = inter_shared
        self.leader = leader
        self.reads = reads
        self.attention = attention
        self.checkpointed = range(0)  # blocks that are recomputed in the backward pass
        self.checkpoint_options: dict[str, Any] = {}
        self.embedding = BertEmbedding(vocab_size, max_positions, type_vocab_size, hidden_size, dropout, layer_norm_eps)
        self.intra = torch.nn.ModuleList(
            BertConv(hidden_size, num_heads, intermediate_size, dropout, layer_norm_eps) for _ in range(num_layers)
        )
        self.inter = torch.nn.ModuleList(
            InterCircle(
                hidden_size, inter_heads or num_heads, inter_width or intermediate_size, dropout, layer_norm_eps
            )
            for _ in range((1 if inter_shared else num_layers) if inter_circle else 0)
        )
        self.readout = Readout(readout, hidden_size, num_heads)
        self.score = torch.nn.Linear(hidden_size, 1)
        torch.nn.init.normal_(self.score.weight, std=0.02)
        torch.nn.init.zeros_(self.score.bias)

    @classmethod
    def from_backbone(cls, backbone: str = "minilm", **options: Any) -> Self:
        """Return a model whose intra-circle layers are a pre-trained BERT's.

        Args:
            backbone: "minilm" (extra ``offline``), a hub id such as "bert-base-uncased", or a folder.
            options: arguments of the class that are not the BERT's own.

        Raises:
            CheckpointError: the backbone cannot be loaded or is not a BERT.
            OptionError: an option out of its range.
        """
        bert = load_bert(backbone)
        cls_token_id, sep_token_id = special_tokens(backbone)
        model = cls(
            **{
                **bert_options(bert.config),
                "backbone": backbone,
                "cls_token_id": cls_token_id,
                "sep_token_id": sep_token_id,
                **options,
            }
        )
        copy_bert(bert, model.embedding, cast("list[BertConv]", list(model.intra)))
        return model

    def forward(self, graph: Data) -> Tensor:
        """Return the score of each document of a batch, ``[B]`` (of a single graph, ``[1]``).

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names.
        """
        score: Tensor = self.score(self.documents(graph))
        return score.squeeze(-1)

    def documents(self, graph: Data) -> Tensor:
        """Return the pooled state of each document, ``[B, E]``: the document embedding of equation 11."""
        sequences = circle_sequences(graph, self.cls_token_id, self.sep_token_id, self.leader)
        x = self.embedding(sequences.token, sequences.position, sequences.segment)
        view = x[sequences.leader]
        for number, intra in enumerate(self.intra):
            inter = self.inter[0 if self.inter_shared else number] if len(self.inter) else None
            inputs: tuple[Any, ...] = (intra, inter, x, sequences, number == len(self.intra) - 1)
            if number in self.checkpointed and self.training:
                x, view = checkpoint(self._block, *inputs, **self.checkpoint_options)
            else:
                x, view = self._block(*inputs)
        pooled: Tensor = self.readout(view, sequences.document, sequences.document_ptr.numel() - 1)
        return pooled

    def _block(
        self, intra: BertConv, inter: InterCircle | None, x: Tensor, sequences: Sequences, last: bool
    ) -> tuple[Tensor, Tensor]:
        """Return all states after one block, ``[T, E]``, and what the readout would see of the leaders, ``[C, E]``.

        After the last block only the leaders are read, so only they are computed and ``x`` stays as it was.
        """
        if last:
            low = intra.leaders(x, sequences.ptr, sequences.leader)
        else:
            x = intra.circles(x, sequences.ptr, self.attention)
            low = x[sequences.leader]
        if inter is None:
            return x, low
        updated, high = inter(low, sequences.document_ptr, self.attention)
        view = updated if self.reads == "updated" else high
        return x if last else x.index_put((sequences.leader,), updated.to(x.dtype)), view

    def gradient_checkpointing_enable(
        self,
        gradient_checkpointing_kwargs: dict[str, Any] | None = None,
        every_n_layers: int = 1,
        offload: bool = False,
    ) -> None:
        """Recompute blocks in the backward pass: less memory, more time. The trainer calls this.

        Args:
            gradient_checkpointing_kwargs: arguments of ``torch.utils.checkpoint.checkpoint``.
            every_n_layers: recompute only every n-th block.
            offload: not offered.

        Raises:
            OptionError: offload is asked for.
        """
        if offload:
            raise OptionError("gradient checkpointing with offload is not offered")
        self.checkpointed = range(0, len(self.intra), every_n_layers)
        self.checkpoint_options = {"use_reentrant": False, **(gradient_checkpointing_kwargs or {})}

    def gradient_checkpointing_disable(self) -> None:
        """Keep all states again."""
        self.checkpointed = range(0)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> Self:
        """Load a model that ``save_pretrained`` or ``push_to_hub`` wrote. Only safetensors is read.

        Raises:
            CheckpointError: the folder holds no such model.
        """
        folder = Path(pretrained_model_name_or_path)
        for name in ("config.json", "model.safetensors"):
            if folder.is_dir() and not (folder / name).is_file():
                raise CheckpointError(f"{folder}: no {name}; a saved model has config.json and model.safetensors")
        try:
            return super().from_pretrained(pretrained_model_name_or_path, **options)
        except CheckpointError:
            raise
        except Exception as error:  # the hub, safetensors and torch each have errors of their own
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise CheckpointError(f"{pretrained_model_name_or_path}: not a saved {cls.__name__} ({first})") from error

    @classmethod
    def _load_as_pickle(cls, *_: Any, **__: Any) -> NoReturn:
        raise CheckpointError("no model.safetensors there, and pickles are not loaded")
