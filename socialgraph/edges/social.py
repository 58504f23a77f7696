"""Who is friends with whom: the weighted mean of patterns, scaled to a sparsity, drawn by hashes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.contracts import check_probabilities, refuse, total_violation, weight_violation
from socialgraph.edges.affinity import Affinity
from socialgraph.edges.edge_sampler import EdgeSampler
from socialgraph.edges.expected import expected_keys
from socialgraph.edges.layout import documents
from socialgraph.edges.mixture import mix
from socialgraph.edges.pattern import Centrality, Pattern, smooth_product
from socialgraph.edges.social_graph import SocialGraph
from socialgraph.errors import OptionError, blaming, check_choice, is_user_defined

#: how edges follow from probabilities
DRAWS = ("random", "expected")


class SocialEdges(EdgeSampler):
    r"""Draws the social graph of documents (paper, section 3.1).

    .. math::
        P = \sum_x \lambda_x P_x, \qquad
        \sum_{i \ne j} \min(1, P_{ij} / \mu) = l (l - 1) (1 - sparsity)

    Each unordered pair of distinct tokens is drawn once and is an edge with probability min(1, P / mu).
    mu is exact: probabilities that are clipped at 1 are taken into account. (The paper's equation 8 counts
    all l^2 places, with the diagonal and without the clipping; for l = 2,048 the difference is 0.05 %. Its l is
    "the max length of documents"; here, as in the released code, it is the document's own length, so that a short
    document is as sparse as a long one.)
    Where every pattern abstains, every pair has probability 1 - sparsity. A document of one token or none
    has no edge.

    Args:
        patterns: the patterns to mix, by name or in a row, where each has the name of its class.
        weights: lambda for each name; patterns that are not named get 1. The weights are normalised to sum
            to 1, so that leaving a pattern out keeps the proportions of the others. Default: all equal; the
            paper gives no values. (The released code used 0.3 static distance, 0.2 static centrality, 0.3
            dynamic distance, 0.2 dynamic centrality.)
        sparsity: share of the pairs that are expected not to be edges, in (0, 1).
        draw: "random": as the paper. "expected": the pairs of highest P are the edges, as many as sparsity says, and
            nothing is drawn. This departs from the paper: there an unlikely pair has its chance, too. See
            :func:`~socialgraph.edges.expected.expected_keys`.

    Raises:
        OptionError: sparsity out of range, no pattern, two of one name, an unknown name or a negative weight; or no
            such draw.
    """

    def __init__(
        self,
        patterns: Mapping[str, Pattern] | Iterable[Pattern],
        weights: Mapping[str, float] | None = None,
        sparsity: float = 0.93,
        draw: str = "random",
    ) -> None:
        super().__init__()
        check_choice("draw", draw, DRAWS)
        patterns = _named(patterns)
        if not patterns:
            raise OptionError("edges need at least one pattern, got none")
        if not 0.0 < sparsity < 1.0:
            raise OptionError(f"sparsity must lie between 0 and 1 (both excluded), got {sparsity}")
        weights = dict(weights or {})
        unknown = sorted(set(weights) - set(patterns))
        if unknown:
            raise OptionError(f"weights name {unknown[0]!r}, but the patterns are {', '.join(patterns)}")
        share = [float(weights.get(name, 1.0)) for name in patterns]
        if not all(map(math.isfinite, share)) or min(share) < 0 or sum(share) <= 0:
            raise OptionError(f"pattern weights must be finite and >= 0 with a positive sum, got {share}")
        self.patterns = torch.nn.ModuleDict(patterns)
        self.weights = {name: value / sum(share) for name, value in zip(patterns, share, strict=True)}
        self.sparsity = sparsity
        self.draw = draw

    def probabilities(self, graph: Data, check: bool = True) -> Affinity:
        """Return P / mu, not yet clipped at 1, for every document of ``graph``; see :meth:`sampled`."""
        batch, ptr = documents(graph)
        patterns = cast(dict[str, Pattern], dict(self.patterns))
        for pattern in filter(is_user_defined, patterns.values()) if check and batch.numel() else ():
            with blaming(pattern, "the batch"):
                if isinstance(pattern, Centrality) and pattern.name in graph:
                    refuse(pattern, weight_violation(graph[pattern.name], batch), batch, graph)
                check_probabilities(pattern, pattern(graph), batch, ptr, graph)
        # Centralities have one formula: they are computed together, which takes a third of the operations.
        together = {
            name: pattern
            for name, pattern in patterns.items()
            if isinstance(pattern, Centrality) and type(pattern).forward is Centrality.forward
        }
        parts = [pattern(graph) for name, pattern in patterns.items() if name not in together]
        weights = [self.weights[name] for name in patterns if name not in together]
        if together:
            kinds = [pattern.weights_of(graph) for pattern in together.values()]
            parts.append(smooth_product(kinds, [self.weights[name] for name in together], batch, ptr))
            weights.append(1.0)
        mean = mix(parts, weights)
        density = 1.0 - self.sparsity
        try:
            factor = scale(mean, mean.lengths * (mean.lengths - 1) * density)
        except FloatingPointError:
            for pattern in patterns.values():
                refuse(pattern, total_violation(pattern(graph).totals(), ptr), batch, graph)
            raise
        return mean.scaled(factor, torch.full_like(factor, density))  # density where all patterns abstain

    @torch.no_grad()
    def forward(self, graph: Data) -> tuple[Tensor, Tensor]:
        """Draw the edges of one document graph or of a batch.

        Args:
            graph: with ``input_ids [N]``, ``draw_key`` (one a document) and what the patterns need.

        Returns:
            ``edge_index [2, E]`` int64, both directions of every edge, no self-loops, sorted by row and
            column; and ``edge_weight [E]`` float32, the probability that the edge had.
        """
        return self.sampled(graph).edges()

    @torch.no_grad()
    def sampled(self, graph: Data, check: bool = True) -> SocialGraph:
        """Return the same graph, whose edges are drawn where somebody looks: for who needs few of them.

        Args:
            graph: see :meth:`forward`.
            check: hold what patterns of the user's own say against :mod:`socialgraph.contracts`.

        Raises:
            ContractError: a pattern breaks one.
        """
        probability, key = self.probabilities(graph, check), graph.draw_key
        if self.draw == "expected":
            key = expected_keys(probability, 1.0 - self.sparsity, key)
        return SocialGraph(probability, key, graph)

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{name}={weight!r} * {pattern!r}"
            for (name, weight), pattern in zip(self.weights.items(), self.patterns.values(), strict=True)
        )
        return f"{type(self).__name__}({inside}, sparsity={self.sparsity}, draw={self.draw!r})"


def _named(patterns: Mapping[str, Pattern] | Iterable[Pattern]) -> dict[str, Pattern]:
    """Return patterns by name; refuse two of one name, of which one would take the other's place."""
    if isinstance(patterns, Mapping):
        return dict(patterns)
    row = list(patterns)
    named = {pattern.name: pattern for pattern in row}
    if len(named) < len(row):
        names = ", ".join(pattern.name for pattern in row)
        raise OptionError(f"two patterns of a row have one name: {names}; name them, {{name: pattern, ...}}")
    return named


