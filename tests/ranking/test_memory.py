"""Running out of memory is known by what PyTorch, NumPy and classes that met it say, and nothing else is."""

import numpy as np
import pytest
import torch

from socialgraph.errors import ContractError
from socialgraph.ranking.memory import is_out_of_memory


def error_of(function):
    try:
        function()
    except Exception as error:
        return error


def test_real_errors_are_known():
    assert is_out_of_memory(error_of(lambda: torch.empty(1 << 60)))
    assert is_out_of_memory(error_of(lambda: np.empty(1 << 57)))
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."))


@pytest.mark.parametrize("function", [lambda: torch.ones(2) @ torch.ones(3), lambda: 1 / 0, lambda: [].pop()])
def test_other_errors_are_not(function):
    assert not is_out_of_memory(error_of(function))


def test_what_was_caused_by_it_is_it():
    error = ContractError("Mine", "contract", "graph", "it raises MemoryError")
    assert not is_out_of_memory(error)
    error.__cause__ = MemoryError()
    assert is_out_of_memory(error)
