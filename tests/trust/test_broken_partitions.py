"""Partitions of one's own that misbehave: each ends in one line that names class, law and document."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from broken_classes import PAIRS, collection, one_line
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from socialgraph.errors import LawError
from socialgraph.partition import NodeCircles, Windows
from socialgraph.partition.laws import all_hold, first_broken
from socialgraph.ranking.memory import is_out_of_memory


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return collection(tmp_path_factory.mktemp("bert"))


#: what is done to right circles: (members, circles, leaders) -> answer; others, one for each law that is broken, and
#: that the laws at once are those: tests/testing/broken_partitions.py and below
Answer = Callable[[Tensor, Tensor, Tensor], Any]
ANSWERS: dict[str, Answer] = {
    "nothing": lambda n, c, x: None,
    "three things": lambda n, c, x: (torch.stack([n, c]), x, x),
    "a list": lambda n, c, x: [torch.stack([n, c]), x],
    "no leaders": lambda n, c, x: (torch.stack([n, c]), None),
    "lists": lambda n, c, x: ([n.tolist(), c.tolist()], x.tolist()),
    "three columns": lambda n, c, x: (torch.stack([n, c, c]), x),
    "one row": lambda n, c, x: (n, x),
    "leaders in a column": lambda n, c, x: (torch.stack([n, c]), x[:, None]),
    "leaders as floats": lambda n, c, x: (torch.stack([n, c]), x.double()),
    "int32": lambda n, c, x: (torch.stack([n, c]).int(), x),
    "leaders as int32": lambda n, c, x: (torch.stack([n, c]), x.int()),
    "a node too high": lambda n, c, x: (torch.stack([n + 1_000_000 * (n == n.max()), c]), x),
    "a node below 0": lambda n, c, x: (torch.stack([n - 1_000 * (n == n.min()), c]), x),
    "leaders too high": lambda n, c, x: (torch.stack([n, c]), x + 1_000_000),
    "circles from 1": lambda n, c, x: (torch.stack([n, c + 1]), x),
    "circles below 0": lambda n, c, x: (torch.stack([n, c - 1]), x),
    "a circle of 2^62": lambda n, c, x: (torch.stack([n, c + 2**62 * (c == 1)]), x),
    "a leader too many": lambda n, c, x: (torch.stack([n, c]), torch.cat([x, x[-1:]])),
    "a leader too few": lambda n, c, x: (torch.stack([n, c]), x[:-1]),
    "leaders alone": lambda n, c, x: (torch.stack([n, c])[:, :0], x),
    "an empty circle": lambda n, c, x: (torch.stack([n, c])[:, c != 1], x),
    "sorted by node": lambda n, c, x: (torch.stack([n, c])[:, n.argsort(stable=True)], x),
    "leaders of another circle": lambda n, c, x: (torch.stack([n, c]), x.roll(3)),
    "out of bounds inside": lambda n, c, x: n[1_000_000],
    "shapes that do not fit": lambda n, c, x: torch.stack([n, x]),
    "sparse": lambda n, c, x: (torch.stack([n, c]).to_sparse(), x),
    "nested": lambda n, c, x: (torch.stack([n, c]), torch.nested.nested_tensor([x], layout=torch.jagged)),
    "more leaders than memory": lambda n, c, x: (torch.stack([n, c]), x[:1].expand(1 << 40)),
    "the end of the program": lambda n, c, x: sys.exit(0),
    "an error without words": lambda n, c, x: raise_wordless(),
}  # fmt: skip


class Wordless(Exception):
    """Its words are broken, too."""

    def __str__(self) -> str:
        raise RuntimeError


def raise_wordless() -> None:
    raise Wordless


class Broken(NodeCircles):
    """Right circles, and what somebody makes of them."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(k=3, max_size=9)
        self.answer = answer

    def forward(self, *graph: Any) -> Any:
        (node, circle), leader = super().forward(*graph)
        return self.answer(node, circle, leader)

    def from_sampled(self, graph: Any) -> Any:
        edge_index, weight = graph.edges()
        return self.forward(edge_index, graph.batch, graph.batch_size, weight)


