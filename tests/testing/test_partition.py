"""Every partition obeys every law, and every law can be broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from broken_partitions import BROKEN, Friends, Remembering

from socialgraph.errors import LawError, OptionError, law_name
from socialgraph.partition import NodeCircles, Partition, partition_resolver
from socialgraph.partition.laws import ANSWER_LAWS
from socialgraph.partition.resolver import PARTITIONS
from socialgraph.testing import check_partition
from socialgraph.testing.graphs import hard_graphs
from socialgraph.testing.partition import (
    CALL_LAWS,
    equal_weights_favour_no_end,
    undrawn_edges_give_the_same_circles,
)

#: tried with circles so small that friends of equal weight are looked for in 40 to 79 words, not 160 to 199
SLOW = ("spectral",)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in PARTITIONS if name not in SLOW),
        *((name, {"max_size": 31}) for name in SLOW),
        *((name, {"k": 3, "max_size": 4, "keep": "first"}) for name in ("node", "edge")),
        ("windows", {"size": 3, "before": 1, "after": 2}),
    ],
)
def test_every_partition_obeys(name: str, options: dict) -> None:
    try:
        check_partition(partition_resolver(name, **options))
    except OptionError as error:
        if "pip install" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: getattr(broken, "__name__", ""))
def test_a_broken_law_is_named(broken: Callable[[], Partition]) -> None:
    law, graph, offence = BROKEN[broken]
    with pytest.raises(LawError) as caught:
        check_partition(broken())
    message = str(caught.value)
    assert "\n" not in message
    assert f"breaks the law {law!r} on the graph {graph!r}" in message
    assert offence in message
    assert isinstance(caught.value, AssertionError)


def test_what_breaks_laws_would_obey_without_it() -> None:
    check_partition(Friends())


LAWS = (*ANSWER_LAWS, *CALL_LAWS, equal_weights_favour_no_end, undrawn_edges_give_the_same_circles)


def test_every_law_can_be_broken() -> None:
    assert {law for law, _, _ in BROKEN.values()} == {law_name(law) for law in LAWS}


def test_the_partition_itself_is_left_alone() -> None:
    partition = Remembering()
    with pytest.raises(LawError):
        check_partition(partition)
    assert partition.largest == 2


def test_a_class_is_no_instance() -> None:
    with pytest.raises(OptionError, match=r"takes an instance of a Partition, such as MyPartition\(\)"):
        check_partition(NodeCircles)


def test_the_graphs_are_graphs() -> None:
    names = set()
    for graph in hard_graphs(torch.device("cpu")):
        names.add(graph.name)
        size = graph.batch.numel()
        row, col = graph.edge_index
        matrix = torch.zeros(size, size)
        matrix[row, col] = graph.edge_weight
        assert torch.equal(matrix, matrix.T)
        assert not matrix.diagonal().any()
        assert torch.equal(matrix.nonzero().T, graph.edge_index)  # sorted, none twice, no weight 0
        assert (graph.batch[row] == graph.batch[col]).all()
        assert (graph.batch.diff() >= 0).all()
        assert graph.batch.max(dim=0).values < graph.batch_size if size else graph.batch_size > 0
    assert len(names) == len(hard_graphs(torch.device("cpu")))
