"""Batches fill a budget, and no item is too long for one of its own."""

import pytest

from socialgraph.data.batches import batches, check_shared_memory
from socialgraph.errors import OptionError


def test_batches_fill_the_budget():
    assert list(batches([5, 5, 5, 30, 1, 1], int, 10)) == [[5, 5], [5], [30], [1, 1]]
    assert list(batches(iter([]), int, 10)) == []


def test_workers_without_shared_memory_are_refused_in_one_line(tmp_path):
    """A container may give 64 kB for them: PyTorch would wait for ever."""
    check_shared_memory(0, tmp_path)
    check_shared_memory(1, tmp_path)
    check_shared_memory(1, tmp_path / "nowhere")  # a system that has no such place
    told = r"^workers=10000000 hand their batches over in .* MB left .*: use workers=0, or"
    with pytest.raises(OptionError, match=told):
        check_shared_memory(10_000_000, tmp_path)
