"""PARADE's passages: the first, the last, and a fair draw between them."""

import torch
from conftest import passage_batch
from torch_geometric.data import Batch

from socialgraph.data import PassageSample
from socialgraph.nn.selection import best
from socialgraph.partition import Windows


def windows(lengths, seed=0):
    return passage_batch(lengths, Windows(2), seed=seed)


def read(batch, amount):
    """Return the places of the passages that are read of each document."""
    document = batch.batch[batch.leader_index]
    keep = best(PassageSample()(batch, None), document, amount)
    return [keep[document == d].nonzero().flatten().tolist() for d in range(batch.num_graphs)]


def test_the_first_and_the_last_are_always_read():
    batch = windows((80, 0, 33, 1, 6, 4))
    found = read(batch, 5)
    assert [len(one) for one in found] == [5, 0, 5, 1, 3, 2]
    assert found[3:] == [[0], [0, 1, 2], [0, 1]]
    assert found[0][0] == found[2][0] == 0
    assert (found[0][-1], found[2][-1]) == (39, 16)


def test_a_draw_is_that_of_the_pair_alone():
    batch = windows((80, 0, 33, 50))
    items = batch.to_data_list()
    rating = PassageSample()(batch, None)
    assert torch.equal(rating, torch.cat([PassageSample()(one, None) for one in items]))
    backwards = PassageSample()(Batch.from_data_list(items[::-1]), None)
    assert torch.equal(backwards, torch.cat([PassageSample()(one, None) for one in items[::-1]]))
    assert read(batch, 8) == read(windows((80, 0, 33, 50)), 8)
    assert read(batch, 8)[0] != read(windows((80, 0, 33, 50), seed=1), 8)[0]


def test_every_passage_between_is_drawn_as_often():
    """Of 18 passages between the first and the last 3 are read; over 600 pairs each is near 100 times."""
    count = torch.zeros(20)
    for seed in range(60):
        for places in read(windows((40,) * 10, seed=seed), 5):
            count[places] += 1
    assert count[[0, 19]].tolist() == [600, 600]
    assert int(count[1:19].sum()) == 1800
    chi2 = ((count[1:19] - 100) ** 2 / 100).sum()
    assert chi2 < 40  # 17 degrees of freedom: above 40 once in 800
