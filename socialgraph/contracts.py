"""What edges, circles and probabilities must be. Held on each batch, where a class is the user's own.

:mod:`socialgraph.testing` tries the same, and what several calls have to do with each other, on small hard graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.errors import ContractError, blaming

PROBABILITIES = "probabilities lie between 0 and 1"
#: how far probabilities may be off: factors are rounded to multiples of 2^-22, and a pair has several
TOLERANCE = 1e-5
#: pairs of each document whose probability is looked at
SAMPLE = 32
#: where they stand, as shares of a document's length: a sequence that leaves no part of a square out (Martin Roberts,
#: 2018: "The unreasonable effectiveness of quasirandom sequences"), of powers of 1 / 1.3247..., the root of x^3 = x + 1
PLACES = torch.arange(1, SAMPLE + 1) * torch.tensor([[0.7548776662466927], [0.5698402909980532]]).double() % 1.0
#: the tensors that an answer is made of, with dtype and shape
CIRCLES = (("circle_index", torch.int64, "[2, M]"), ("leader_index", torch.int64, "[C]"))
EDGES = (("edge_index", torch.int64, "[2, E]"), ("edge_weight", torch.float32, "[E]"))


class Violation(NamedTuple):
    """A contract that is broken, how, and a node of the document in which it is, where one is known."""

    contract: str
    text: str
    node: int | None = None


def document_name(graph: Data, number: int) -> str:
    """Return what a document of a graph or of a batch is called, for errors."""
    names = [getattr(graph, key, None) for key in ("document_id", "query_id")]
    document, query = (name[number] if isinstance(name, list) else name for name in names)
    return f"document {document}, query {query}" if document or query else f"document {number} of the batch"


def refuse(strategy: object, violation: Violation | None, batch: Tensor, graph: Data) -> None:
    """Raise a violation, where there is one.

    Raises:
        ContractError: names the class, the contract and the document, by ``batch [N]`` and the names in the graph.
    """
    if violation is None:
        return
    known = violation.node is not None and 0 <= violation.node < batch.numel()
    where = document_name(graph, int(batch[violation.node])) if known else "the batch"
    raise ContractError(strategy, violation.contract, where, violation.text)


def form_violation(answer: Any, tensors: Sequence[tuple[str, torch.dtype, str]], device: torch.device) -> str | None:
    """Return what is wrong with the kind, dtype, device or shape of :data:`CIRCLES` or :data:`EDGES`, in words."""
    if not isinstance(answer, tuple) or len(answer) != len(tensors):
        return f"forward must return ({', '.join(name for name, _, _ in tensors)}), got {type(answer).__name__}"
    for x, (name, dtype, shape) in zip(answer, tensors, strict=True):
        if not isinstance(x, Tensor):
            return f"{name} must be a tensor, got {type(x).__name__}"
        if x.layout != torch.strided or x.is_nested:
            return f"{name} must be dense, got {'nested' if x.is_nested else x.layout}"
        if x.dtype != dtype or x.device != device:
            return f"{name} must be {dtype} on {device}, got {x.dtype} on {x.device}"
        if x.dim() != len(shape.split(",")) or (x.dim() == 2 and x.size(0) != 2):
            return f"{name} must have the shape {shape}, got {list(x.shape)}"
    return None


# --- circles --------------------------------------------------------------------------------------


def circles_hold(circle_index: Tensor, leader_index: Tensor, batch: Tensor) -> bool:
    """Whether circles of the right form keep their contract: :func:`circle_violation` finds none. In O(M).

    In few calls, of which drawing has made most: a batch of short documents pays for calls, not for what they compute.
    """
    size, count, amount = batch.numel(), leader_index.numel(), circle_index.size(1)
    if not (size and count and amount):
        return count == amount == 0
    circle_index, leader_index = circle_index.contiguous(), leader_index.contiguous()  # raises where memory ends
    highest_node, highest_circle = circle_index.amax(1).tolist()
    if highest_node >= size or highest_circle >= count or int(circle_index.amin()) < 0:
        return False
    node, circle = circle_index.unbind()
    key = circle * size + node  # rises with every membership: sorted, and nobody twice
    if not bool((key.diff() > 0).all()):
        return False
    # Nobody is twice in a circle. So all circles have a member, and their leader is one, if as many members lead.
    leader = leader_index.index_select(0, circle)
    if int((leader == node).count_nonzero()) != count:
        return False
    if int(batch[-1]) == 0:  # one document
        return True
    document = batch.index_select(0, node)
    falls = bool((document.diff() < 0).any())
    return not falls and torch.equal(document, batch.index_select(0, leader))


def circle_violation(answer: Any, batch: Tensor) -> Violation | None:
    """Return the first contract that ``(circle_index [2, M], leader_index [C])`` breaks, by ``batch [N]``; in O(M)."""
    if wrong_form := form_violation(answer, CIRCLES, batch.device):
        return Violation("form", wrong_form)
    circle_index, leader_index = answer
    for contract, of_circle, wrong in _circle_contracts(circle_index, leader_index, batch):
        if not bool(wrong.any()):
            continue
        at = int(wrong.nonzero()[0, 0])
        if not of_circle:
            node, circle = circle_index[:, at].tolist()
            where = f"membership {at}: node {node} in circle {circle}"
            what = f"{where}, of {batch.numel()} nodes and {leader_index.numel()} circles"
            return Violation(contract, what, node)
        members, leader = circle_index[0, circle_index[1] == at].tolist(), int(leader_index[at])
        return Violation(contract, f"circle {at} is {circle_text(leader, members)}", members[0] if members else leader)
    return None


def _circle_contracts(circle_index: Tensor, leader_index: Tensor, batch: Tensor) -> Iterator[tuple[str, bool, Tensor]]:
    """Yield each contract, and which circles (True) or memberships (False) break it; each relies on those before."""
    node, circle = circle_index
    size, count = batch.numel(), leader_index.numel()
    yield "leaders are nodes", True, (leader_index < 0) | (leader_index >= size)
    yield "members are nodes", False, (node < 0) | (node >= size)
    yield "circles are numbered from 0, one for each leader", False, (circle < 0) | (circle >= count)
    key = circle * size + node  # rises with every membership
    yield "memberships are sorted by circle and node, none is there twice", False, _falls(key, strict=True)
    leader = leader_index[circle]
    leads = torch.zeros_like(leader_index, dtype=torch.bool)
    leads[circle[leader == node]] = True
    yield "a leader is a member of its circle", True, ~leads
    yield "a circle lies in one document", False, batch[node] != batch[leader]
    yield "circles go document by document", True, _falls(batch[leader_index])


def _falls(x: Tensor, strict: bool = False) -> Tensor:
    """Return which numbers are lower than the one before, or equal where ``strict``: ``[N]`` of ``[N]``."""
    step = x.diff(prepend=x[:1] - 1)
    return step <= 0 if strict else step < 0


def check_circles(
    partition: torch.nn.Module, ask: Callable[[], Any], batch: Tensor, given: Mapping[str, Any], graph: Data
) -> tuple[Tensor, Tensor]:
    """Return what a partition answers, if it keeps its contract.

    Args:
        partition: is named in errors.
        ask: asks it.
        batch: document of each node, sorted, ``[N]``.
        given: the tensors that it was given, by name; it must not change them.
        graph: knows the documents' names.

    Raises:
        ContractError: it does not, or raises something; the message names the class, the contract and the document.
    """
    before = {key: _version(x) for key, x in given.items()}
    with blaming(partition, "the batch"):  # a tensor too large for memory raises where one looks at it
        answer = ask()
        for key, x in given.items():
            if _version(x) != before[key]:
                raise ContractError(partition, "inputs stay as they are", "the batch", f"{key} is changed in place")
        if form_violation(answer, CIRCLES, batch.device) or not circles_hold(answer[0], answer[1], batch):
            refuse(partition, circle_violation(answer, batch), batch, graph)
    circle_index, leader_index = answer
    return circle_index, leader_index


def _version(x: Any) -> int | None:
    """Return a number that grows whenever a tensor is written to; nothing for what has none (inference tensors)."""
    return x._version if isinstance(x, Tensor) and not x.is_inference() else None


def circle_text(leader: int, members: list[int]) -> str:
    """Return leader and members in words, not all of many."""
    some = ", ".join(map(str, members[:12])) + (f", ... ({len(members)})" if len(members) > 12 else "")
    return f"led by {leader} with the members {some}"


# --- edges ----------------------------------------------------------------------------------------


def edges_hold(edge_index: Tensor, batch: Tensor) -> bool:
    """Whether undirected edges keep their contract. In O(E), a quarter of the time of their circles.

    That every edge has a way back is found without a sort, which takes as long as the circles: edges and their ways
    back have the same sum of hashes, and others with a chance of 2^-64.
    """
    if edge_index.numel() == 0:
        return True
    row, col = edge_index
    size = batch.numel()
    low, high = edge_index.aminmax()
    if int(low) < 0 or int(high) >= size:
        return False
    key, back = row * size + col, col * size + row
    holds = (key[1:] > key[:-1]).all() & (row != col).all()
    holds &= _hashed(key).sum() == _hashed(back).sum()
    if bool(batch[0] != batch[-1]):
        holds &= (batch[row] == batch[col]).all()
    return bool(holds)


def _hashed(x: Tensor) -> Tensor:
    """Make each int64 a random-looking number, in place: the first half of SplitMix64's."""
    x *= -0x61C8864680B583EB
    x ^= x >> 32
    x *= -0x40A7B892E31B1A47
    return x


