"""Out of memory: known by its name, halved until it fits, and named where it never does.

Processes whose memory really ends: tests/trust/test_reranking_out_of_memory.py.
"""

import errno
import warnings

import numpy as np
import pytest
import torch

from socialgraph.errors import InputError, TooLargeError
from socialgraph.ranking.memory import Halving, is_out_of_memory


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("could not create a primitive"), True),
        (RuntimeError("could not create a primitive descriptor for a matmul primitive"), False),
        (RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"), False),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (InputError("out of memory is what this document is about"), False),
        (TooLargeError("does not fit in memory, out of memory"), False),
    ],
)
def test_out_of_memory_is_known_by_its_name(error, expected):
    assert is_out_of_memory(error) is expected


@pytest.mark.parametrize(
    "allocate", [lambda: torch.empty(1 << 60), lambda: np.empty(1 << 58), lambda: b"a" * (1 << 60)]
)
def test_what_really_comes_is_known(allocate):
    with pytest.raises((RuntimeError, MemoryError)) as caught:
        allocate()
    assert is_out_of_memory(caught.value)


def halving(room):
    calls = []

    def function(items):
        calls.append(list(items))
        if sum(items) > room:
            raise MemoryError
        return [-item for item in items]

    return calls, Halving(lambda item: item, lambda item: f"item {item}"), function


def test_halves_come_in_order_with_one_warning():
    calls, halves, function = halving(room=4)
    with pytest.warns(UserWarning, match=r"batch of 5 documents: halved; token_budget=3 would avoid it") as caught:
        found = list(halves(function, [2, 1, 2, 1, 1])) + list(halves(function, [3, 3]))
    assert [list(part) for part, _ in found] == [[2, 1], [2, 1, 1], [3], [3]]
    assert [x for _, part in found for x in part] == [-2, -1, -2, -1, -1, -3, -3]
    assert calls == [[2, 1, 2, 1, 1], [2, 1], [2, 1, 1], [3, 3], [3], [3]]
    assert len(caught) == 1


def test_what_fits_is_not_cut():
    calls, halves, function = halving(room=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(halves(function, [4, 5])) == [([4, 5], [-4, -5])]
    assert calls == [[4, 5]]


def test_what_does_not_fit_alone_says_its_name():
    _, halves, function = halving(room=4)
    with (
        pytest.warns(UserWarning, match="halved"),
        pytest.raises(
            TooLargeError, match=r"^item 9, 9 word pieces, does not fit in memory even alone; read less of it"
        ),
    ):
        list(halves(function, [1, 1, 9, 1]))


def test_other_errors_pass():
    def function(_):
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        list(Halving(len, str)(function, ["a", "b"]))


def test_the_failed_batch_is_let_go_before_its_halves():
    alive = []

    class Held:
        def __init__(self):
            alive.append(self)

        def __del__(self):
            gone.append(1)

    gone = []

    def function(items):
        held = Held()
        alive.clear()
        if len(items) > 1:
            raise MemoryError
        return len(gone), held is None

    with pytest.warns(UserWarning, match="halved"):
        assert [count for _, (count, _) in Halving(len, str)(function, ["a", "b"])] == [1, 2]
