"""Patterns of one's own that misbehave: each ends in one line that names class and law."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from broken_classes import PAIRS, collection, one_line
from drawing import Rule, near
from torch import Tensor

from socialgraph.edges import Centrality, LowRank, Pattern, StaticDistance, Uniform
from socialgraph.edges.laws import SAMPLE, TOLERANCE, sample
from socialgraph.edges.layout import documents


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return collection(tmp_path_factory.mktemp("bert"))


INF, NAN = float("inf"), float("nan")


RULES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "NaN everywhere": lambda i, j: near(i, j) * NAN,
    "NaN for one pair": lambda i, j: near(i, j).masked_fill((i + j == 3) & ((i - j).abs() == 1), NAN),
    "infinity": lambda i, j: near(i, j) + INF,
    "minus infinity": lambda i, j: near(i, j) - INF,
    "minus infinity for one pair": lambda i, j: near(i, j).masked_fill((i + j == 3) & ((i - j).abs() == 1), -INF),
    "negative": lambda i, j: -near(i, j),
    "partly negative": lambda i, j: near(i, j) - 0.1,
    "above one": lambda i, j: 1 + near(i, j),
    "partly above one": lambda i, j: 10 * near(i, j),
    "one direction": lambda i, j: near(i, j) * (i < j),
    "another one back": lambda i, j: near(i, j) / (1 + (i < j)),
    "by the first's place": lambda i, j: 1 / (1.0 + i + 0.0 * j).double(),
    "random": lambda i, j: near(i, j) * torch.rand(torch.broadcast_shapes(i.shape, j.shape)),
    "float32": lambda i, j: near(i, j).float(),
    "whole numbers": lambda i, j: (i != j).long(),
    "nothing": lambda i, j: None,
    "a number": lambda i, j: 0.5,
    "one row": lambda i, j: near(i, j).flatten()[:1],
    "the end of the program": lambda i, j: sys.exit(0),
    "out of bounds": lambda i, j: near(i, j)[1_000_000],
}
ANSWERED: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "no affinity": lambda batch, ptr: torch.zeros(batch.numel(), batch.numel()),
    "None": lambda batch, ptr: None,
    "one document for all": lambda batch, ptr: LowRank(torch.zeros_like(batch), ptr[[0, -1]]),
    "closed form, NaN": lambda batch, ptr: LowRank(batch, ptr, constant=torch.full((len(ptr) - 1,), NAN)),
    "closed form, infinite": lambda batch, ptr: LowRank(batch, ptr, constant=torch.full((len(ptr) - 1,), INF)),
    "closed form, negative": lambda batch, ptr: LowRank(batch, ptr, constant=torch.full((len(ptr) - 1,), -0.5)),
    "closed form, NaN for one word": lambda batch, ptr: LowRank(
        batch, ptr, row=(torch.arange(batch.numel()) == 5).double() * NAN
    ),
    "it raises": lambda batch, ptr: batch[1_000_000],
}
WEIGHTS: dict[str, Callable[[int], Any]] = {
    "no weights": lambda n: None,
    "weights of NaN": lambda n: torch.full((n,), NAN),
    "one weight of NaN": lambda n: (torch.arange(n) == 9).float().mul(-1).sqrt() + torch.arange(n),
    "infinite weights": lambda n: torch.full((n,), INF),
    "negative weights": lambda n: -torch.arange(n).float(),
    "too few weights": lambda n: torch.ones(n - 1),
    "weights in a column": lambda n: torch.ones(n, 1),
    "weights that raise": lambda n: torch.ones(n)[n + 5],
}


class BrokenPattern(Pattern):
    def __init__(self, answer: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, graph: Any) -> Any:
        return self.answer(*documents(graph))


class BrokenWeights(Centrality):
    def __init__(self, answer: Callable[[int], Any]) -> None:
        super().__init__()
        self.answer = answer

    def weights(self, graph: Any) -> Any:
        return self.answer(graph.num_nodes)


def by_rule(rule: Callable[[Tensor, Tensor], Any]) -> Pattern:
    return BrokenPattern(lambda batch, ptr: Rule(batch, ptr, rule))


PATTERNS = {
    **{name: by_rule(rule) for name, rule in RULES.items()},
    **{name: BrokenPattern(answer) for name, answer in ANSWERED.items()},
    **{name: BrokenWeights(answer) for name, answer in WEIGHTS.items()},
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_broken_pattern(build, name):
    alone, mixed = build([PATTERNS[name]]), build([StaticDistance(), PATTERNS[name], Uniform()])
    for builder in (alone, mixed):
        one_line(lambda builder=builder: builder(PAIRS), "Broken")
        with torch.inference_mode():
            one_line(lambda builder=builder: builder(PAIRS), "Broken")


def test_good_ones_pass(build, record_property):
    good, same = (build([by_rule(near)], check=check)(PAIRS) for check in (True, False))
    for key in ("circle_index", "leader_index"):
        assert torch.equal(good[key], same[key])
    build([by_rule(RULES["partly above one"])], check=False)(PAIRS)  # nobody looks
    record_property("told", f"broken patterns: {len(PATTERNS)} kinds, each ends in one line")


def test_roundings_are_no_offence(build):
    def off(by: float) -> Pattern:
        return by_rule(lambda i, j: near(i, j) + by * (i < j))

    def refused(pattern: Pattern) -> str:
        return one_line(lambda: build([pattern])(PAIRS), "BrokenPattern")

    build([off(0.9 * TOLERANCE)])(PAIRS)
    assert "'who comes first does not matter'" in refused(off(1.1 * TOLERANCE))
    build([by_rule(lambda i, j: 0 * near(i, j) + 1 + 0.9 * TOLERANCE)])(PAIRS)
    above = by_rule(lambda i, j: 0 * near(i, j) + 1 + 1.1 * TOLERANCE)
    assert "'values lie between 0 and 1'" in refused(above)


def test_the_sample_is_of_pairs_within_documents():
    lengths = torch.tensor([0, 1, 2, 3, 90, 0])
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    (i, j), (back, there), again = sample(ptr, 96).unbind(1)
    assert torch.equal(torch.stack([j, i]), torch.stack([back, there]))
    assert torch.equal(torch.stack([i, j]), again)
    document = torch.arange(6).repeat_interleave(SAMPLE)
    some = lengths[document] > 0
    for x in (i, j):
        assert ((x >= ptr[document]) & (x < ptr[document + 1]))[some].all()
    assert (i == j)[~some].all()
    long = document == 4
    assert ((i != j)[long]).sum() > 28
    assert len(set((i[long] - 3).tolist())) > 20