def edge_violation(
    edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, undirected: bool = True
) -> Violation | None:
    """Return the first contract that edges break; in O(E log E).

    Args:
        edge_index: ``[2, E]`` int64.
        edge_weight: ``[E]``, or None.
        batch: document of each node, sorted, ``[N]``.
        undirected: whether every edge must be there in both directions, as partitions rely on.
    """
    for contract, wrong in _edge_contracts(edge_index, edge_weight, batch, undirected):
        if bool(wrong.any()):
            at = int(wrong.nonzero()[0, 0])
            row, col = edge_index[:, at].tolist()
            weight = "" if edge_weight is None else f", weight {float(edge_weight[at]):.6g}"
            return Violation(contract, f"edge {at} joins node {row} and node {col}{weight}", row)
    return None


def _edge_contracts(
    edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, undirected: bool
) -> Iterator[tuple[str, Tensor]]:
    """Yield each contract and which edges break it, ``[E]``; each relies on those before."""
    row, col = edge_index
    size = batch.numel()
    yield "edges join nodes of the graph", ((edge_index < 0) | (edge_index >= size)).any(0)
    yield "no self-loops", row == col
    yield "an edge lies in one document", batch[row] != batch[col]
    key = row * size + col
    yield "edges are sorted, none is there twice", _falls(key, strict=True)
    if edge_weight is not None:
        yield "weights are finite and not negative", ~((edge_weight >= 0) & (edge_weight < torch.inf))
    if undirected:
        back, order = (col * size + row).sort()
        one_way = back != key
        yield "edges are undirected", one_way
        if edge_weight is not None:
            yield "both directions of an edge have one weight", edge_weight[order] != edge_weight


