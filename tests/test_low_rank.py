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
    change = {name: after[name] - value for name, value in before.items()}
    low_rank.add(before, low_rank.cut(before, after, rank=3))
    torch.testing.assert_close(before["norm.weight"], after["norm.weight"], atol=1e-3, rtol=0)
    missed = torch.linalg.norm(before["dense.weight"] - after["dense.weight"])
    assert missed < 0.2 * torch.linalg.norm(change["dense.weight"])  # 4 bits of each factor


def test_the_cut_is_nearly_the_best_of_its_rank():
    """What is missed is what is behind the rank, and what 4 bits round off: at most 4 % of what is kept."""
    before, after = weights(0), weights(1)
    singular = torch.linalg.svdvals(after["dense.weight"] - before["dense.weight"])
    for rank in (1, 10, 50):
        near = {name: value.clone() for name, value in before.items()}
        low_rank.add(near, low_rank.cut(before, after, rank))
        missed = torch.linalg.norm(after["dense.weight"] - near["dense.weight"]).square()
        behind, kept = singular[rank:].square().sum(), singular[:rank].square().sum()
        assert behind < missed < behind + 0.04 * kept


def test_rounding_is_to_the_nearest_of_fifteen_steps():
    torch.manual_seed(0)
    rows = torch.randn(6, 40).double()
    rows[2] = 0.0
    packed, scale = low_rank.rounded(rows)
    assert (packed.shape, packed.dtype) == ((6, 20), torch.uint8)
    step = rows.abs().amax(1, keepdim=True) / 7
    assert ((low_rank.unrounded(packed, scale) - rows).abs() <= 0.51 * step).all()


def test_what_did_not_change_takes_no_room():
    before = weights(0)
    assert low_rank.cut(before, before, rank=4) == {}
    change = low_rank.cut(before, {**before, "dense.weight": before["dense.weight"] + 1}, rank=4)
    assert sorted(change) == [f"dense.weight.{part}" for part in ("in", "in_scale", "out", "out_scale")]
    assert len(save(change)) < 4 * (120 + 100) / 2 + 4 * 2 * 2 + 600


def test_a_change_of_another_bert_is_refused():
    before = weights(0)
    change = low_rank.cut(before, weights(1), rank=2)
    with pytest.raises(CheckpointError, match=r"the change is of 'dense\.weight', which the BERT does not have"):
        low_rank.add({"norm.weight": before["norm.weight"], "dense.bias": before["dense.bias"]}, change)
    with pytest.raises(CheckpointError, match=r"'norm.weight' has the shape \(100,\), the BERT's weight \(7,\)"):
        low_rank.add({**before, "norm.weight": torch.zeros(7)}, change)
