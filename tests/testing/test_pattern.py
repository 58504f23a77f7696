"""Every pattern obeys every law, and every law can be broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from broken_patterns import BROKEN, Alternating, Good
from torch_geometric.data import Batch

from socialgraph.edges import (
    DynamicCentrality,
    DynamicDistance,
    Pattern,
    StaticCentrality,
    StaticDistance,
    Uniform,
)
from socialgraph.edges.kleinberg import Kleinberg
from socialgraph.edges.learned import Learned
from socialgraph.edges.nearby import Nearby
from socialgraph.edges.query_to_all import QueryToAll
from socialgraph.edges.watts_strogatz import WattsStrogatz
from socialgraph.errors import LawError, OptionError, law_name
from socialgraph.testing import check_pattern
from socialgraph.testing.documents import hard_documents
from socialgraph.testing.pattern import LAWS

PATTERNS = [
    Uniform(), StaticDistance(), StaticCentrality(), DynamicDistance(), WattsStrogatz(), WattsStrogatz(4, 0.3),
    Kleinberg(), Kleinberg(3.0), Nearby(), Nearby(3), QueryToAll(),
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_every_pattern_obeys(pattern: Pattern) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize("mode", ["attention", "cosine"])
def test_dynamic_centrality_obeys(tiny_bert, mode: str) -> None:
    check_pattern(DynamicCentrality(tiny_bert[0], mode))


def test_learned_obeys(tiny_bert) -> None:
    check_pattern(Learned(tiny_bert[0], rank=8))


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: getattr(broken, "__name__", ""))
def test_a_broken_law_is_named(broken: Callable[[], Pattern]) -> None:
    law, name, offence = BROKEN[broken]
    with pytest.raises(LawError) as caught:
        check_pattern(broken())
    message = str(caught.value)
    assert "\n" not in message
    assert f"breaks the law {law!r} on the graph {name!r}" in message
    assert offence in message


def test_what_breaks_laws_would_obey_without_it() -> None:
    check_pattern(Good())


def test_every_law_can_be_broken() -> None:
    assert {law for law, _, _ in BROKEN.values()} == {law_name(law) for law in LAWS}


def test_the_pattern_itself_is_left_alone() -> None:
    pattern = Alternating()
    with pytest.raises(LawError):
        check_pattern(pattern)
    assert pattern.calls == 0


def test_a_class_is_no_instance() -> None:
    with pytest.raises(OptionError, match=r"takes an instance of a Pattern, such as MyPattern\(\)"):
        check_pattern(Uniform)


def test_the_documents_are_hard() -> None:
    graphs = hard_documents(torch.device("cpu"))
    assert {0, 1, 2, 200} <= {len(graph.input_ids) for graph in graphs.values()}
    matches = {name: torch.isin(g.input_ids, g.query_ids).double().mean().item() for name, g in graphs.items()}
    assert matches["no word of the query"] == 0 < matches["long"] < 1 == matches["nothing but the query's word"]
    batch = graphs["batch of unequal documents"]
    assert isinstance(batch, Batch)
    lengths = batch.ptr.diff().tolist()
    assert lengths[0] == lengths[-1] == 0
    assert 0 in lengths[1:-1]
    assert len(set(lengths)) > 6
