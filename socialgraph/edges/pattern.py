r"""What a social pattern is: nodes in, an :class:`~socialgraph.edges.affinity.Affinity` out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.described import Described
from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.layout import documents
from socialgraph.kernels import smooth_products


class Pattern(Described, torch.nn.Module):
    """Base class of all patterns: says how likely each pair of tokens is to be friends.

    A subclass implements :meth:`forward`. Values lie in [0, 1]. It sees one
    :class:`~socialgraph.data.DocumentGraph` or a whole batch of them; what the collection says of its words, such as
    document frequencies, is :func:`~socialgraph.edges.statistics.statistics_of` the graph.
    """

    @property
    def name(self) -> str:
        """The class name in snake case; names the pattern in graphs, plots and options."""
        return snake_case(type(self).__name__)

    def forward(self, graph: Data) -> Affinity:
        """Return the probabilities of all pairs of every document of ``graph``."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")


class Centrality(Pattern):
    r"""A pattern in which important nodes know many: P = f(w_i w_j) for node weights w >= 0.

    .. math::
        s_{ij} = \sqrt{w_i w_j}, \qquad
        f_{ij} = \frac{s_{ij} - \min s}{\max s - \min s}

    (paper, equations 2 and 3). Minimum and maximum run over the pairs of distinct nodes of one document.
    Where all these pairs are equal, the fraction is 0/0: f is then 0 and the pattern abstains. That covers
    a document without a query match, equal weights, and fewer than three nodes.

    A subclass implements :meth:`weights`.
    """

    #: whether weights cost so much that they are worth keeping, see :func:`socialgraph.data.weights.cached_weights`
    costly = False

    def weights(self, graph: Data) -> Tensor:
        """Return the weight of every node, ``[N]``, not negative."""
        raise NotImplementedError(f"{type(self).__name__} has no weights")

    def forward(self, graph: Data) -> Affinity:
        """Return f(w_i w_j), from ``graph[self.name]`` where the weights are already there."""
        batch, ptr = documents(graph)
        return smooth_product([self.weights_of(graph)], [1.0], batch, ptr)

    def weights_of(self, graph: Data) -> Tensor:
        """Return ``graph[self.name]`` where the weights are already there, else :meth:`weights`."""
        return graph[self.name] if self.name in graph else self.weights(graph)


@cache
def snake_case(name: str) -> str:
    """Return ``StaticDistance`` as ``static_distance``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def smooth_product(weights: Sequence[Tensor], share: Sequence[float], batch: Tensor, ptr: Tensor) -> LowRank:
    """Return the weighted sum of f(w_i w_j) of equation 3 over several weights, in closed form.

    Args:
        weights: of each node, ``[N]``, one for each kind.
        share: how much each of them counts; numbers that are not negative.
        batch: document of each node, ``[N]``.
        ptr: bounds of the documents, ``[B + 1]``.
    """
    counts = torch.tensor(share, dtype=torch.float64, device=ptr.device)
    row, factor, constant = smooth_products(ptr, torch.stack([x.detach().double() for x in weights]), counts)
    return LowRank(batch, ptr, row=row, factor=factor.T, constant=constant, rounded=True)
