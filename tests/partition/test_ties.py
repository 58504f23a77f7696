"""Ties: between friends of equal weight a coin of the pair decides.

That circles go by it: test_friend_circles.py, test_communities.py; that it favours no end of the document is
asked of every partition: testing/test_partition.py.
"""

from __future__ import annotations

import reference
import torch

from socialgraph.partition.ties import pair_coin, strongest_first


def test_coins_are_those_of_the_rule() -> None:
    i, j = torch.arange(60)[:, None], torch.arange(60)
    coin = pair_coin(i, j)
    assert coin.tolist() == [[reference.coin(a, b) for b in range(60)] for a in range(60)]
    assert torch.equal(coin, coin.T)
    assert coin.unique().numel() == 60 * 61 // 2
    assert pair_coin(torch.tensor([10**9]), torch.tensor([3])).tolist() == [reference.coin(10**9, 3)]


def test_weights_go_before_coins() -> None:
    weight = torch.tensor([0.5, 0.25, 0.5, 0.75, 0.25, 0.5])
    coin = torch.tensor([3, -1, -7, 9, -2, 0])
    assert strongest_first(weight, coin).tolist() == [3, 2, 5, 0, 4, 1]
    assert strongest_first(None, coin).tolist() == [2, 4, 1, 5, 0, 3]
    table = strongest_first(torch.stack([weight, weight.flip(0)]), torch.stack([coin, coin.flip(0)]))
    assert table.tolist() == [[3, 2, 5, 0, 4, 1], [2, 3, 0, 5, 1, 4]]
