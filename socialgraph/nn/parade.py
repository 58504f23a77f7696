"""PARADE: passages, read apart and pooled."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from socialgraph.data.graph import circle_document, circle_score
from socialgraph.errors import check_whole
from socialgraph.nn.bert_conv import BertConv
from socialgraph.nn.bert_ranker import BertRanker, score_layer
from socialgraph.nn.readout import Readout
from socialgraph.nn.selection import best, select
from socialgraph.nn.sequences import circle_sequences


class PARADE(BertRanker):
    """Passages read with the query, their [CLS] states pooled, one score.

    Li, Yates, MacAvaney, He and Sun, "PARADE: Passage Representation Aggregation for Document Reranking", 2020.
    Taken from it: the four ways to pool. Different here: BERT starts from the backbone as it is, not from one
    fine-tuned on MS MARCO passages; the passages are those of the graph (128 tokens without overlap in Socialformer's
    experiments, 225 tokens with a stride of 200 in PARADE's own).

    The released code puts BERT's pooler, tanh(W h + b), behind each passage's [CLS] before passages are pooled; here
    ``pooler=True`` does. Where the backbone is a cross-encoder, it is on, and the linear layer is its classifier:
    before training the score of ``readout="mean"`` is the mean of the scores that the cross-encoder gives the passages.

    It is a Socialformer without friend circles and without inter-circle interaction.

    Args:
        readout: "max", "mean", "attention", "transformer" or a module, see :class:`~socialgraph.nn.Readout`.
        passages: how many passages of each document are read, those that the graph's ``circle_score`` puts first, in
            the order of the text; None for all. PARADE's own reads 16, see :class:`~socialgraph.data.PassageSample`.
        bert: arguments of :class:`~socialgraph.nn.BertRanker`.

    Raises:
        OptionError: an option out of its range.
    """

    def __init__(self, readout: str | Module = "max", passages: int | None = None, **bert: Any) -> None:
        super().__init__(**bert)
        check_whole("passages", passages, 1, or_none=True)
        self.passages = passages
        layer: BertConv = self.layers[0]  # type: ignore[assignment]
        self.readout = Readout(readout, layer)
        self.score = score_layer(self.hidden_size)

    def start(self) -> None:
        """Begin the readout's own state as BERT's [CLS]."""
        self.readout.start(self.embedding.word.weight[self.cls_token_id])

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``; without a passage it is the linear layer's bias.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names, and ``circle_score`` where
                only some passages are read.

        Raises:
            InputError: the graph has no ``circle_score``.
        """
        if self.passages is not None:
            graph = select(graph, best(circle_score(graph), circle_document(graph), self.passages))
        sequences = circle_sequences(graph, self.cls_token_id, self.sep_token_id)
        pooled = self.readout(self.leaders(sequences), sequences.document, sequences.document_segments)
        score: Tensor = self.score(pooled)
        return score.squeeze(-1)
