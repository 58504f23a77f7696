"""ICLI: choose passages first, then late interaction with the chosen."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import segment
from torch_geometric.utils.sparse import index2ptr

from socialgraph.data.graph import circle_score
from socialgraph.errors import check_choice, check_whole
from socialgraph.nn.hub_ranker import Objective
from socialgraph.nn.late_interaction import LateInteraction, max_similarity, vector_layer
from socialgraph.ranks import places, ranks

SELECTS = ("dot", "bm25")


class ICLI(LateInteraction):
    r"""Ranks the passages of a document, and scores the document by late interaction with the best of them.

    .. math::
        r_p &= \langle W_2 h^{CLS}_q, W_2 h^{CLS}_p \rangle \\
        s(q, d) &= \sum_{k=0}^{K-1} w_k \, \mathrm{MaxSim}(q, p_k) \\
        L &= \frac{L_1}{2 \sigma_1^2} + \frac{L_2}{2 \sigma_2^2} + \log(1 + \sigma_1^2) + \log(1 + \sigma_2^2)

    where p_0 is the first passage, which always is chosen, and p_1, p_2, ... are the others with the highest r, best
    first. L1 is the objective of r of the first passages, L2 that of the documents' scores; both compare documents.

    Li and Gaussier, "BERT-based Dense Intra-ranking and Contextualized Late Interaction via Multi-task Learning for
    Long Document Retrieval", SIGIR 2022, as told in their "Intra-document Block Pre-ranking for BERT-based Long
    Document Information Retrieval - Abstract", 2022; late interaction is that of Khattab and Zaharia, see
    :class:`~socialgraph.nn.LateInteraction`. Taken from it: the two linear layers to 128 (here both without bias, as
    ColBERT's), the choice by [CLS] or by BM25, the weighted sum, and the joined loss. Decided here, where the text is
    silent: a weight belongs to a place in the ranking, all start at 1 / K, and a document with fewer than K passages
    leaves the last ones out; the vectors of [CLS] keep their length; choosing has no gradient; K = 4; and
    ``select="bm25"`` trains with both losses too.

    Args:
        select: "dot" ranks passages by r, "bm25" by the graph's ``circle_score``.
        passages: how many passages are chosen, K.
        late: arguments of :class:`~socialgraph.nn.LateInteraction`.

    Raises:
        OptionError: an option out of its range.
    """

    def __init__(self, select: str = "dot", passages: int = 4, **late: Any) -> None:
        super().__init__(**late)
        check_choice("select", select, SELECTS)
        check_whole("passages", passages, 1)
        self.select = select
        self.cls_vector = vector_layer(self.hidden_size, self.token_vector.out_features)
        self.place_weight = torch.nn.Parameter(torch.full((passages,), 1 / passages))
        self.sigma = torch.nn.Parameter(torch.ones(2))

    def forward(self, graph: Data, objective: Objective | None = None) -> Tensor:
        """Return the score of each document, ``[B]``, or the joined loss."""
        if objective is None:
            return self.scores(graph)
        scores, dots, document_ptr = self._read(graph)
        there = document_ptr.diff() > 0
        first = dots[document_ptr[:-1][there]]
        opening = dots.new_zeros(there.numel()).index_put((there.nonzero().flatten(),), first)
        losses = torch.stack([objective(opening), objective(scores)])
        variance = self.sigma**2
        return (losses / (2 * variance) + torch.log1p(variance)).sum()

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``; without a passage it is 0.

        Raises:
            InputError: the graph has no ``circle_score``, with ``select="bm25"``.
        """
        return self._read(graph)[0]

    def _read(self, graph: Data) -> tuple[Tensor, Tensor, Tensor]:
        """Return the documents' scores ``[B]``, the passages' r ``[C]``, and the documents' bounds among these."""
        (token, cls), passages = self.query_vectors(graph), self.passage_vectors(graph)
        document, document_ptr = passages.document, passages.document_ptr
        dots = (self.cls_vector(cls).float()[document] * self.cls_vector(passages.cls).float()).sum(-1)
        score = circle_score(graph) if self.select == "bm25" else dots.detach()
        place = ranks(score.masked_fill(places(document) == 0, torch.inf), document)
        chosen = place < self.place_weight.numel()
        start, size = passages.ptr[:-1][chosen], passages.ptr.diff()[chosen]
        late = max_similarity(token, passages.token, start, size, document[chosen])
        ptr = index2ptr(document[chosen], token.size(0))
        return segment(self.place_weight[place[chosen]] * late, ptr), dots, document_ptr
