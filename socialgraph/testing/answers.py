"""Answers of a partition, held against the laws of an answer, and compared."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.errors import LawError
from socialgraph.partition import Partition
from socialgraph.partition.laws import first_broken, in_words
from socialgraph.testing.graphs import Graph

#: (leader, members) of each circle of each document, in the document's own ids
Circles = list[list[tuple[int, list[int]]]]


def answer(partition: Partition, graph: Graph) -> tuple[Tensor, Tensor]:
    """Return the circles of ``graph``.

    Raises:
        LawError: they break one of the :data:`~socialgraph.partition.laws.ANSWER_LAWS`.
    """
    given = graph.to(graph.batch.device)  # a copy, in case it is changed
    words = given.data() if partition.sees_graph else None
    circles = partition.gathered(given.edge_index, given.batch, given.batch_size, given.edge_weight, words)
    broken = first_broken(graph.batch, circles)
    if broken:
        raise LawError(partition, broken[0], graph.name, broken[1].text)
    return circles


def circles(partition: Partition, graph: Graph) -> Circles:
    """Return the circles of each document in a form that can be compared."""
    return unpack(graph, *answer(partition, graph))


def unpack(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> Circles:
    """Return circles as lists, document by document."""
    length = torch.bincount(graph.batch, minlength=graph.batch_size)
    start = (length.cumsum(0) - length).tolist()
    members: list[list[int]] = [[] for _ in leader_index]
    for node, circle in circle_index.T.tolist():
        members[circle].append(node)
    result: Circles = [[] for _ in start]
    for leader, nodes in zip(leader_index.tolist(), members, strict=True):
        document = int(graph.batch[leader])
        result[document].append((leader - start[document], [node - start[document] for node in nodes]))
    return result


def difference(one: Circles, two: Circles, when: str, then: str) -> str | None:
    """Return the first circle that differs, in words."""
    for document, (before, after) in enumerate(zip(one, two, strict=True)):
        for number in range(max(len(before), len(after))):
            x, y = (in_words(*some[number]) if number < len(some) else "not there" for some in (before, after))
            if before[number : number + 1] != after[number : number + 1]:
                return f"circle {number} of document {document} is {x} {when}, {y} {then}"
    return None
