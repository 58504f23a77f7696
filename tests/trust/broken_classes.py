"""What the tests of broken classes share: a small collection, and what is expected of an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import write_tiny_bert
from tales import builder_of

from socialgraph.data import GraphBuilder
from socialgraph.edges import SocialEdges, StaticDistance
from socialgraph.errors import LawError
from socialgraph.partition import EdgeCircles

PAIRS = [("q1", "w1 w7", "d0"), ("q2", "w5", "empty"), ("q1", "w1 w7", "d1"), ("q3", "w2", "d2")]


def collection(folder: Path) -> Callable[..., GraphBuilder]:
    """Return what makes builders of four pairs' graphs."""
    write_tiny_bert(folder)
    lengths = {"d0": 90, "empty": 0, "d1": 60, "d2": 40}
    texts = {name: " ".join(f"w{7 * i % 60}" for i in range(n)) for name, n in lengths.items()}

    def make(patterns=(StaticDistance(),), circles=EdgeCircles(k=3, max_size=9), **options):  # noqa: B008
        edges = SocialEdges(patterns, sparsity=0.8)
        return builder_of(str(folder), texts, edges, circles, lengths=(120, 30), **options)

    return make


def one_line(build: Callable[[], Any], name: str) -> str:
    with pytest.raises(LawError) as caught:
        build()
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith(name)
    assert "breaks the law" in message
    return message
