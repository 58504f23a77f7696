"""A loss by name or as it is."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from socialgraph.errors import OptionError
from socialgraph.ranking.training.losses.binary import binary_cross_entropy
from socialgraph.ranking.training.losses.hinge import pairwise_hinge
from socialgraph.ranking.training.losses.listwise import listwise_cross_entropy
from socialgraph.ranking.training.losses.ranknet import ranknet

#: scores ``[B]``, group ``[B]``, relevant ``[B]`` -> loss
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]

LOSSES: dict[str, Loss] = {
    "listwise": listwise_cross_entropy,
    "hinge": pairwise_hinge,
    "ranknet": ranknet,
    "binary": binary_cross_entropy,
}


def loss_resolver(query: str | Loss) -> Loss:
    """Return the loss that ``query`` names.

    Args:
        query: "listwise", "hinge", "ranknet", "binary", or a function of scores, group and relevant, which is
            returned as it is.

    Raises:
        OptionError: no such name.
    """
    if not isinstance(query, str):
        return query
    if query not in LOSSES:
        raise OptionError(f"no loss is called {query!r}; there are {', '.join(LOSSES)}")
    return LOSSES[query]
