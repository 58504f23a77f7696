"""Classes of one's own with the mistakes that people make: one line before anything is ranked, and right ones rank."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
import torch
from broken_classes import PAIRS, collection
from commands import configuration
from hydra import compose
from lab.recipe import Recipe, check_own_classes
from ledger_of_cases import Ledger, as_error, told  # noqa: F401  (a fixture)
from mistaken_partitions import PARTITIONS, Right
from mistaken_patterns import PATTERNS

from socialgraph.partition import NodeCircles


@pytest.fixture(autouse=True)
def _as_it_was():
    """What mistakes of this kind change is everybody's."""
    before = torch.get_default_dtype(), torch.get_rng_state(), random.getstate(), np.random.get_state()
    yield
    torch.set_default_dtype(before[0])
    torch.set_rng_state(before[1])
    random.setstate(before[2])
    np.random.set_state(before[3])


def checked(*typed: str) -> Recipe:
    """Do what run.py does with a recipe before anything is ranked."""
    seed = torch.initial_seed()
    try:
        with as_error():
            recipe = Recipe(compose("config", list(typed)))
            check_own_classes(recipe)
            return recipe
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
                recipe = checked(f"model.backbone={tmp_path}", *typed)
                got = build(circles=recipe.parts.circles)(PAIRS)
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
                recipe = checked(f"model.backbone={tmp_path}", *typed)
                got = build(patterns=list(recipe.parts.edges.patterns.values()))(PAIRS)
                assert right_one, "nobody has noticed"
                assert got.leader_index.numel() > 0

            ledger.case(name, do, says or "nothing", sound=says is None)
    ledger.close(at_least=30)


def test_weights_that_nobody_trains_are_told(tiny_bert):
    with configuration(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        recipe = Recipe(compose("config", [f"model.backbone={tiny_bert[0]}"]))
        recipe.parts.circles = Right()
        recipe.parts.circles.bias = torch.nn.Parameter(torch.zeros(1))
        check_own_classes(recipe)
        recipe.parts.circles.requires_grad_(False)
        check_own_classes(recipe)
    assert [str(one.message) for one in warned if "will not be trained" in str(one.message)] == [
        "Right: bias will not be trained, as drawing has no gradient; requires_grad_(False) says that this is meant"
    ]