@pytest.mark.parametrize("keep_edges", [True, False])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_broken_partition(build, name, keep_edges):
    builder = build(circles=Broken(ANSWERS[name]), keep_edges=keep_edges)
    one_line(lambda: builder(PAIRS), "Broken(k=3")
    with torch.inference_mode():  # as re-ranking does
        one_line(lambda: builder(PAIRS), "Broken(k=3")


@pytest.mark.parametrize("which", [0, 1, 3], ids=["edge_index", "batch", "edge_weight"])
def test_a_partition_that_writes_into_its_input(build, which):
    class Writer(Windows):
        def forward(self, *graph):
            graph[which].add_(0)
            return super().forward(*graph)

    builder = build(circles=Writer(16), keep_edges=True)
    for mode in (False, True):
        with torch.inference_mode(mode):
            one_line(lambda: builder(PAIRS), "Writer(")


def test_the_line_names_class_law_document_and_place_in_the_file(build):
    leaders = one_line(lambda: build(circles=Broken(ANSWERS["leaders of another circle"]))(PAIRS), "Broken(")
    assert "'the leader is a member' on the graph 'document d0, query q1': circle 0 is led by" in leaders
    raised = one_line(lambda: build(circles=Broken(ANSWERS["out of bounds inside"]))(PAIRS), "Broken(")
    assert "it raises IndexError: index 1000000 is out of bounds" in raised
    assert "test_broken_partitions.py:" in raised


def test_one_that_has_no_repr_is_called_by_its_class(build):
    class Nameless(Broken):
        def __repr__(self):
            raise RuntimeError

    one_line(lambda: build(circles=Nameless(ANSWERS["nothing"]))(PAIRS), "Nameless breaks the law 'form'")


def test_what_a_partition_sets_in_its_graph_no_one_else_sees(build):
    class Setter(Windows):
        def forward(self, edge_index, batch, batch_size, edge_weight=None, graph=None):
            graph.input_ids, graph.query_ids = graph.input_ids * 0, None
            return super().forward(edge_index, batch, batch_size, edge_weight)

    got, want = (build(circles=circles(16), keep_edges=True)(PAIRS) for circles in (Setter, Windows))
    assert torch.equal(got.input_ids, want.input_ids)
    assert torch.equal(got.query_ids, want.query_ids)


def test_memory_that_runs_out_is_nobodys_fault(build):
    def full(*_: Tensor) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    with pytest.raises(LawError) as caught:
        build(circles=Broken(full))(PAIRS)
    assert is_out_of_memory(caught.value)


@cases(300)
@given(st.data())
def test_all_laws_at_once_are_the_laws_one_by_one(data):
    """Small numbers, so that many answers obey, and many break one law by one place."""
    batch = torch.tensor(sorted(data.draw(st.lists(st.integers(0, 2), max_size=6))), dtype=torch.long)
    nodes = st.integers(-1, batch.numel())
    pairs = data.draw(st.lists(st.tuples(st.integers(-1, 3), nodes), max_size=5))
    pairs = data.draw(st.sampled_from([pairs, sorted(pairs + pairs[:1]), sorted(set(pairs))]))
    members = [[node for number, node in pairs if number == circle] for circle in sorted({c for c, _ in pairs})]
    leaders = data.draw(st.one_of(st.lists(nodes, max_size=3), st.tuples(*map(st.sampled_from, members))))
    leaders = torch.tensor(leaders, dtype=torch.long)
    index = torch.tensor([(node, circle) for circle, node in pairs], dtype=torch.long).reshape(-1, 2).T
    assert all_hold(batch, index, leaders) == (first_broken(batch, (index, leaders)) is None)


def test_good_ones_pass(build, record_property):
    kept = build(circles=Broken(lambda n, c, x: (torch.stack([n, c]), x)), keep_edges=True)(PAIRS)
    assert kept.leader_index.numel() >= 6
    wrong = build(circles=Broken(ANSWERS["leaders of another circle"]), check=False)(PAIRS)  # nobody looks
    assert wrong.leader_index.numel() == kept.leader_index.numel()
    record_property("told", f"broken partitions: {len(ANSWERS)} kinds, each ends in one line")
