"""Classes of one's own that misbehave in a batch: each ends in one line that names class, contract and document."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import write_tiny_bert
from drawing import Rule, near
from tales import builder_of

from socialgraph.described import instantiate
from socialgraph.edges import Centrality, EdgeSampler, Pattern, SocialEdges, StaticDistance, Uniform
from socialgraph.edges.layout import documents
from socialgraph.errors import ContractError, OptionError
from socialgraph.partition import EdgeCircles, NodeCircles, Windows
from socialgraph.ranking.memory import is_out_of_memory

PAIRS = [("q1", "w1 w7", "d0"), ("q2", "w5", "empty"), ("q1", "w1 w7", "d1"), ("q3", "w2", "d2")]


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Build the graphs of four pairs."""
    folder = tmp_path_factory.mktemp("bert")
    write_tiny_bert(folder)
    lengths = {"d0": 90, "empty": 0, "d1": 60, "d2": 40}
    texts = {name: " ".join(f"w{7 * i % 60}" for i in range(n)) for name, n in lengths.items()}

    def make(patterns=(StaticDistance(),), circles=EdgeCircles(k=3, max_size=9), edges=None, **options):  # noqa: B008
        edges = edges or SocialEdges(patterns, sparsity=0.8)
        return builder_of(str(folder), texts, edges, circles, lengths=(120, 30), **options)(PAIRS)

    return make


def one_line(build: Callable[[], Any], name: str) -> str:
    """Return the line; there is one while re-ranking, too."""
    lines = []
    for mode in (True, False):
        with torch.inference_mode(mode), pytest.raises(ContractError) as caught:
            build()
        lines.append(str(caught.value))
    assert all(line.isprintable() and line.startswith(name) and "breaks the contract" in line for line in lines)
    return lines[1]


class Panic(BaseException):
    """What libraries in Rust raise: no Exception; here its words are broken, too."""

    def __str__(self) -> str:
        raise RuntimeError


def throw(error: BaseException) -> None:
    raise error


#: what is done to right circles: (circle_index, leader_index) -> answer; and a part of what is said
CIRCLES: dict[str, tuple[Callable[..., Any], str]] = {
    "nothing": (lambda i, x: None, "'form' on the graph 'the batch': forward must return (circle_index, leader_index)"),
    "other leaders": (lambda i, x: (i, x.flip(0)), "'a leader is a member of its circle' on the graph 'document d0, q"),
    "more leaders than memory": (lambda i, x: (i, x[:1].expand(1 << 40)), "'every graph gets an answer'"),
    "out of bounds": (lambda i, x: i[1_000_000], "it raises IndexError: index 1000000 is out of bounds"),
    "the end of the program": (lambda i, x: sys.exit(0), "it raises SystemExit"),
    "a panic without words": (lambda i, x: throw(Panic()), "it raises Panic"),
}


