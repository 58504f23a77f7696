"""The contract of a partition, tried on hard graphs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.contracts import Violation, circle_text, circle_violation
from socialgraph.edges import SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import OptionError
from socialgraph.partition import Partition
from socialgraph.testing.graphs import equal_friends, hard_graphs, without_match
from socialgraph.testing.trial import Refuse, check_answers, trial, unnamed_argument

#: leader and members of each circle of a document, in the document's own ids
Circles = list[tuple[int, list[int]]]
#: standard deviations from which on a mean position is no chance
NO_CHANCE = 6.0


def check_partition(partition: Partition, device: torch.device | str = "cpu") -> None:
    """Check that a partition keeps its contract, on small hard graphs; say nothing where it does.

    Empty documents, one word, stars, cliques, random friends, equal weights and batches of them: every answer has the
    form of :func:`socialgraph.contracts.circle_violation` and is the same whenever and in whatever company a document
    is asked about; where there are ``k`` and ``max_size``, they hold, and circles share no node where a class
    says ``node_level = True``; of friends of equal weight neither the first nor the last are chosen, unless it says
    ``by_place = True``; and an own ``from_sampled`` finds what ``forward`` finds. A partition whose ``forward`` names
    ``graph`` is tried with documents that have words of the query and scores of a first stage, and with others.

    Args:
        partition: an instance, such as ``MyPartition(k=4)``; it is copied for every graph.
        device: where the graphs lie.

    Raises:
        ContractError: names the contract, the graph and the circle.
        OptionError: not an instance of :class:`Partition`.
    """
    if not isinstance(partition, Partition):
        raise OptionError(f"check_partition takes an instance of a Partition, such as MyPartition(), got {partition!r}")
    graphs = hard_graphs(device)
    with trial(partition, "none yet") as (one, refuse):
        refuse(unnamed_argument(one))
        if one.sees_graph:
            graphs |= {f"{name}, no query match": without_match(graph) for name, graph in graphs.items()}
    max_size = getattr(partition, "max_size", None)
    friends = equal_friends(40 + (min(max_size, 128) if isinstance(max_size, int) else 60), device)  # more than fit
    graphs["random friends of equal weight"] = friends
    for name, graph in graphs.items():
        with trial(partition, name) as (one, refuse):
            circles = check_answers(one, partial(_ask, one, refuse), graph, _difference, refuse)
            for number, own in enumerate(circles):
                refuse(_excess(one, number, own))
            if graph is friends and not one.by_place:
                refuse(_position_bias(graph, circles))
            _ask(one, refuse, graph, is_weighted=False)
    for name, graph in graphs.items() if type(partition).from_sampled is not Partition.from_sampled else ():
        with trial(partition, name) as (one, refuse):
            _check_undrawn(one, graph, refuse)


def _unpack(answer: tuple[Tensor, Tensor], graph: Batch, refuse: Refuse) -> list[Circles]:
    """Return an answer document by document, if it is one."""
    refuse(circle_violation(answer, graph.batch))
    documents: list[Circles] = [[] for _ in range(graph.num_graphs)]
    circle_index, leaders = answer[0], answer[1].tolist()
    for number, leader in enumerate(leaders):
        document = int(graph.batch[leader])
        start = int(graph.ptr[document])
        members = (circle_index[0, circle_index[1] == number] - start).tolist()
        documents[document].append((leader - start, members))
    return documents


def _ask(partition: Partition, refuse: Refuse, graph: Batch, is_weighted: bool = True) -> list[Circles]:
    """Return the circles of each document of a graph that has its edges."""
    weight = graph.edge_weight if is_weighted else None
    answer = partition.gathered(graph.edge_index, graph.batch, graph.num_graphs, weight, graph)
    return _unpack(answer, graph, refuse)


def _check_undrawn(partition: Partition, graph: Batch, refuse: Refuse) -> None:
    """Refuse a partition that finds other circles where edges are not drawn yet."""
    sampled = SocialEdges([StaticDistance(), StaticCentrality()], sparsity=0.6).sampled(graph)
    drawn = graph.clone()
    drawn.edge_index, drawn.edge_weight = sampled.edges()
    circles = _ask(partition, refuse, drawn)
    for one, other in zip(circles, _unpack(partition.from_sampled(sampled), graph, refuse), strict=True):
        if what := _difference(one, other, "by from_sampled"):
            refuse(Violation("undrawn edges give the same circles", what))


def _difference(one: Circles, other: Circles, how: str) -> str | None:
    """Return the first circle that differs, in words."""
    for number in range(max(len(one), len(other))):
        x, y = (circle_text(*some[number]) if number < len(some) else "not there" for some in (one, other))
        if one[number : number + 1] != other[number : number + 1]:
            return f"circle {number} is {x}; {how} it is {y}"
    return None


def _excess(partition: Partition, document: int, circles: Circles) -> Violation | None:
    """Return what breaks the promises of a partition that has ``k``, ``max_size`` or ``node_level``."""
    k, max_size = (getattr(partition, name, None) for name in ("k", "max_size"))
    if isinstance(k, int) and len(circles) > k:
        return Violation("no more than k circles", f"document {document} has {len(circles)} circles, but k is {k}")
    seen: set[int] = set()
    for number, (leader, members) in enumerate(circles):
        what = f"circle {number} of document {document} is {circle_text(leader, members)}"
        if isinstance(max_size, int) and len(members) > max_size:
            return Violation("no more than max_size members", f"{what}, but max_size is {max_size}")
        if getattr(partition, "node_level", False) and not seen.isdisjoint(members):
            return Violation("circles share no node", f"{what}, of which an earlier one has {min(seen & {*members})}")
        seen |= {*members}
    return None


def _position_bias(graph: Batch, circles: Sequence[Circles]) -> Violation | None:
    """Return to which end of documents the first circle of each leans, though its leader's friends are all equal.

    Of m equal friends n are taken. Taken at random, their mean rank is (m - 1) / 2 with the variance
    (m + 1) (m - n) / 12 n; means and variances of the documents add up.
    """
    distance = variance = 0.0
    for start, own in zip(graph.ptr[:-1].tolist(), circles, strict=True):
        leader, members = own[0] if own else (-1, [])
        friends = (graph.edge_index[1, graph.edge_index[0] == start + leader] - start).tolist()
        rank = [friends.index(node) for node in members if node in friends]
        if 0 < len(rank) < len(friends):
            distance += sum(rank) / len(rank) - (len(friends) - 1) / 2
            variance += (len(friends) + 1) * (len(friends) - len(rank)) / (12 * len(rank))
    if abs(distance) <= NO_CHANCE * variance**0.5:
        return None
    what = f"of a leader's equal friends those at the {'start' if distance < 0 else 'end'} of the document are taken"
    return Violation(
        "ties do not depend on position",
        f"{what}; break ties by a hash of the pair, or say by_place = True where places are meant to count",
    )
