"""Running out of memory is known by what PyTorch, NumPy and classes that met it say, and nothing else is."""

import numpy as np
import pytest
import torch

from socialgraph.errors import OptionError
from socialgraph.ranking.memory import is_out_of_memory


def error_of(function):
    try:
        function()
    except Exception as error:
        return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (error_of(lambda: torch.empty(1 << 60)), True),
        (error_of(lambda: np.empty(1 << 57)), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), True),
        (error_of(lambda: torch.ones(2) @ torch.ones(3)), False),
        (error_of(lambda: 1 / 0), False),
    ],
)
def test_it_is_known_also_as_a_cause(error, expected):
    wrapped = OptionError("a class of one's own raises it")
    wrapped.__cause__ = error
    assert is_out_of_memory(error) == is_out_of_memory(wrapped) == expected
