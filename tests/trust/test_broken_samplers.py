"""Edge samplers of one's own that misbehave: each ends in one line that names class and law."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from broken_classes import PAIRS, collection, one_line
from torch import Tensor

from socialgraph.edges import EdgeSampler
from socialgraph.edges.layout import documents


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    made = collection(tmp_path_factory.mktemp("bert"))

    def make(edges, **options):
        builder = made(**options)
        builder.edges = edges
        return builder

    return make


#: what is done to a right answer: (edges, weights) -> answer
ANSWERS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "nothing": lambda e, w: None,
    "edges only": lambda e, w: e,
    "no weights": lambda e, w: (e, None),
    "lists": lambda e, w: (e.tolist(), w.tolist()),
    "floats": lambda e, w: (e.float(), w),
    "weights as float64": lambda e, w: (e, w.double()),
    "another device": lambda e, w: (e, w.to("meta")),
    "transposed": lambda e, w: (e.T, w),
    "weights in a column": lambda e, w: (e, w[:, None]),
    "too few weights": lambda e, w: (e, w[:-1]),
    "nodes too high": lambda e, w: (e + 1_000_000, w),
    "nodes below 0": lambda e, w: (e - 1_000, w),
    "friends of oneself": lambda e, w: (e[:1].repeat(2, 1), w),
    "across documents": lambda e, w: (torch.tensor([[0, 150], [150, 0]]), w[:2]),
    "unsorted": lambda e, w: (e.flip(1), w),
    "twice": lambda e, w: (e.repeat_interleave(2, 1), w.repeat_interleave(2)),
    "one direction": lambda e, w: (e[:, e[0] < e[1]], w[e[0] < e[1]]),
    "another weight back": lambda e, w: (e, w + (e[0] < e[1])),
    "weights of NaN": lambda e, w: (e, w * float("nan")),
    "infinite weights": lambda e, w: (e, w + float("inf")),
    "negative weights": lambda e, w: (e, -w),
    "sparse": lambda e, w: (e.to_sparse(), w),
    "out of bounds inside": lambda e, w: w[1_000_000],
    "the end of the program": lambda e, w: sys.exit(0),
}


class Chain(EdgeSampler):
    """Each word knows the next, and what somebody makes of that."""

    def __init__(self, answer: Callable[[Tensor, Tensor], Any] = lambda e, w: (e, w)) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, graph: Any) -> Any:
        batch, _ = documents(graph)
        left = (batch[:-1] == batch[1:]).nonzero().flatten()
        row, col = torch.cat([left, left + 1]), torch.cat([left + 1, left])
        order = torch.argsort(row * batch.numel() + col)
        return self.answer(torch.stack([row, col])[:, order], torch.ones(row.numel()))


@pytest.mark.parametrize("keep_edges", [True, False])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_broken_sampler(build, name, keep_edges):
    builder = build(Chain(ANSWERS[name]), keep_edges=keep_edges)
    one_line(lambda: builder(PAIRS), "Chain breaks")
    with torch.inference_mode():  # as re-ranking does
        one_line(lambda: builder(PAIRS), "Chain breaks")


def test_the_line_names_the_document_and_the_edge(build):
    line = one_line(lambda: build(Chain(ANSWERS["one direction"]))(PAIRS), "Chain breaks")
    assert "'an edge goes both ways, with one weight' on the graph 'document d0, query q1': edge 0 joins node 0" in line


def test_a_good_one_passes(build, record_property):
    assert build(Chain(), keep_edges=True)(PAIRS).edge_index.size(1) == 2 * (89 + 59 + 39)
    build(Chain(ANSWERS["another weight back"]), check=False)(PAIRS)  # nobody looks
    record_property("told", f"broken edge samplers: {len(ANSWERS)} kinds, each ends in one line")
