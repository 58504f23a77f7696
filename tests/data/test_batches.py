"""Batches fill a budget, and no item is too long for one of its own."""

from socialgraph.data.batches import batches


def test_batches_fill_the_budget():
    assert list(batches([5, 5, 5, 30, 1, 1], int, 10)) == [[5, 5], [5], [30], [1, 1]]
    assert list(batches(iter([]), int, 10)) == []
