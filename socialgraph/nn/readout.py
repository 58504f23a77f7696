"""Leaders' views become one state for each document."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation, AttentionalAggregation, SetTransformerAggregation
from torch_geometric.nn.resolver import aggregation_resolver

from socialgraph.errors import OptionError


class Readout(torch.nn.Module):
    """Pools the leaders of each document (paper, equation 11).

    Args:
        pool: "max" (the paper's experiments), "mean", "attention" (a learned gate), "transformer" (a set transformer),
            or any other name of PyG's aggregation resolver ("sum", "median", "softmax", ...).
        hidden_size: width of a state.
        num_heads: heads of the transformer.

    Raises:
        OptionError: no such pool.
    """

    def __init__(self, pool: str, hidden_size: int, num_heads: int = 1) -> None:
        super().__init__()
        self.pool = pool
        self.aggregation: Aggregation
        if pool == "attention":
            self.aggregation = AttentionalAggregation(torch.nn.Linear(hidden_size, 1))
        elif pool == "transformer":
            self.aggregation = SetTransformerAggregation(hidden_size, heads=num_heads)
        else:
            try:
                self.aggregation = aggregation_resolver(pool)
            except (ValueError, TypeError) as error:
                raise OptionError(f"no readout is called {pool!r}; try max, mean, attention or transformer") from error

    def forward(self, x: Tensor, document: Tensor, size: int) -> Tensor:
        """Return ``[size, E]`` from the leaders' states ``[C, E]`` and their documents ``[C]`` (sorted).

        A document without circles has the state 0.
        """
        there = torch.bincount(document, minlength=size) > 0
        number = there.cumsum(0) - 1
        # Pools see no empty sets: a softmax over nothing would not be a number.
        pooled = x.new_zeros(size, x.size(-1))
        if bool(there.any()):
            pooled[there] = self.aggregation(x, number[document], dim_size=int(there.sum())).to(pooled.dtype)
        return pooled

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pool!r})"
