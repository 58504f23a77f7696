"""Ties: between friends of equal weight a hash of the pair decides.

That circles go by it: test_friend_circles.py, test_communities.py; that it favours no end of the document is
asked of every partition: testing/test_partition.py.
"""

from __future__ import annotations

import reference
import torch

from socialgraph.partition.ties import pair_hash, strongest_first


def test_hashes_are_those_of_the_rule() -> None:
    i, j = torch.arange(60)[:, None], torch.arange(60)
    tie = pair_hash(i, j)
    assert tie.tolist() == [[reference.coin(a, b) for b in range(60)] for a in range(60)]
    assert torch.equal(tie, tie.T)
    assert tie.unique().numel() == 60 * 61 // 2
    assert pair_hash(torch.tensor([10**9]), torch.tensor([3])).tolist() == [reference.coin(10**9, 3)]


def test_weights_go_before_hashes() -> None:
    weight = torch.tensor([0.5, 0.25, 0.5, 0.75, 0.25, 0.5])
    tie = torch.tensor([3, -1, -7, 9, -2, 0])
    assert strongest_first(weight, tie).tolist() == [3, 2, 5, 0, 4, 1]
    assert strongest_first(None, tie).tolist() == [2, 4, 1, 5, 0, 3]
    table = strongest_first(torch.stack([weight, weight.flip(0)]), torch.stack([tie, tie.flip(0)]))
    assert table.tolist() == [[3, 2, 5, 0, 4, 1], [2, 3, 0, 5, 1, 4]]
