"""The contract of an edge pattern, tried on hard documents."""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.contracts import (
    TOLERANCE,
    Violation,
    affinity_violation,
    pair_violation,
    value_violation,
    weight_violation,
)
from socialgraph.edges import Affinity, Centrality, Pattern, SocialEdges
from socialgraph.errors import OptionError
from socialgraph.testing.graphs import hard_graphs
from socialgraph.testing.trial import Refuse, check_answers, trial, unnamed_argument

#: how far costly weights may be off between batches; a graph holds those that were computed once
COSTLY_TOLERANCE = 1e-3


def check_pattern(pattern: Pattern, device: torch.device | str = "cpu") -> None:
    """Check that a pattern keeps its contract, on small hard documents; say nothing where it does.

    Empty documents, one word, the same word again and again, no word of the query, nothing but its word, and batches
    of them; word pieces have ids from 5 to 99, and a small collection's statistics come with them. P is symmetric,
    finite and in [0, 1], and the same to the last bit whenever and in whatever company a document is asked about (up
    to 1e-3 where a ``costly`` pattern computes weights); and :class:`~socialgraph.edges.SocialEdges` draws from the
    same P.

    Args:
        pattern: an instance, such as ``MyPattern(p=50)``; it is copied for every graph.
        device: where documents and pattern lie.

    Raises:
        ContractError: names the contract, the document and the pair of places.
        OptionError: not an instance of :class:`Pattern`.
    """
    if not isinstance(pattern, Pattern):
        raise OptionError(f"check_pattern takes an instance of a Pattern, such as MyPattern(), got {pattern!r}")
    graphs = hard_graphs(device)
    with trial(pattern, "none yet") as (one, refuse):
        refuse(unnamed_argument(one))
        if isinstance(one, Centrality):
            refuse(_name_violation(one.name, graphs["empty"]))
    for name, graph in graphs.items():
        with torch.no_grad(), trial(pattern, name) as (one, refuse):  # as SocialEdges asks
            _check_probabilities(one.to(device), graph, refuse)


def _name_violation(name: str, graph: Batch) -> Violation | None:
    """Return what is wrong with the name under which a graph keeps the weights of a centrality."""
    if re.search("batch|index|face|adj|ptr|mask|segment", name) or hasattr(graph, name):
        return Violation("it has a name for graphs", f"{name!r} means something to graphs of PyG: choose another name")
    return None


def _check_probabilities(pattern: Pattern, graph: Batch, refuse: Refuse) -> None:
    """Refuse a pattern whose P is none, depends on anything but the document, or is not what edges are drawn from."""
    tolerance = COSTLY_TOLERANCE if isinstance(pattern, Centrality) and pattern.costly else 0.0

    def matrices(affinity: Affinity) -> list[Tensor]:
        """Return P of each document, the diagonal 0; whatever its ``dense`` says, ``pair`` is asked."""
        result = []
        for start, end in pairwise(affinity.ptr.tolist()):
            ids = torch.arange(start, end, device=graph.batch.device)
            p = affinity.pair(ids[:, None], ids)
            refuse(value_violation(p, [len(ids), len(ids)], ids.device))
            result.append(p.clone().fill_diagonal_(0.0))
        return result

    def ask(batch: Batch) -> list[Tensor]:
        affinity = pattern(batch)
        refuse(affinity_violation(affinity, batch.batch))
        found = matrices(affinity)
        if len(found) != batch.num_graphs:
            refuse(Violation("form", f"the affinity has {len(found)} documents, the graph {batch.num_graphs}"))
        for number, p in enumerate(found):
            i, j = torch.ones_like(p).nonzero().T
            if violation := pair_violation(i, j, p.flatten(), p.T.flatten()):
                refuse(violation._replace(text=f"document {number}: {violation.text}"))
        return found

    if isinstance(pattern, Centrality):
        refuse(weight_violation(pattern.weights(graph), graph.batch))
    found = check_answers(pattern, ask, graph, partial(_difference, tolerance), refuse)
    scaled = matrices(SocialEdges([pattern]).probabilities(graph))
    for number, (p, chance) in enumerate(zip(found, scaled, strict=True)):
        factor = float(chance.sum() / p.sum()) if bool(p.any()) else 0.0  # all pairs are scaled alike
        if factor and (what := _difference(TOLERANCE * (1.0 + factor), factor * p, chance, "mixed and scaled")):
            contract = "edges are drawn from the same probabilities"
            refuse(Violation(contract, f"document {number}: times {factor:.4g}, {what}"))


def _difference(tolerance: float, one: Tensor, other: Tensor, how: str) -> str | None:
    """Return the first pair of places whose P differs, in words."""
    if one.shape != other.shape:
        return f"P is {list(one.shape)}, {how} {list(other.shape)}"
    for i, j in (~((one - other).abs() <= tolerance)).nonzero().tolist():
        digits = 6 if abs(float(one[i, j] - other[i, j])) > TOLERANCE else 17
        return f"P({i}, {j}) = {float(one[i, j]):.{digits}g}, {how} {float(other[i, j]):.{digits}g}"
    return None
