"""What every answer of a partition obeys: checked on each batch, and by :func:`socialgraph.testing.check_partition`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from socialgraph.errors import LawError, blaming, law_name
from socialgraph.partition.partition import Partition


class Offence(NamedTuple):
    """What is wrong, in words, and a node of the document in which it is, where one is known."""

    text: str
    node: int | None = None


# --- the laws -------------------------------------------------------------------------------------
# Each may rely on those before it. `batch` is the document of each node, sorted, [N].


def form(batch: Tensor, circle_index: Any, leader_index: Any) -> Offence | None:
    """circle_index is [2, M] and leader_index [C], int64, on the graph's device."""
    for name, x, shape in (("circle_index", circle_index, "[2, M]"), ("leader_index", leader_index, "[C]")):
        if not isinstance(x, Tensor):
            return Offence(f"{name} must be a tensor, got {type(x).__name__}")
        if x.layout != torch.strided or x.is_nested:
            return Offence(f"{name} must be dense, got {'nested' if x.is_nested else x.layout}")
        if x.dtype != torch.long or x.device != batch.device:
            return Offence(f"{name} must be int64 on {batch.device}, got {x.dtype} on {x.device}")
        if x.dim() != len(shape.split(",")) or (x.dim() == 2 and x.size(0) != 2):
            return Offence(f"{name} must have the shape {shape}, got {list(x.shape)}")
    return None


def nodes_exist(batch: Tensor, circle_index: Tensor, leader_index: Tensor) -> Offence | None:
    """Members and leaders are nodes of the graph."""
    size = batch.numel()
    for name, x in (("member", circle_index[0]), ("leader", leader_index)):
        wrong = x[(x < 0) | (x >= size)]
        if wrong.numel():
            which = (x == wrong[0]).nonzero()[0, 0]
            number = int(which if name == "leader" else circle_index[1, which])
            return Offence(f"circle {number} has the {name} {int(wrong[0])}, but nodes are 0 to {size - 1}")
    return None


def circles_are_numbered(batch: Tensor, circle_index: Tensor, leader_index: Tensor) -> Offence | None:
    """Circles have the numbers 0 ... C - 1, each has a member, and there are C leaders."""
    count = leader_index.numel()
    wrong = ((circle_index[1] < 0) | (circle_index[1] >= count)).nonzero().flatten()
    if wrong.numel():
        node, circle = circle_index[:, int(wrong[0])].tolist()
        return Offence(f"there is a circle {circle}, but leaders only for {count} circles, from 0", node)
    without = (torch.bincount(circle_index[1], minlength=count) == 0).nonzero().flatten()
    if not without.numel():
        return None
    number = int(without[0])
    return Offence(f"circle {number} has a leader but no member", int(leader_index[number]))


def sorted_by_circle_and_node(batch: Tensor, circle_index: Tensor, leader_index: Tensor) -> Offence | None:
    """Memberships are sorted by circle, those of a circle by node."""
    node, circle = circle_index
    falls = (circle.diff() < 0) | ((circle.diff() == 0) & (node.diff() < 0))
    if not bool(falls.any()):
        return None
    at = int(falls.nonzero()[0, 0])
    one, two = circle_index[:, at].tolist(), circle_index[:, at + 1].tolist()
    return Offence(f"node {one[0]} of circle {one[1]} stands before node {two[0]} of circle {two[1]}", one[0])


def nobody_is_twice_in_a_circle(batch: Tensor, circle_index: Tensor, leader_index: Tensor) -> Offence | None:
    """A node is a member of a circle once."""
    twice = (circle_index.diff(dim=1) == 0).all(0).nonzero().flatten()
    if not twice.numel():
        return None
    node, circle = circle_index[:, int(twice[0])].tolist()
    return Offence(f"circle {circle} has the node {node} twice", node)


def a_circle_lies_in_one_document(batch: Tensor, circle_index: Tensor, leader_index: Tensor) -> Offence | None:
    """All members of a circle belong to one document."""
    node, circle = circle_index
    same = circle.diff() == 0
    apart = (same & (batch[node].diff() != 0)).nonzero().flatten()
    if not apart.numel():
        return None
    one, two = node[apart[0]], node[apart[0] + 1]
    where = f"node {int(one)} of document {int(batch[one])} and node {int(two)} of {int(batch[two])}"
    return Offence(f"circle {int(circle[apart[0]])} has {where}", int(one))


