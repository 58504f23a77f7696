"""Binary cross-entropy: is this document relevant, yes or no?"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def binary_cross_entropy(scores: Tensor, group: Tensor, relevant: Tensor) -> Tensor:
    r"""Return the mean loss over the documents, each on its own.

    .. math:: L(d) = -\log \sigma(s(d)) \text{ if d is relevant, else } -\log(1 - \sigma(s(d)))

    Nogueira and Cho, "Passage Re-ranking with BERT", 2019. Taken from it: every document is a yes-or-no question.
    Different here: one score and a sigmoid, where theirs are two scores and a softmax.

    Args:
        scores: one for each document, ``[B]``.
        group: not read, as no document is compared with another; here because all losses are called alike.
        relevant: which documents are relevant, ``[B]`` bool.
    """
    return F.binary_cross_entropy_with_logits(scores, relevant.to(scores.dtype))
