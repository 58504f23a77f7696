"""What every answer of a partition obeys, and circles in words."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from socialgraph.errors import LawError
from socialgraph.partition import Partition
from socialgraph.testing.graphs import Graph
from socialgraph.testing.laws import name_of

# Each returns the offence in words, or nothing.


def form(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """circle_index is [2, M] and leader_index [C], int64, on the graph's device."""
    for name, x, shape in (("circle_index", circle_index, "[2, M]"), ("leader_index", leader_index, "[C]")):
        if not isinstance(x, Tensor):
            return f"{name} must be a tensor, got {type(x).__name__}"
        if x.dtype != torch.long or x.device != graph.batch.device:
            return f"{name} must be int64 on {graph.batch.device}, got {x.dtype} on {x.device}"
        if x.dim() != len(shape.split(",")) or (x.dim() == 2 and x.size(0) != 2):
            return f"{name} must have the shape {shape}, got {list(x.shape)}"
    return None


def nodes_exist(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """Members and leaders are nodes of the graph."""
    size = graph.batch.numel()
    for name, x in (("member", circle_index[0]), ("leader", leader_index)):
        wrong = x[(x < 0) | (x >= size)]
        if wrong.numel():
            which = (x == wrong[0]).nonzero()[0, 0]
            number = int(which if name == "leader" else circle_index[1, which])
            return f"circle {number} has the {name} {int(wrong[0])}, but nodes are 0 to {size - 1}"
    return None


def circles_are_numbered(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """Circles have the numbers 0 ... C - 1, each has a member, and there are C leaders."""
    count = leader_index.numel()
    wrong = circle_index[1][(circle_index[1] < 0) | (circle_index[1] >= count)]
    if wrong.numel():
        return f"there is a circle {int(wrong[0])}, but leaders only for {count} circles, from 0"
    without = (torch.bincount(circle_index[1], minlength=count) == 0).nonzero().flatten()
    return f"circle {int(without[0])} has a leader but no member" if without.numel() else None


def sorted_by_circle_and_node(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """Memberships are sorted by circle, those of a circle by node."""
    node, circle = circle_index
    falls = (circle.diff() < 0) | ((circle.diff() == 0) & (node.diff() < 0))
    if not bool(falls.any()):
        return None
    at = int(falls.nonzero()[0, 0])
    one, two = circle_index[:, at].tolist(), circle_index[:, at + 1].tolist()
    return f"node {one[0]} of circle {one[1]} stands before node {two[0]} of circle {two[1]}"


def nobody_is_twice_in_a_circle(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """A node is a member of a circle once."""
    twice = (circle_index.diff(dim=1) == 0).all(0).nonzero().flatten()
    if not twice.numel():
        return None
    node, circle = circle_index[:, int(twice[0])].tolist()
    return f"circle {circle} has the node {node} twice"


def a_circle_lies_in_one_document(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """All members of a circle belong to one document."""
    node, circle = circle_index
    same = circle.diff() == 0
    apart = (same & (graph.batch[node].diff() != 0)).nonzero().flatten()
    if not apart.numel():
        return None
    one, two = node[apart[0]], node[apart[0] + 1]
    where = f"node {int(one)} of document {int(graph.batch[one])} and node {int(two)} of {int(graph.batch[two])}"
    return f"circle {int(circle[apart[0]])} has {where}"


def the_leader_is_a_member(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """The leader of a circle is one of its members."""
    node, circle = circle_index
    leads = torch.zeros_like(leader_index, dtype=torch.bool)
    leads[circle[leader_index[circle] == node]] = True
    without = (~leads).nonzero().flatten()
    return shown(circle_index, leader_index, int(without[0])) if without.numel() else None


def circles_go_document_by_document(graph: Graph, circle_index: Tensor, leader_index: Tensor) -> str | None:
    """The circles of a document come before those of the next."""
    document = graph.batch[leader_index]
    back = (document.diff() < 0).nonzero().flatten()
    if not back.numel():
        return None
    at = int(back[0])
    return f"circle {at} is of document {int(document[at])}, circle {at + 1} of document {int(document[at + 1])}"


#: what every answer obeys, in the order in which it is checked
ANSWER_LAWS: tuple[Callable[[Graph, Tensor, Tensor], str | None], ...] = (
    form,
    nodes_exist,
    circles_are_numbered,
    sorted_by_circle_and_node,
    nobody_is_twice_in_a_circle,
    a_circle_lies_in_one_document,
    the_leader_is_a_member,
    circles_go_document_by_document,
)


#: (leader, members) of each circle of each document, in the document's own ids
Circles = list[list[tuple[int, list[int]]]]


def answer(partition: Partition, graph: Graph) -> tuple[Tensor, Tensor]:
    """Return the circles of ``graph``.

    Raises:
        LawError: they break one of the :data:`ANSWER_LAWS`.
    """
    given = graph.to(graph.batch.device)  # a copy, in case it is changed
    words = given.data() if partition.sees_graph else None
    found = partition.gathered(given.edge_index, given.batch, given.batch_size, given.edge_weight, words)
    if not isinstance(found, tuple) or len(found) != 2:
        what = f"forward must return (circle_index, leader_index), got {type(found).__name__}"
        raise LawError(partition, name_of(form), graph.name, what)
    for law in ANSWER_LAWS:
        offence = law(graph, *found)
        if offence:
            raise LawError(partition, name_of(law), graph.name, offence)
    return found


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
    found: Circles = [[] for _ in start]
    for leader, nodes in zip(leader_index.tolist(), members, strict=True):
        document = int(graph.batch[leader])
        found[document].append((leader - start[document], [node - start[document] for node in nodes]))
    return found


def difference(one: Circles, two: Circles, when: str, then: str) -> str | None:
    """Return the first circle that differs, in words."""
    for document, (before, after) in enumerate(zip(one, two, strict=True)):
        for number in range(max(len(before), len(after))):
            x, y = (in_words(*some[number]) if number < len(some) else "not there" for some in (before, after))
            if before[number : number + 1] != after[number : number + 1]:
                return f"circle {number} of document {document} is {x} {when}, {y} {then}"
    return None


def shown(circle_index: Tensor, leader_index: Tensor, number: int) -> str:
    """Return a circle in words."""
    members = circle_index[0, circle_index[1] == number].tolist()
    return f"circle {number} is {in_words(int(leader_index[number]), members)}"


def in_words(leader: int, members: list[int]) -> str:
    """Return leader and members in words, not all of many."""
    some = ", ".join(map(str, members[:12])) + (f", ... ({len(members)})" if len(members) > 12 else "")
    return f"led by {leader} with the members {some}"
