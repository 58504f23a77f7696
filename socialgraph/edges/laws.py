"""What the answer of every pattern obeys, as far as it can be seen on each batch in O(l)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity
from socialgraph.edges.layout import document_name, documents
from socialgraph.edges.pattern import Centrality, Pattern
from socialgraph.errors import LawError, blaming, is_own

#: how far probabilities may be off: factors are rounded to multiples of 2^-22, and a pair has several
TOLERANCE = 1e-5
#: pairs of each document that are looked at
SAMPLE = 32
#: steps of the sequence that chooses them, which leaves no part of a square out (Martin Roberts, 2018: "The
#: unreasonable effectiveness of quasirandom sequences"): powers of 1 / 1.3247..., the root of x^3 = x + 1
STEPS = (0.7548776662466927, 0.5698402909980532)


def checked_affinities(patterns: Mapping[str, Pattern], graph: Data) -> list[Affinity]:
    """Return what each pattern says of a graph, if it obeys the laws in a sample of pairs.

    The form of the answer, weights of nodes, and of :data:`SAMPLE` pairs of every document: P is finite, in [0, 1],
    the same in both directions and when asked again. What is wrong elsewhere is :func:`check_pattern`'s to find.
    Patterns of this package are not looked at: its tests do that.

    Raises:
        LawError: a law is broken, or a pattern raises something; the message names the class, the law and the document.
    """
    batch, ptr = documents(graph)
    own = [pattern for pattern in patterns.values() if is_own(pattern)]
    if not batch.numel() or not own:
        return [pattern(graph) for pattern in patterns.values()]
    weighed = [(pattern, _weights(pattern, graph)) for pattern in own]
    i, j, document = sample(ptr)
    places = torch.cat([i, j, i]), torch.cat([j, i, j])
    parts, values = [], []
    for pattern in patterns.values():
        with blaming(pattern, "the batch"):
            part = pattern(graph)
            parts.append(part)
            if not is_own(pattern):
                continue
            _form(pattern, part, batch)
            value = part.pair(*places)
            if not isinstance(value, Tensor) or value.dtype != torch.float64 or value.shape != places[0].shape:
                got = f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
                what = f"pair must return float64 of the shape of its ids, {list(places[0].shape)}, got {got}"
                raise LawError(pattern, "it answers with an affinity", "the batch", what)
        values.append(value.view(3, -1))
    p = torch.stack(values)  # [patterns, 3, pairs]
    there, back, again = p.unbind(1)
    inside = (there >= -TOLERANCE) & (there <= 1.0 + TOLERANCE)  # false of what is no number
    is_pair = i != j  # what stands at i = j means nothing
    fine = ((inside & ((there - back).abs() <= TOLERANCE) & (there == again)) | ~is_pair).all()
    for _, weights in weighed:
        if weights is not None:
            fine = fine & ((weights >= 0) & (weights < torch.inf)).all()
    if not bool(fine):
        _refuse_weights(weighed, batch, graph)
        _refuse_values(own, p, inside, is_pair, (i - ptr[document], j - ptr[document], document), graph)
    return parts


def refuse_sums(patterns: Iterable[Pattern], parts: Iterable[Affinity], graph: Data) -> None:
    """Say which pattern's probabilities do not sum up to a number: one of them is none.

    Raises:
        LawError: always, where there is such a pattern.
    """
    for pattern, part in zip(patterns, parts, strict=True):
        wrong = (~part.totals().isfinite()).nonzero().flatten()
        if wrong.numel():
            where = document_name(graph, int(wrong[0]))
            what = f"the sum over all pairs is {float(part.totals()[wrong[0]])}"
            raise LawError(pattern, "values lie between 0 and 1", where, what)


def sample(ptr: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return :data:`SAMPLE` pairs of each document: node ids i and j, and the document, ``[B * SAMPLE]`` each.

    i = j stands for no pair, in documents of fewer than two nodes.
    """
    length = ptr.diff()[:, None]
    step = torch.arange(1, SAMPLE + 1, dtype=torch.float64, device=ptr.device)
    one, two = (step * size % 1.0 for size in STEPS)
    place = (one * length).long()
    other = (place + 1 + (two * (length - 1)).long()) % length.clamp(min=1)
    first = ptr[:-1, None].clamp(max=max(int(ptr[-1]) - 1, 0))
    document = torch.arange(ptr.numel() - 1, device=ptr.device).repeat_interleave(SAMPLE)
    return (first + place).flatten(), (first + other).flatten(), document


def _form(pattern: Pattern, part: Any, batch: Tensor) -> None:
    """Refuse an answer that is no affinity over the nodes of the graph."""
    what = None
    if not isinstance(part, Affinity):
        what = f"forward must return an Affinity, got {type(part).__name__}"
    elif part.batch is not batch and not torch.equal(part.batch, batch):
        what = "the affinity's batch must be the graph's, see socialgraph.edges.layout.documents"
    if what:
        raise LawError(pattern, "it answers with an affinity", "the batch", what)


def _weights(pattern: Pattern, graph: Data) -> Tensor | None:
    """Return the weights of nodes that a centrality has given the graph."""
    if not isinstance(pattern, Centrality) or pattern.name not in graph:
        return None
    weights = graph[pattern.name]
    if not isinstance(weights, Tensor) or list(weights.shape) != [graph.num_nodes]:
        got = list(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        what = f"weights must return a tensor with a number for each node, [{graph.num_nodes}], got {got}"
        raise LawError(pattern, "weights are numbers from 0", "the batch", what)
    return weights


def _refuse_weights(weighed: list[tuple[Pattern, Tensor | None]], batch: Tensor, graph: Data) -> None:
    for pattern, weights in weighed:
        wrong = [] if weights is None else (~((weights >= 0) & (weights < torch.inf))).nonzero().flatten().tolist()
        if weights is not None and wrong:
            place = wrong[0] - int((batch < batch[wrong[0]]).sum())
            where = document_name(graph, int(batch[wrong[0]]))
            what = f"the weight of place {place} is {float(weights[wrong[0]]):.6g}"
            raise LawError(pattern, "weights are numbers from 0", where, what)


def _refuse_values(
    patterns: Iterable[Pattern], p: Tensor, inside: Tensor, is_pair: Tensor, places: tuple[Tensor, ...], graph: Data
) -> None:
    laws = (
        ("values lie between 0 and 1", inside, 1),
        ("who comes first does not matter", (p[:, 0] - p[:, 1]).abs() <= TOLERANCE, 1),
        ("the same graph gets the same values", p[:, 0] == p[:, 2], 2),
    )
    for law, holds, other in laws:
        for pattern, values, fine in zip(patterns, p, holds | ~is_pair, strict=True):
            wrong = (~fine).nonzero().flatten().tolist()
            if wrong:
                i, j, document = (int(x[wrong[0]]) for x in places)
                what = f"P({i}, {j}) = {float(values[0, wrong[0]]):.6g}"
                then = f"P({j}, {i}) = " if other == 1 else "when asked again "
                what += "" if law.startswith("values") else f", {then}{float(values[other, wrong[0]]):.6g}"
                raise LawError(pattern, law, document_name(graph, document), what)
