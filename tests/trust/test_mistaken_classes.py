"""Classes of one's own with the mistakes that people make: one line before anything is ranked, and right ones rank."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from broken_classes import PAIRS, collection
from commands import configuration
from hydra import compose
from lab.system import System
from ledger_of_cases import Ledger, as_error, told  # noqa: F401  (a fixture)
from mistaken_partitions import PARTITIONS
from mistaken_patterns import PATTERNS

from socialgraph.errors import OptionError
from socialgraph.errors import is_own as is_user_defined
from socialgraph.partition import NodeCircles
from socialgraph.testing import check_partition, check_pattern


@pytest.fixture(autouse=True)
def _as_it_was():
    """What mistakes of this kind change is everybody's."""
    before = torch.get_default_dtype(), torch.get_rng_state(), random.getstate(), np.random.get_state()
    yield
    torch.set_default_dtype(before[0])
    torch.set_rng_state(before[1])
    random.setstate(before[2])
    np.random.set_state(before[3])


def checked(*typed: str) -> System:
    """Make a system, and check what is the user's own in it."""
    seed = torch.initial_seed()
    try:
        with as_error():
            system = System(compose("config", list(typed)))
            if is_user_defined(system.parts.circles):
                check_partition(system.parts.circles)
            for pattern in filter(is_user_defined, system.parts.edges.patterns.values()):
                check_pattern(pattern)
            if torch.get_default_dtype() != torch.float32:
                raise OptionError(f"PyTorch's default type is {torch.get_default_dtype()}")
            return system
    finally:
        torch.set_default_dtype(torch.float32)
        torch.manual_seed(seed)


def test_partitions(tmp_path):
    ledger, build = Ledger("partitions with mistakes"), collection(tmp_path)
    right = build(circles=NodeCircles(2, 9))(PAIRS)
    with configuration():
        for name, (_, says) in PARTITIONS.items():

            def do(name: str = name, right_one: bool = says is None) -> None:
                typed = [f"partition._target_=mistaken_partitions.{name}", "partition.k=2"]
                typed += ["~partition.max_size"] if right_one else []
                system = checked(f"model.backbone={tmp_path}", *typed)
                got = build(circles=system.parts.circles)(PAIRS)
                assert right_one, "nobody has noticed"
                assert torch.equal(got.circle_index, right.circle_index)

            ledger.case(name, do, says or "nothing", sound=says is None)
    ledger.close(at_least=40)


def test_patterns(tmp_path):
    ledger, build = Ledger("patterns with mistakes"), collection(tmp_path)
    with configuration():
        for name, (_, says) in PATTERNS.items():

            def do(name: str = name, right_one: bool = says is None) -> None:
                typed = ["edges=random", "~edges.patterns.uniform"]
                typed.append(f"+edges.patterns.own._target_=mistaken_patterns.{name}")
                system = checked(f"model.backbone={tmp_path}", *typed)
                got = build(patterns=list(system.parts.edges.patterns.values()))(PAIRS)
                assert right_one, "nobody has noticed"
                assert got.leader_index.numel() > 0

            ledger.case(name, do, says or "nothing", sound=says is None)
    ledger.close(at_least=30)
