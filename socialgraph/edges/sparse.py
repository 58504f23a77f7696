"""Edges by rule: who hears whom in a sparse transformer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.described import Described
from socialgraph.edges.edge_sampler import EdgeSampler
from socialgraph.edges.layout import documents
from socialgraph.errors import OptionError

#: (node ids who listen, node ids who are heard) -> whether they do, bool; both ids of a pair are of one document
Hears = Callable[[Tensor, Tensor], Tensor]


class Rule(Described, torch.nn.Module):
    """Base of all rules. A rule is made for a graph first and asked about pairs of nodes then."""

    def forward(self, graph: Data) -> Hears:
        """Return the answer to "does node i hear node j?" for ids ``i`` and ``j`` that broadcast."""
        raise NotImplementedError

    def hubs(self, graph: Data) -> Tensor:
        """Return the nodes that hear everybody and are heard by everybody, ``[N]`` bool; most rules have none."""
        return torch.zeros_like(graph.input_ids, dtype=torch.bool)


class SparseEdges(EdgeSampler):
    """The union of rules over joint graphs, whose nodes are ``[CLS] query [SEP] document [SEP]``.

    Args:
        rules: the rules; one of them is enough for an edge.

    Raises:
        OptionError: no rule.
    """

    #: pairs looked at at once
    block_size = 1 << 20

    def __init__(self, rules: Iterable[Rule]) -> None:
        super().__init__()
        self.rules = torch.nn.ModuleList(rules)
        if not len(self.rules):
            raise OptionError("sparse edges need at least one rule, got none")

    @torch.no_grad()
    def forward(self, graph: Data) -> tuple[Tensor, Tensor]:
        """Return the edges of a joint graph or of a batch of them.

        Args:
            graph: with ``input_ids``, ``segment`` and what the rules need.

        Returns:
            ``edge_index [2, E]`` from who is heard (row 0) to who listens (row 1), without self-loops, sorted by row
            and column; and ``edge_weight [E]``, all 1.
        """
        batch, ptr = documents(graph)
        length = ptr.diff()[batch]
        rules: list[Hears] = [rule(graph) for rule in self.rules]
        edges = [torch.empty(2, 0, dtype=torch.long, device=ptr.device)]
        rows = max(1, self.block_size // max(1, int(length.max()) if length.numel() else 0))
        for first in range(0, batch.numel(), rows):
            heard = torch.arange(first, min(first + rows, batch.numel()), device=ptr.device)[:, None]
            place = torch.arange(int(length[heard].max()), device=ptr.device)
            # places behind the end of a document are pairs with oneself, which no edge joins
            listener = torch.where(place < length[heard], ptr[batch[heard]] + place, heard)
            pair = rules[0](listener, heard)
            for rule in rules[1:]:
                pair = pair | rule(listener, heard)
            row, column = (pair & (listener != heard)).nonzero(as_tuple=True)
            edges.append(torch.stack([heard[row, 0], listener[row, column]]))
        edge_index = torch.cat(edges, 1)
        return edge_index, torch.ones(edge_index.size(1), device=ptr.device)

    def hubs(self, graph: Data) -> Tensor:
        """Return the nodes that are a hub by some rule, ``[N]`` bool."""
        return torch.stack([cast(Rule, rule).hubs(graph) for rule in self.rules]).any(0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.rules))})"
