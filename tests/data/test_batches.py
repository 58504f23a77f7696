"""Batches fill a budget, and no item is too long for one of its own."""

import shutil
import subprocess
import sys

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
    with pytest.raises(
        OptionError, match=r"^workers=10000000 hand their batches over in .* MB left .*: use workers=0, or"
    ):
        check_shared_memory(10_000_000, tmp_path)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="shared memory is made small by Linux's unshare")
def test_64_kilobytes_of_shared_memory_end_in_one_line():
    program = "from socialgraph.data.batches import check_shared_memory; check_shared_memory(2)"
    small = f'mount -t tmpfs -o size=64k tmpfs /dev/shm || exit 77; exec "$0" -c "{program}"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", small, sys.executable], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        pytest.skip("this user may mount nothing")
    assert done.returncode == 1
    assert "OptionError: workers=2 hand their batches over in /dev/shm, which has 0.1 MB left" in done.stderr