def scale(affinity: Affinity, target: Tensor) -> Tensor:
    """Return 1 / mu for each document: sum over i != j of min(1, P / mu) = target.

    The sum is concave in 1 / mu and made of straight pieces, so Newton's steps from below end on the root. Without
    clipping the first step is the answer, in O(l); with it each step looks at the pairs that may be clipped. 0 where
    the document's P is 0 everywhere. Where more edges are asked for than pairs have P > 0, all of those pairs get
    (almost) 1.

    Args:
        affinity: P in [0, 1].
        target: expected number of ordered pairs, ``[B]``.

    Raises:
        FloatingPointError: a document's P has no sum.
    """
    totals = affinity.totals()
    factor = torch.where(totals > 0, target / totals, 0.0 * totals)
    search = ~(factor * affinity.highest() <= 1.0)  # elsewhere nothing is clipped, and the sum is a number
    for _ in range(64):
        if not bool(search.any()):
            break
        if not bool(factor.isfinite().all()):
            raise FloatingPointError("the probabilities of a document have no sum")
        clipped, free = affinity.clipped(factor)
        room, free = target - 2.0 * clipped, 2.0 * free
        better = torch.where(free > 0, room / torch.where(free > 0, free, 1.0), factor)
        # Without clipping the first step stands: how well `highest` is known, which is the batch's affair, is not seen.
        search = search & (clipped > 0) & (better > factor * (1.0 + 1e-9)) & (better < 2.0**40)
        factor = torch.where(search, better, factor)
    return factor
