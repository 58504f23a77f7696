"""MaxP and FirstP: a document is as good as its best passage, or as its first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from socialgraph.data.graph import circle_document
from socialgraph.errors import check_whole
from socialgraph.nn.bert_ranker import BertRanker, score_layer
from socialgraph.nn.selection import first, text_room, truncate


class MaxP(BertRanker):
    """Passages read apart with the query; the document's score is the highest of theirs.

    Zhuyun Dai and Jamie Callan, "Deeper Text Understanding for IR with Contextual Neural Language Modeling", SIGIR 2019
    (BERT-MaxP). Taken from it: passages' scores from their [CLS], and the maximum. Different here: documents are
    trained on, end to end through the maximum, where theirs was trained on passages, each with the label of its
    document; the passages are those of the graph (theirs: 150 words with a stride of 75).

    Args:
        bert: arguments of :class:`~socialgraph.nn.BertRanker`.
    """

    def __init__(self, **bert: Any) -> None:
        super().__init__(**bert)
        self.score = score_layer(self.hidden_size)

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``; without a passage it is the linear layer's bias.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names.
        """
        document = circle_document(graph)
        amount = torch.bincount(document, minlength=graph.query_length.numel())
        highest = scatter(self.circle_scores(graph), document, dim_size=amount.numel(), reduce="max")
        return torch.where(amount > 0, highest, self.score.bias.to(highest.dtype))


class VanillaBERT(BertRanker):
    """One passage read with the query, cut to fit; the score comes from its [CLS].

    Rodrigo Nogueira and Kyunghyun Cho, "Passage Re-ranking with BERT", 2019; for documents, where the passage is the
    first, it is the BERT-FirstP of Zhuyun Dai and Jamie Callan, "Deeper Text Understanding for IR with Contextual
    Neural Language Modeling", SIGIR 2019. Taken from them: what is read, and a score from [CLS]. Different here, as in
    all models: BERT's last state of [CLS] goes into the linear layer without BERT's pooler, unless the backbone is a
    cross-encoder, and its one number is trained by a ranking loss, not two by classification.

    What is read is the graph's first circle of each document: with the partition :class:`~socialgraph.partition.Whole`
    as much of it as fits.

    Args:
        length: tokens of ``[CLS] query [SEP] text [SEP]`` at most; no more than the BERT's positions are used.
        bert: arguments of :class:`~socialgraph.nn.BertRanker`.

    Raises:
        OptionError: length leaves no room for text.
    """

    def __init__(self, length: int = 512, **bert: Any) -> None:
        super().__init__(**bert)
        check_whole("length", length, 5)
        self.length = length
        self.score = score_layer(self.hidden_size)

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``; without a circle it is the linear layer's bias.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names.

        Raises:
            InputError: a query leaves no room for text.
        """
        beginning = first(graph)
        score = self.circle_scores(truncate(beginning, self.room(graph)[circle_document(beginning)]))
        scores = self.score.bias.to(score.dtype).expand(graph.query_length.numel())
        return scores.index_put((circle_document(beginning),), score)

    def room(self, graph: Data) -> Tensor:
        """Return how many tokens of text are read, ``[B]``."""
        return text_room(graph, min(self.length, self.max_positions))
