"""What edges, circles and probabilities must be: right answers pass, and of wrong ones the first contract is named.

What checks do with it: testing/, trust/test_broken_classes.py. Undirected edges: partition/test_check_graph.py.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from socialgraph.contracts import (
    CIRCLES,
    SAMPLE,
    TOLERANCE,
    circle_violation,
    circles_hold,
    edge_violation,
    form_violation,
    pair_violation,
    sample,
    weight_violation,
)

#: three documents, the second of which is empty; two circles of the first and one of the third
BATCH = torch.tensor([0, 0, 0, 0, 2, 2])
INDEX = torch.tensor([[0, 1, 1, 3, 4, 5], [0, 0, 1, 1, 2, 2]])
LEADER = torch.tensor([1, 3, 4])


def circles(*members: list[int]) -> torch.Tensor:
    """Return a hyperedge index of circles by their members."""
    pairs = [(node, number) for number, some in enumerate(members) for node in some]
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T


@pytest.mark.parametrize(
    ("answer", "contract", "what"),
    [
        ((INDEX - 1, LEADER), "members are nodes", "membership 0: node -1 in circle -1, of 6 nodes and 3 circles"),
        ((INDEX, LEADER + 5), "leaders are nodes", "circle 0 is led by 6 with the members 0, 1"),
        ((INDEX, LEADER[:2]), "circles are numbered from 0, one for each leader", "membership 4: node 4 in circle 2"),
        ((INDEX * 2**61, LEADER), "members are nodes", "membership 1: node 2305843009213693952 in circle 0"),
        ((INDEX.flip(1), LEADER), "memberships are sorted by circle and node, none is there twice", "membership 1"),
        ((INDEX.repeat_interleave(2, 1), LEADER), "memberships are sorted by circle and node, none is there twice", ""),
        ((INDEX, torch.tensor([2, 3, 4])), "a leader is a member of its circle", "circle 0 is led by 2 with the mem"),
        ((circles([0, 1], [], [4]), torch.tensor([0, 0, 4])), "a leader is a member of its circle", "circle 1 is led"),
        ((circles([0, 4]), torch.tensor([0])), "a circle lies in one document", "membership 1: node 4 in circle 0"),
        ((circles([4, 5], [0]), torch.tensor([4, 0])), "circles go document by document", "circle 1 is led by 0"),
    ],
)
def test_the_first_broken_contract_of_circles(answer: Any, contract: str, what: str) -> None:
    violation = circle_violation(answer, BATCH)
    assert violation is not None
    assert violation.contract == contract
    assert what in violation.text


def test_right_circles_pass() -> None:
    nothing = torch.empty(2, 0, dtype=torch.long), torch.empty(0, dtype=torch.long)
    assert circle_violation((INDEX, LEADER), BATCH) is None
    assert circle_violation(nothing, BATCH) is None
    assert circle_violation(nothing, BATCH[:0]) is None
    assert (
        circle_violation((circles(range(4), range(4)), torch.tensor([0, 0])), BATCH) is None
    )  # equal ones, one leader


def holds(index: list[tuple[int, int]], leaders: list[int], batch: list[int]) -> bool:
    """Whether circles are as they should be, read off their definition."""
    members = [[node for circle, node in index if circle == number] for number in range(len(leaders))]
    return (
        all(0 <= circle < len(leaders) and 0 <= node < len(batch) for circle, node in index)
        and index == sorted({*index})
        and all(leader in some for leader, some in zip(leaders, members, strict=True))
        and all(len({batch[node] for node in some}) == 1 for some in members)
        and [batch[leader] for leader in leaders] == sorted(batch[leader] for leader in leaders)
    )


@cases(300)
@given(st.data())
def test_circles_pass_where_their_definition_holds(data: st.DataObject) -> None:
    """Small numbers, so that many answers pass, and many break one contract by one place."""
    batch = sorted(data.draw(st.lists(st.integers(0, 2), max_size=6)))
    nodes = st.integers(-1, len(batch))
    pairs = data.draw(st.lists(st.tuples(st.integers(-1, 3), nodes), max_size=5))
    pairs = data.draw(st.sampled_from([pairs, sorted(pairs + pairs[:1]), sorted({*pairs})]))
    members = [[node for number, node in pairs if number == circle] for circle in sorted({c for c, _ in pairs})]
    leaders = list(data.draw(st.one_of(st.lists(nodes, max_size=3), st.tuples(*map(st.sampled_from, members)))))
    index = torch.tensor([(node, circle) for circle, node in pairs], dtype=torch.long).reshape(-1, 2).T
    answer = index, torch.tensor(leaders, dtype=torch.long)
    document = torch.tensor(batch, dtype=torch.long)
    assert circles_hold(*answer, document) == holds(pairs, leaders, batch)
    assert (circle_violation(answer, document) is None) == holds(pairs, leaders, batch)


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (None, "forward must return (circle_index, leader_index), got NoneType"),
        ([INDEX, LEADER], "forward must return (circle_index, leader_index), got list"),
        ((INDEX, LEADER, LEADER), "forward must return (circle_index, leader_index), got tuple"),
        ((INDEX.numpy(), LEADER), "circle_index must be a tensor, got ndarray"),
        ((INDEX.to_sparse(), LEADER), "circle_index must be dense, got torch.sparse_coo"),
        ((INDEX, LEADER.float()), "leader_index must be torch.int64 on cpu, got torch.float32 on cpu"),
        ((INDEX, LEADER.to("meta")), "leader_index must be torch.int64 on cpu, got torch.int64 on meta"),
        ((INDEX.T, LEADER), "circle_index must have the shape [2, M], got [6, 2]"),
        ((INDEX, LEADER[:, None]), "leader_index must have the shape [C], got [3, 1]"),
    ],
)
def test_the_form_of_an_answer(answer: Any, what: str) -> None:
    assert form_violation(answer, CIRCLES, torch.device("cpu")) == what


def test_weights_of_edges() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weight = torch.tensor([0.5, 0.5, 0.25, 0.25])
    assert edge_violation(edge_index, weight, BATCH) is None
    for wrong, contract in (
        (weight * torch.tensor([1.0, 0.5, 1.0, 1.0]), "both directions of an edge have one weight"),
        (-weight, "weights are finite and not negative"),
        (weight * torch.nan, "weights are finite and not negative"),
    ):
        violation = edge_violation(edge_index, wrong, BATCH)
        assert violation is not None
        assert violation.contract == contract
        assert violation.text.startswith("edge 0 joins node 0 and node 1, weight ")
    assert edge_violation(edge_index[:, ::2], weight[::2], BATCH, undirected=False) is None
    assert edge_violation(edge_index[:, ::2], None, BATCH) is not None


def test_probabilities_may_be_rounded() -> None:
    i, j, half = torch.tensor([2, 3]), torch.tensor([2, 5]), torch.full((2,), 0.5, dtype=torch.float64)
    assert pair_violation(i, j, half, half + 0.9 * TOLERANCE) is None
    assert pair_violation(i, j, half + 0.5 + 0.9 * TOLERANCE, half + 0.5) is None
    assert pair_violation(i[:1], j[:1], half[:1] * torch.nan, half[:1]) is None  # of a node with itself: not read
    for p, back, contract in (
        (half, half + 1.1 * TOLERANCE, "probabilities are symmetric"),
        (half + 0.5 + 1.1 * TOLERANCE, half, "probabilities lie between 0 and 1"),
        (half * torch.nan, half, "probabilities lie between 0 and 1"),
    ):
        violation = pair_violation(i, j, p, back, ptr=torch.tensor([0, 2, 9]))
        assert violation is not None
        assert violation.contract == contract
        assert violation.text.startswith("P(1, 3) = ")


def test_weights_of_nodes() -> None:
    assert weight_violation(torch.arange(6), BATCH) is None
    assert weight_violation(torch.ones(6, dtype=torch.bool), BATCH) is None
    for weights, what in (
        (None, "weights must return a dense tensor, [6], got NoneType"),
        (torch.ones(5), "weights must return a dense tensor, [6], got [5]"),
        (torch.ones(6) + 0j, "weights must be real numbers, got torch.complex64"),
        (torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, torch.inf]), "the weight of place 1 is inf"),
    ):
        violation = weight_violation(weights, BATCH)
        assert violation is not None
        assert what in violation.text


def test_the_sample_is_of_pairs_within_documents() -> None:
    lengths = torch.tensor([0, 1, 2, 3, 90, 0])
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    i, j = sample(ptr, 96)
    document = torch.arange(6).repeat_interleave(SAMPLE)
    some = lengths[document] > 0
    for x in (i, j):
        assert ((x >= ptr[document]) & (x < ptr[document + 1]))[some].all()
    assert (i == j)[~some].all()
    long = document == 4
    assert (i != j)[long].sum() > 28
    assert i[long].unique().numel() > 20