class Circles(NodeCircles):
    """Right circles, and what somebody makes of them."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        super().__init__(k=3, max_size=9)
        self.answer = answer

    def forward(self, *graph: Any) -> Any:
        return self.answer(*super().forward(*graph))

    def from_sampled(self, graph: Any) -> Any:
        edge_index, weight = graph.edges()
        return self.forward(edge_index, graph.batch, graph.batch_size, weight)


@pytest.mark.parametrize("keep_edges", [True, False])
@pytest.mark.parametrize("name", CIRCLES)
def test_a_broken_partition(build, name, keep_edges):
    answer, what = CIRCLES[name]
    line = one_line(lambda: build(circles=Circles(answer), keep_edges=keep_edges), "Circles(k=3")
    assert what in line
    assert ("test_broken_classes.py:" in line) == ("it raises" in what)  # the line of the file


@pytest.mark.parametrize("which", [0, 1, 3], ids=["edge_index", "batch", "edge_weight"])
def test_a_partition_that_writes_into_its_input(build, which):
    class Writer(Windows):
        def forward(self, *graph):
            graph[which].add_(0)
            return super().forward(*graph)

    line = one_line(lambda: build(circles=Writer(16), keep_edges=True), "Writer(")
    assert "'inputs stay as they are'" in line


def test_what_a_partition_sets_in_its_graph_no_one_else_sees(build):
    class Setter(Windows):
        def forward(self, edge_index, batch, batch_size, edge_weight=None, graph=None):
            graph.input_ids, graph.query_ids = graph.input_ids * 0, None
            return super().forward(edge_index, batch, batch_size, edge_weight)

    got, want = (build(circles=circles(16), keep_edges=True) for circles in (Setter, Windows))
    assert torch.equal(got.input_ids, want.input_ids)
    assert torch.equal(got.query_ids, want.query_ids)


def test_one_that_has_no_repr_is_called_by_its_class(build):
    class Nameless(Circles):
        def __repr__(self):
            raise RuntimeError

    one_line(lambda: build(circles=Nameless(lambda i, x: None)), "Nameless breaks the contract 'form'")


def test_memory_that_runs_out_is_nobodys_fault(build):
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    with pytest.raises(ContractError) as caught:
        build(circles=Circles(lambda i, x: throw(error)))
    assert is_out_of_memory(caught.value)


class Ruled(Pattern):
    def __init__(self, rule: Callable[..., Any]) -> None:
        super().__init__()
        self.rule = rule

    def forward(self, graph: Any) -> Any:
        return Rule(*documents(graph), self.rule)


class Weights(Centrality):
    def weights(self, graph: Any) -> Any:
        return torch.where(torch.arange(graph.num_nodes) == 9, NAN, 1.0)


RANGE, NAN = "'probabilities lie between 0 and 1' on the graph 'document d0", float("nan")
PATTERNS: dict[str, tuple[Pattern, str]] = {
    "NaN for one pair": (Ruled(lambda i, j: near(i, j).masked_fill((i + j == 3) & ((i - j).abs() == 1), NAN)), RANGE),
    "partly above one": (Ruled(lambda i, j: 10 * near(i, j)), RANGE),
    "one direction": (Ruled(lambda i, j: near(i, j) * (i < j)), "'probabilities are symmetric' on the graph 'doc"),
    "it raises": (Ruled(lambda i, j: near(i, j)[1_000_000]), "it raises IndexError"),
    "one weight of NaN": (Weights(), "of place 9 is nan"),
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_a_broken_pattern(build, name):
    pattern, what = PATTERNS[name]
    for patterns in ([pattern], [StaticDistance(), pattern, Uniform()]):
        assert what in one_line(lambda patterns=patterns: build(patterns), type(pattern).__name__)


#: what is done to a right answer: (edge_index, edge_weight) -> answer; and a part of what is said
EDGES: dict[str, tuple[Callable[..., Any], str]] = {
    "too few weights": (lambda e, w: (e, w[:-1]), "there are 374 edges and 373 weights"),
    "one direction": (lambda e, w: (e[:, e[0] < e[1]], w[e[0] < e[1]]), "'edges are undirected'"),
    "it raises": (lambda e, w: w[1_000_000], "it raises IndexError"),
}  # fmt: skip


class Chain(EdgeSampler):
    """Each word knows the next, and what somebody makes of that."""

    def __init__(self, answer: Callable[..., Any] = lambda e, w: (e, w)) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, graph: Any) -> Any:
        batch, _ = documents(graph)
        left = (batch[:-1] == batch[1:]).nonzero().flatten()
        row, col = torch.cat([left, left + 1]), torch.cat([left + 1, left])
        order = torch.argsort(row * batch.numel() + col)
        return self.answer(torch.stack([row, col])[:, order], torch.ones(row.numel()))


@pytest.mark.parametrize("name", EDGES)
def test_a_broken_sampler(build, name):
    answer, what = EDGES[name]
    assert what in one_line(lambda: build(edges=Chain(answer), keep_edges=True), "Chain breaks")


def test_right_ones_pass_and_nobody_looks_where_check_is_off(build):
    assert build(circles=Circles(lambda i, x: (i, x))).leader_index.numel() >= 6
    build(circles=Circles(CIRCLES["other leaders"][0]), check=False)
    assert torch.equal(build([Ruled(near)]).circle_index, build([Ruled(near)], check=False).circle_index)
    build([PATTERNS["partly above one"][0]], check=False)
    assert build(edges=Chain(), keep_edges=True).edge_index.size(1) == 2 * (89 + 59 + 39)
    build(edges=Chain(lambda e, w: (e, w + (e[0] < e[1]))), check=False)


class WithoutSuper(Windows):
    def __init__(self) -> None:
        self.k = 2


@dataclasses.dataclass
class Fields(Windows):
    k: int = 2

    def __post_init__(self) -> None:
        super().__init__()


class Seeding(Windows):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)


class Panicking(Windows):
    def __init__(self) -> None:
        throw(Panic())


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (WithoutSuper, "its __init__ must call super().__init__()"),
        (Fields, "write @dataclass(eq=False)"),
        (Seeding, "its __init__ seeds PyTorch's global generator"),
        (Panicking, "Panic"),
    ],
)
def test_a_class_that_cannot_be_made(kind, what):
    with pytest.raises(OptionError) as caught:
        instantiate({"_target_": f"mine.{kind.__name__}"}, lambda name: kind, torch.nn.Module)
    assert what in str(caught.value)
    assert kind.__name__ in str(caught.value)
    assert str(caught.value).isprintable()
