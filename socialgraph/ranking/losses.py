"""What a wrong order costs: losses of scores, group and relevant.

All are called alike: ``scores [B]``, one for each document; ``group [B]``, which query each document belongs to, 0, 1,
...; ``relevant [B]``, bool. Groups may differ in size.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import scatter, softmax

from socialgraph.errors import OptionError, first_line

#: scores ``[B]``, group ``[B]``, relevant ``[B]`` -> loss
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def listwise_cross_entropy(scores: Tensor, group: Tensor, relevant: Tensor) -> Tensor:
    r"""Return the mean loss over the queries: the relevant document against all others (paper, equation 13).

    .. math:: L^q = -\log \frac{\exp(s(d^+))}{\sum_{d \in G_q} \exp(s(d))}

    Args:
        scores: one for each document, ``[B]``.
        group: which query each document belongs to, ``[B]``.
        relevant: which documents are relevant, ``[B]`` bool; where a group has several, its loss is the mean over them.
    """
    # 64-bit floats cost nothing here and keep the loss of a sure model from becoming log(0)
    chance = softmax(scores.double(), group).clamp(min=torch.finfo(torch.float64).tiny)
    loss = scatter(-chance[relevant].log(), group[relevant], reduce="mean")
    return loss.mean().to(scores.dtype)


def pairwise_hinge(scores: Tensor, group: Tensor, relevant: Tensor, margin: float = 1.0) -> Tensor:
    r"""Return the mean over the queries of the mean over the query's pairs.

    .. math:: L(d^+, d^-) = \max(0, m - s(d^+) + s(d^-))

    Joachims, "Optimizing Search Engines using Clickthrough Data", KDD 2002. Taken from it: a pair costs nothing once it
    is in order by the margin. Different here: scores of any model, and no penalty on its weights.

    Args:
        scores: one for each document, ``[B]``.
        group: which query each document belongs to, ``[B]``.
        relevant: which documents are relevant, ``[B]`` bool. A group without a relevant or without another document
            does not count; where no group has a pair, the loss is 0.
        margin: m, in units of the score.
    """
    better, worse = _pairs(group, relevant)
    return _mean_of_groups((margin - scores[better] + scores[worse]).clamp(min=0), group[better])


def ranknet(scores: Tensor, group: Tensor, relevant: Tensor) -> Tensor:
    r"""Return the mean over the queries of the mean over the query's pairs.

    .. math:: L(d^+, d^-) = \log\big(1 + \exp(-(s(d^+) - s(d^-)))\big)

    Burges, Shaked, Renshaw, Lazier, Deeds, Hamilton and Hullender, "Learning to Rank using Gradient Descent",
    ICML 2005. Taken from it: the cross-entropy of the pair's order. Different here: the order of a pair is certain, and
    equally relevant documents are not compared.

    Args:
        scores: one for each document, ``[B]``.
        group: which query each document belongs to, ``[B]``.
        relevant: which documents are relevant, ``[B]`` bool. A group without a relevant or without another document
            does not count; where no group has a pair, the loss is 0.
    """
    better, worse = _pairs(group, relevant)
    # softplus does not overflow where a pair is in the wrong order by far
    return _mean_of_groups(F.softplus(scores[worse] - scores[better]), group[better])


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


LOSSES: dict[str, Loss] = {
    "listwise": listwise_cross_entropy,
    "hinge": pairwise_hinge,
    "ranknet": ranknet,
    "binary": binary_cross_entropy,
}


def loss_resolver(query: str | Loss) -> Loss:
    """Return the loss that ``query`` names.

    Args:
        query: "listwise", "hinge", "ranknet" or "binary"; the dotted name of one of your own, such as
            "my_losses.softmax", whose module is imported, so a name that you have typed; or a function of scores, group
            and relevant, which is returned as it is. Of a class an object is made.

    Raises:
        OptionError: no such loss.
    """
    if not isinstance(query, str):
        if not callable(query) or isinstance(query, type):
            raise OptionError(f"a loss is a function of scores, group and relevant, got {query!r}")
        return query
    if query in LOSSES:
        return LOSSES[query]
    if "." not in query:
        raise OptionError(
            f"no loss is called {query!r}; there are {', '.join(LOSSES)}, and your own by their dotted names"
        )
    try:
        found = pkgutil.resolve_name(query)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(f"loss {query}: {first_line(error)}; is the module in this folder, or installed?") from error
    return loss_resolver(found() if isinstance(found, type) else found)


def _pairs(group: Tensor, relevant: Tensor) -> tuple[Tensor, Tensor]:
    """Return all pairs (relevant, other) of documents of one group: two rows of numbers of documents, each ``[P]``."""
    better, worse = ((group[:, None] == group) & relevant[:, None] & ~relevant).nonzero().unbind(1)
    return better, worse


def _mean_of_groups(loss: Tensor, group: Tensor) -> Tensor:
    """Return the mean over the groups of the mean over each group's pairs; groups without a pair do not count.

    Args:
        loss: of each pair, ``[P]``; with P = 0 the result is 0, and its gradient too.
        group: which query each pair belongs to, ``[P]``.
    """
    amount = torch.bincount(group)
    return (loss / amount[group]).sum() / amount.count_nonzero().clamp(min=1)
