"""A change of weights as thin matrices."""

import pytest
import torch
from safetensors.torch import save

from socialgraph import low_rank
from socialgraph.errors import CheckpointError


def weights(seed: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    return {"dense.weight": torch.randn(120, 100), "dense.bias": torch.randn(120), "norm.weight": torch.randn(100)}


def test_a_change_of_low_rank_comes_back():
    before = weights(0)
    after = {name: value.clone() for name, value in before.items()}
    after["dense.weight"] += torch.randn(120, 3) @ torch.randn(3, 100)
    after["norm.weight"] += 0.5
    low_rank.add(before, low_rank.cut(before, after, rank=3))
    for name, value in after.items():  # float16 has 11 binary digits
        torch.testing.assert_close(before[name], value, atol=0.02, rtol=0)


def test_the_cut_is_the_best_of_its_rank():
    before, after = weights(0), weights(1)
    singular = torch.linalg.svdvals(after["dense.weight"] - before["dense.weight"])
    for rank in (1, 10, 50):
        near = {name: value.clone() for name, value in before.items()}
        low_rank.add(near, low_rank.cut(before, after, rank))
        missed = torch.linalg.norm(after["dense.weight"] - near["dense.weight"])
        torch.testing.assert_close(missed, singular[rank:].square().sum().sqrt(), rtol=1e-3, atol=0)


def test_what_did_not_change_takes_no_room():
    before = weights(0)
    assert low_rank.cut(before, before, rank=4) == {}
    change = low_rank.cut(before, {**before, "dense.weight": before["dense.weight"] + 1}, rank=4)
    assert sorted(change) == ["dense.weight.in", "dense.weight.out"]
    assert len(save(change)) < 2 * 4 * (120 + 100) + 400


def test_a_change_of_another_bert_is_refused():
    before = weights(0)
    change = low_rank.cut(before, weights(1), rank=2)
    with pytest.raises(CheckpointError, match=r"the change is of 'dense\.weight', which the BERT does not have"):
        low_rank.add({"norm.weight": before["norm.weight"], "dense.bias": before["dense.bias"]}, change)
    with pytest.raises(CheckpointError, match=r"'norm.weight' has the shape \(100,\), the BERT's weight \(7,\)"):
        low_rank.add({**before, "norm.weight": torch.zeros(7)}, change)
