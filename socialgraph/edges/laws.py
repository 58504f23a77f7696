"""What the answer of every pattern obeys, as far as it can be seen on each batch in O(l)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
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
_PLACES = np.arange(1, SAMPLE + 1) * np.array(STEPS)[:, None] % 1.0


def checked_affinities(patterns: Mapping[str, Pattern], graph: Data, batch: Tensor, ptr: Tensor) -> list[Affinity]:
    """Return what each pattern says of a graph, if it obeys the laws in a sample of pairs.

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
    own = [pattern for pattern in patterns.values() if is_own(pattern)]
    if not batch.numel() or not own:
        return [pattern(graph) for pattern in patterns.values()]
    weighed = [(pattern, _weights(pattern, graph)) for pattern in own]
    # There are few pairs, and of few numbers NumPy makes in a microsecond what takes PyTorch five.
    bounds = ptr.cpu().numpy()
    i, j, document = sample(bounds)
    places = torch.from_numpy(np.stack([np.concatenate([i, j, i]), np.concatenate([j, i, j])])).to(ptr.device)
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
            values.append(value.detach().cpu().numpy().reshape(3, -1))
    p = np.stack(values)  # [patterns, 3, pairs]
    is_pair = i != j  # what stands at i = j means nothing
    _refuse_weights(weighed, batch, graph)
    _refuse_values(own, p, is_pair, (i - bounds[document], j - bounds[document], document), graph)
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


def sample(ptr: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return :data:`SAMPLE` pairs of each document: node ids i and j, and the document, ``[B * SAMPLE]`` each.

    i = j stands for no pair, in documents of fewer than two nodes.
    """
    length = np.diff(ptr)[:, None]
    place = (_PLACES[0] * length).astype(np.int64)
    other = (place + 1 + (_PLACES[1] * (length - 1)).astype(np.int64)) % np.maximum(length, 1)
    first = np.minimum(ptr[:-1, None], max(int(ptr[-1]) - 1, 0))
    document = np.arange(ptr.size - 1).repeat(SAMPLE)
    return (first + place).ravel(), (first + other).ravel(), document


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
        if weights is None:
            continue
        values = weights.detach().cpu().numpy()
        if values.min() >= 0 and values.max() < np.inf:  # both false of what is no number
            continue
        first = int((~((values >= 0) & (values < np.inf))).argmax())
        place = first - int((batch < batch[first]).sum())
        what = f"the weight of place {place} is {float(values[first]):.6g}"
        raise LawError(pattern, "weights are numbers from 0", document_name(graph, int(batch[first])), what)


def _refuse_values(
    patterns: Sequence[Pattern], p: NDArray[np.float64], is_pair: NDArray[np.bool_],
    places: tuple[NDArray[np.int64], ...], graph: Data,
) -> None:  # fmt: skip
    there, back, again = p[:, 0], p[:, 1], p[:, 2]
    with np.errstate(invalid="ignore"):  # infinity less infinity
        laws = (
            ("values lie between 0 and 1", np.abs(there - 0.5) <= 0.5 + TOLERANCE, ""),  # false of what is no number
            ("who comes first does not matter", np.abs(there - back) <= TOLERANCE, ", P({j}, {i}) = {back:.6g}"),
            ("the same graph gets the same values", there == again, ", when asked again {again:.6g}"),
        )
    for law, holds, also in laws:
        wrong = ~holds & is_pair
        if not wrong.any():
            continue
        number, pair = np.argwhere(wrong)[0].tolist()
        i, j, document = (int(x[pair]) for x in places)
        values = dict(zip(("there", "back", "again"), p[number, :, pair].tolist(), strict=True))
        what = ("P({i}, {j}) = {there:.6g}" + also).format(i=i, j=j, **values)
        raise LawError(patterns[number], law, document_name(graph, document), what)
