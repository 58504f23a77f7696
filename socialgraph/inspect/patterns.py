"""What each social pattern says of the pairs of a document."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from socialgraph.data.graph import DocumentGraph
from socialgraph.edges.pattern import Pattern
from socialgraph.edges.social import SocialEdges
from socialgraph.errors import InputError


@torch.no_grad()
def pattern_probabilities(
    graph: DocumentGraph, edges: SocialEdges, edge_index: Tensor | None = None
) -> dict[str, Tensor]:
    r"""Return P_x(i, j) of each pattern x for each edge, ``[E]`` float64 by the pattern's name.

    The probability with which i and j became friends is made of them:

    .. math:: \min\Big(1, \frac{1}{\mu} \sum_x \lambda_x P_x(i, j)\Big)

    with lambda from ``edges.weights``. ``torch.stack(list(pattern_probabilities(graph, edges).values()), 1)`` is an
    ``edge_attr [E, patterns]`` for PyTorch Geometric.

    Args:
        graph: a graph or a batch, with what the patterns need.
        edges: the patterns: those that drew the graph, or others.
        edge_index: pairs of node ids, ``[2, E]``; None: the graph's own edges.

    Raises:
        InputError: no pairs are given, and the graph has no edges.
    """
    if edge_index is None:
        if "edge_index" not in graph:
            raise InputError("the edges of this graph were not kept: build it with GraphBuilder(..., keep_edges=True)")
        edge_index = graph.edge_index
    lower, higher = edge_index.amin(0), edge_index.amax(0)
    return {
        name: cast(Pattern, pattern)(graph).pair(lower, higher).clamp(min=0.0)
        for name, pattern in edges.patterns.items()
    }


def pattern_shares(graph: DocumentGraph, edges: SocialEdges, edge_index: Tensor) -> dict[str, Tensor]:
    r"""Return each pattern's share in the probability of each edge, ``[E]`` in [0, 1] by the pattern's name.

    .. math:: \lambda_x P_x(i, j) \, / \, \sum_y \lambda_y P_y(i, j)

    All shares are 0 where every pattern abstains.

    Args:
        graph: see :func:`pattern_probabilities`, as the rest.
        edges: the patterns with their weights lambda.
        edge_index: pairs of node ids.
    """
    parts = {
        name: edges.weights[name] * probability
        for name, probability in pattern_probabilities(graph, edges, edge_index).items()
    }
    total = torch.stack(list(parts.values())).sum(0)
    total = torch.where(total > 0, total, 1.0)
    return {name: part / total for name, part in parts.items()}