def check_edges(sampler: torch.nn.Module, graph: Data, batch: Tensor, undirected: bool = True) -> tuple[Tensor, Tensor]:
    """Return the edges that a sampler draws, if they keep their contract; in O(E log E).

    Args:
        sampler: is asked, and named in errors.
        graph: a document graph, or a batch of them.
        batch: document of each node, sorted, ``[N]``.
        undirected: see :func:`edge_violation`.

    Raises:
        ContractError: they do not, or the sampler raises something; the message names the class, the contract and,
            where one is known, the document.
    """
    with blaming(sampler, "the batch"):  # a tensor too large for memory raises where one looks at it
        answer: Any = sampler(graph)
        wrong_form = form_violation(answer, EDGES, batch.device)
        if wrong_form is None and answer[0].size(1) != answer[1].numel():
            wrong_form = f"there are {answer[0].size(1)} edges and {answer[1].numel()} weights"
        if wrong_form:
            raise ContractError(sampler, "form", "the batch", wrong_form)
        edge_index, edge_weight = answer
        refuse(sampler, edge_violation(edge_index, edge_weight, batch, undirected), batch, graph)
    return edge_index, edge_weight


# --- probabilities --------------------------------------------------------------------------------


def affinity_violation(affinity: Any, batch: Tensor) -> Violation | None:
    """Return what is wrong with an answer that is no affinity over the nodes of the graph."""
    if not hasattr(affinity, "pair"):
        return Violation("form", f"forward must return an Affinity, got {type(affinity).__name__}")
    if affinity.batch is not batch and not torch.equal(affinity.batch, batch):
        return Violation("form", "the affinity's batch must be the graph's, see socialgraph.edges.layout.documents")
    return None


