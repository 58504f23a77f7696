"""What the answer of every pattern obeys, as far as it can be seen on each batch in O(l)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity
from socialgraph.edges.layout import document_name
from socialgraph.edges.pattern import Centrality, Pattern
from socialgraph.errors import LawError, blaming, is_own

#: how far probabilities may be off: factors are rounded to multiples of 2^-22, and a pair has several
TOLERANCE = 1e-5
#: pairs of each document that are looked at
SAMPLE = 32
#: steps of the sequence that chooses them, which leaves no part of a square out (Martin Roberts, 2018: "The
#: unreasonable effectiveness of quasirandom sequences"): powers of 1 / 1.3247..., the root of x^3 = x + 1
STEPS = (0.7548776662466927, 0.5698402909980532)
_SHARES = torch.arange(1, SAMPLE + 1) * torch.tensor(STEPS, dtype=torch.float64)[:, None] % 1.0
#: there and back and again, as shares of a document's length: ``[2, 3, 1, SAMPLE]``
_PLACES = torch.stack([_SHARES, _SHARES.flip(0), _SHARES], 1)[:, :, None]
#: how far there, back and again may be from there: ``[3, 1]``
_MAY_DIFFER = torch.tensor([[0.0], [TOLERANCE], [0.0]], dtype=torch.float64)


def check_affinities(patterns: Mapping[str, Pattern], graph: Data, batch: Tensor, ptr: Tensor) -> None:
    """Refuse patterns whose answers break a law in a sample of pairs.

    The form of the answer, weights of nodes, and of :data:`SAMPLE` pairs of every document: P is finite, in [0, 1],
    the same in both directions and when asked again. What is wrong elsewhere is :func:`check_pattern`'s to find.
    Patterns of this package are not looked at: its tests do that.

    Args:
        patterns: by name.
        graph: what they are asked about.
        batch: document of each node, see :func:`~socialgraph.edges.layout.documents`.
        ptr: the documents' bounds.

    Raises:
        LawError: a law is broken, or a pattern raises something; the message names the class, the law and the document.
    """
    if not batch.numel() or not any(map(is_own, patterns.values())):
        return
    pairs = sample(ptr, batch.numel())
    i, j = pairs.flatten(1).unbind()
    for pattern in filter(is_own, patterns.values()):
        with blaming(pattern, "the batch"):
            _refuse_weights(pattern, batch, graph)
            part = pattern(graph)
            _form(pattern, part, batch)
            value = part.pair(i, j)
            if not isinstance(value, Tensor) or value.dtype != torch.float64 or value.shape != i.shape:
                got = f"{value.dtype} {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
                what = f"pair must return float64 of the shape of its ids, {list(i.shape)}, got {got}"
                raise LawError(pattern, "it answers with an affinity", "the batch", what)
        p = value.detach().reshape(3, -1)
        if not _all_hold(p):
            _refuse_values(pattern, p, pairs[:, 0], ptr, graph)


def refuse_sums(patterns: Mapping[str, Pattern], graph: Data) -> None:
    """Say which pattern's probabilities do not sum up to a number: one of them is none.

    Raises:
        LawError: always, where there is such a pattern.
    """
    for pattern in patterns.values():
        part = pattern(graph)
        wrong = (~part.totals().isfinite()).nonzero().flatten()
        if wrong.numel():
            where = document_name(graph, int(wrong[0]))
            what = f"the sum over all pairs is {float(part.totals()[wrong[0]])}"
            raise LawError(pattern, "values lie between 0 and 1", where, what)


def sample(ptr: Tensor, size: int) -> Tensor:
    """Return :data:`SAMPLE` pairs of each document there and back and again: node ids ``[2, 3, B * SAMPLE]``.

    A pair of a node with itself is none: one in l of a document of l nodes, and all of one without any.

    Args:
        ptr: the documents' bounds, ``[B + 1]``.
        size: number of nodes.
    """
    bounds = ptr.double().unsqueeze(1)
    places = bounds[:-1].lerp(bounds[1:], _PLACES.to(ptr.device))
    return places.long().clamp_(max=size - 1).flatten(2)  # a document without nodes may begin behind the last node


def _form(pattern: Pattern, part: Any, batch: Tensor) -> None:
    """Refuse an answer that is no affinity over the nodes of the graph."""
    what = None
    if not isinstance(part, Affinity):
        what = f"forward must return an Affinity, got {type(part).__name__}"
    elif part.batch is not batch and not torch.equal(part.batch, batch):
        what = "the affinity's batch must be the graph's, see socialgraph.edges.layout.documents"
    if what:
        raise LawError(pattern, "it answers with an affinity", "the batch", what)


def _refuse_weights(pattern: Pattern, batch: Tensor, graph: Data) -> None:
    """Refuse weights of nodes that a centrality has given the graph."""
    if not isinstance(pattern, Centrality) or pattern.name not in graph:
        return
    law, weights = "weights are numbers from 0", graph[pattern.name]
    if not isinstance(weights, Tensor) or list(weights.shape) != [graph.num_nodes]:
        got = list(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        what = f"weights must return a tensor with a number for each node, [{graph.num_nodes}], got {got}"
        raise LawError(pattern, law, "the batch", what)
    low, high = weights.aminmax()
    if low.item() >= 0 and high.item() < torch.inf:  # both false of what is no number
        return
    first = int((~((weights >= 0) & (weights < torch.inf))).nonzero()[0])
    place = first - int((batch < batch[first]).sum())
    what = f"the weight of place {place} is {float(weights[first]):.6g}"
    raise LawError(pattern, law, document_name(graph, int(batch[first])), what)


def _all_hold(p: Tensor) -> bool:
    """Whether all laws of values hold, of pairs of a node with itself too: there and back and again, ``[3, pairs]``."""
    right = p[0].clamp(-TOLERANCE, 1.0 + TOLERANCE)
    if torch.equal(p, right.expand_as(p)):  # what most patterns answer, seen at once
        return True
    return bool(((p - right).abs_() <= _MAY_DIFFER.to(p.device)).all())  # false of what is no number


def _refuse_values(pattern: Pattern, p: Tensor, pairs: Tensor, ptr: Tensor, graph: Data) -> None:
    """Refuse values that break a law, but for what stands at i = j, which means nothing."""
    there, back, again = p
    laws = (
        ("values lie between 0 and 1", (there - 0.5).abs() <= 0.5 + TOLERANCE, ""),  # false of what is no number
        ("who comes first does not matter", (there - back).abs() <= TOLERANCE, ", P({j}, {i}) = {back:.6g}"),
        ("the same graph gets the same values", there == again, ", when asked again {again:.6g}"),
    )
    for law, holds, also in laws:
        wrong = (~holds & (pairs[0] != pairs[1])).nonzero().flatten()
        if not wrong.numel():
            continue
        at = int(wrong[0])
        document = at // SAMPLE
        i, j = (pairs[:, at] - ptr[document]).tolist()
        values = {"there": float(there[at]), "back": float(back[at]), "again": float(again[at])}
        what = ("P({i}, {j}) = {there:.6g}" + also).format(i=i, j=j, **values)
        raise LawError(pattern, law, document_name(graph, document), what)
