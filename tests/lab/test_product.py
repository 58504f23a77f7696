"""Which row of a product the others are tested against."""

import pytest
from commands import configuration
from lab.product import baseline_of, compared_rows


@pytest.mark.parametrize(
    ("named", "label"),
    [
        (None, "edge, partition.k=2"),
        ("windows", "windows, partition.k=2"),
        (["windows", None], "windows, partition.k=null"),
        ([None, "windows"], "windows, partition.k=null"),
        (["edge", 4], "edge, partition.k=4"),
        ([0.5], "random, edges.sparsity=0.5"),
    ],
)
def test_a_baseline_is_named_by_its_values(named, label):
    beside = ["partition=windows partition.k=null", "partition=random edges.sparsity=0.5"]
    with configuration():  # which knows the names of groups
        rows = compared_rows(["partition=edge,windows", "partition.k=2,4"], beside, [])
    assert baseline_of(rows, named).label == label
