r"""What a social pattern is: nodes in, an :class:`~socialgraph.edges.affinity.Affinity` out."""

from __future__ import annotations

import re
from functools import cache

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.described import Described
from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.layout import documents, padded


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

    #: whether weights cost so much that they are worth keeping, see :class:`socialgraph.data.WeightCache`
    costly = False

    def weights(self, graph: Data) -> Tensor:
        """Return the weight of every node, ``[N]``, not negative."""
        raise NotImplementedError(f"{type(self).__name__} has no weights")

    def forward(self, graph: Data) -> Affinity:
        """Return f(w_i w_j), from ``graph[self.name]`` where the weights are already there."""
        batch, ptr = documents(graph)
        weights = graph[self.name] if self.name in graph else self.weights(graph)
        return smooth_product(weights.double(), batch, ptr)


@cache
def snake_case(name: str) -> str:
    """Return ``StaticDistance`` as ``static_distance``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def smooth_product(weights: Tensor, batch: Tensor, ptr: Tensor) -> LowRank:
    """Return f(w_i w_j) of equation 3 in closed form.

    With a_i = sqrt(w_i) = a_min + D u_i, the product a_i a_j is a_min D (u_i + u_j) + D^2 u_i u_j plus a
    constant. Written this way no two large numbers are subtracted, however little the weights differ.
    """
    amplitude = weights.clamp(min=0).sqrt()
    count = ptr[1:] - ptr[:-1]
    if amplitude.numel() == 0:
        return LowRank(batch, ptr)
    ids, inside = padded(ptr, max(2, int(count.max())))
    table = amplitude[ids]
    lowest, lower = torch.where(inside, table, torch.inf).topk(2, largest=False).values.T
    highest, higher = torch.where(inside, table, -torch.inf).topk(2).values.T
    least, most = lowest * lower, highest * higher
    speaks = (count > 1) & (most > least)
    lowest = torch.where(count > 0, lowest, 0.0)
    span = torch.where(speaks, most - least, 1.0)
    reach = torch.where(speaks, highest - lowest, 1.0)
    of_document = torch.stack([lowest, reach, lowest * reach / span, reach / span.sqrt(), speaks.double()])
    low, width, slope, root, one = of_document.index_select(1, batch)
    u = torch.where(one > 0, (amplitude - low) / width, 0.0)
    linear, square = slope * u, root * u
    constant = torch.where(speaks, (lowest * lowest - least) / span, 0.0)
    return LowRank(
        batch,
        ptr,
        left=torch.stack([linear, one, square], 1),
        right=torch.stack([one, linear, square], 1),
        constant=constant,
    )
