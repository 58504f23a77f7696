"""ColBERT: each token of the query finds its best match in the document."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import cumsum

from socialgraph.nn.bi_encoder import PassageVectors, QueryVectors
from socialgraph.nn.late_interaction import LateInteraction, max_similarity


class ColBERT(LateInteraction):
    r"""Scores a document by the best match of each query token in the whole document.

    .. math:: s(q, d) = \sum_i \max_{j \in d} \langle q_i, d_j \rangle

    Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
    BERT", SIGIR 2020; see :class:`~socialgraph.nn.LateInteraction` for what is taken from it. Different here: a
    document is all passages of the graph, each read apart, where the original reads one passage and cuts the rest. One
    window of as many tokens as the BERT reads cuts as the original does.

    The arguments are those of :class:`~socialgraph.nn.LateInteraction`.
    """

    def match(self, query: QueryVectors, passages: PassageVectors, relevance: Tensor | None = None) -> Tensor:
        """Return the score of each document, ``[B]``, from vectors alone; without a passage it is 0."""
        first, end = passages.document_ptr[:-1], passages.document_ptr[1:]
        rows = cumsum(passages.size)
        start = F.pad(passages.start, (0, 1))[first]  # the pad is for empty documents at the end
        document = torch.arange(first.numel(), device=first.device)
        return max_similarity(query.token, passages.token, start, rows[end] - rows[first], document)