def the_leader_is_a_member(batch: Tensor, circle_index: Tensor, leader_index: Tensor) -> Offence | None:
    """The leader of a circle is one of its members."""
    node, circle = circle_index
    leads = torch.zeros_like(leader_index, dtype=torch.bool)
    leads[circle[leader_index[circle] == node]] = True
    without = (~leads).nonzero().flatten()
    if not without.numel():
        return None
    members = node[circle == without[0]]
    described = in_words(int(leader_index[without[0]]), members.tolist())
    return Offence(f"circle {int(without[0])} is {described}", int(members[0]))


def circles_go_document_by_document(batch: Tensor, circle_index: Tensor, leader_index: Tensor) -> Offence | None:
    """The circles of a document come before those of the next."""
    document = batch[leader_index]
    back = (document.diff() < 0).nonzero().flatten()
    if not back.numel():
        return None
    at = int(back[0])
    reason = f"circle {at} is of document {int(document[at])}, circle {at + 1} of document {int(document[at + 1])}"
    return Offence(reason, int(leader_index[at]))


#: what every answer obeys, in the order in which it is checked
ANSWER_LAWS: tuple[Callable[[Tensor, Tensor, Tensor], Offence | None], ...] = (
    form,
    nodes_exist,
    circles_are_numbered,
    sorted_by_circle_and_node,
    nobody_is_twice_in_a_circle,
    a_circle_lies_in_one_document,
    the_leader_is_a_member,
    circles_go_document_by_document,
)


# --- all of them ----------------------------------------------------------------------------------


def first_broken(batch: Tensor, answer: Any) -> tuple[str, Offence] | None:
    """Return the first law that an answer breaks, and how, or nothing."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        what = f"forward must return (circle_index, leader_index), got {type(answer).__name__}"
        return law_name(form), Offence(what)
    for law in ANSWER_LAWS:
        offence = law(batch, *answer)
        if offence:
            return law_name(law), offence
    return None


def all_hold(batch: Tensor, circle_index: Tensor, leader_index: Tensor) -> bool:
    """Whether all laws but that of form hold: the same as :func:`first_broken`, in O(M).

    In few calls, of which the draw has made most: in a batch of short documents the check costs what it calls, not what
    it computes. Just after the draw a first call of NumPy takes ten times its usual time, as nothing of it is in the
    processor's caches.
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


def checked(
    partition: Partition, gather: Callable[[], Any], batch: Tensor, given: Mapping[str, Any], name: Callable[[int], str]
) -> tuple[Tensor, Tensor]:
    """Return what a partition answers, if it obeys the laws.

    Args:
        partition: is named in errors.
        gather: asks it.
        batch: document of each node, sorted, ``[N]``.
        given: the tensors that it was given, by name; it must not change them.
        name: of a document, by its number.

    Raises:
        LawError: it breaks a law, or raises something; the message names the class, the law and the document.
    """
    kept = {key: _version(x) for key, x in given.items()}
    with blaming(partition, "the batch"):  # a tensor too large for memory raises where one looks at it
        answer = gather()
        for key, x in given.items():
            if _version(x) != kept[key]:
                raise LawError(partition, "inputs stay as they are", "the batch", f"{key} is changed in place")
        is_formed = isinstance(answer, tuple) and len(answer) == 2 and form(batch, *answer) is None
        if not (is_formed and all_hold(batch, *answer)):
            law, offence = first_broken(batch, answer) or ("form", Offence("its answer is out of order"))
            known = offence.node is not None and 0 <= offence.node < batch.numel()
            where = name(int(batch[offence.node])) if known else "the batch"
            raise LawError(partition, law, where, offence.text)
    circle_index, leader_index = answer
    return circle_index, leader_index


def _version(x: Any) -> int | None:
    """Return a number that grows whenever a tensor is written to; nothing for what has none (inference tensors)."""
    return x._version if isinstance(x, Tensor) and not x.is_inference() else None


def in_words(leader: int, members: list[int]) -> str:
    """Return leader and members in words, not all of many."""
    some = ", ".join(map(str, members[:12])) + (f", ... ({len(members)})" if len(members) > 12 else "")
    return f"led by {leader} with the members {some}"
