"""MaxP: a document is as good as its best passage."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from socialgraph.data.graph import circle_document
from socialgraph.nn.bert_ranker import BertRanker, score_layer


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