def value_violation(p: Any, shape: list[int], device: torch.device) -> Violation | None:
    """Return what is wrong with the kind, dtype, device or shape of what ``pair`` answers."""
    if not isinstance(p, Tensor) or p.layout != torch.strided:
        got = p.layout if isinstance(p, Tensor) else type(p).__name__
        return Violation("form", f"pair must return a dense tensor, got {got}")
    if p.dtype != torch.float64 or p.device != device or list(p.shape) != shape:
        what = f"pair must return float64 {shape} on {device}, as its ids broadcast"
        return Violation("form", f"{what}, got {p.dtype} {list(p.shape)} on {p.device}")
    return None


def pair_violation(i: Tensor, j: Tensor, p: Tensor, back: Tensor, ptr: Tensor | None = None) -> Violation | None:
    """Return the first contract that pairs of nodes ``[T]`` break, with P(i, j) and P(j, i); i = j means nothing.

    Places are counted from the bounds ``ptr`` of documents, where there are some.
    """
    in_range = (p - 0.5).abs() <= 0.5 + TOLERANCE  # false of what is no number
    wrong = ~(in_range & ((p - back).abs() <= TOLERANCE)) & (i != j)
    if not bool(wrong.any()):
        return None
    at = wrong.nonzero()[0, 0]
    node = int(i[at])
    start = 0 if ptr is None else int(ptr[ptr <= node].max())
    one, other = node - start, int(j[at]) - start
    what = f"P({one}, {other}) = {float(p[at]):.6g}, P({other}, {one}) = {float(back[at]):.6g}"
    return Violation("probabilities are symmetric" if bool(in_range[at]) else PROBABILITIES, what, node)


def weight_violation(weights: Any, batch: Tensor) -> Violation | None:
    """Return what is wrong with a weight of each node, which must be a real number: ``[N]``."""
    contract, size = "weights are finite and not negative", batch.numel()
    if not isinstance(weights, Tensor) or weights.layout != torch.strided or list(weights.shape) != [size]:
        got = f"{list(weights.shape)}, {weights.layout}" if isinstance(weights, Tensor) else type(weights).__name__
        return Violation("form", f"weights must return a dense tensor, [{size}], got {got}")
    if weights.is_complex():
        return Violation(contract, f"weights must be real numbers, got {weights.dtype}")
    for node in (~((weights >= 0) & (weights < torch.inf))).nonzero().flatten().tolist():
        place = node - int((batch < batch[node]).sum())
        return Violation(contract, f"the weight of place {place} is {float(weights[node]):.6g}", node)
    return None


def total_violation(totals: Tensor, ptr: Tensor) -> Violation | None:
    """Return which document's probabilities do not sum up to a number, by their ``totals [B]``: one of them is none."""
    for number in (~totals.isfinite()).nonzero().flatten().tolist():
        return Violation(PROBABILITIES, f"the sum over all pairs is {float(totals[number])}", int(ptr[number]))
    return None


def check_probabilities(pattern: torch.nn.Module, affinity: Any, batch: Tensor, ptr: Tensor, graph: Data) -> None:
    """Refuse a pattern whose probabilities are none in a sample of :data:`SAMPLE` pairs of each document.

    What is wrong elsewhere is :func:`socialgraph.testing.check_pattern`'s to find.

    Args:
        pattern: is named in errors.
        affinity: what it answers.
        batch: document of each node, sorted, ``[N]``.
        ptr: the documents' bounds, ``[B + 1]``.
        graph: knows the documents' names.

    Raises:
        ContractError: names the class, the contract and the document.
    """
    refuse(pattern, affinity_violation(affinity, batch), batch, graph)
    i, j = sample(ptr, batch.numel())
    p = affinity.pair(torch.cat([i, j]), torch.cat([j, i]))
    refuse(pattern, value_violation(p, [2 * i.numel()], batch.device), batch, graph)
    there, back = p.detach().view(2, -1)
    refuse(pattern, pair_violation(i, j, there, back, ptr), batch, graph)


def sample(ptr: Tensor, size: int) -> Tensor:
    """Return :data:`SAMPLE` pairs of nodes of each document, ``[2, B * SAMPLE]``; some are of a node with itself."""
    bounds = ptr.double()[:, None]
    places = bounds[:-1].lerp(bounds[1:], PLACES.to(ptr.device)[:, None])
    return places.long().clamp_(max=size - 1).flatten(1)  # a document without nodes may begin behind the last node
