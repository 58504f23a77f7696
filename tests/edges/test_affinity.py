"""What a scale clips, of affinities in closed form and of any."""

from __future__ import annotations

import pytest
import torch
from drawing import DOCUMENTS, MIXTURES
from graphs import random_document
from torch_geometric.data import Batch

from socialgraph.edges import Affinity, LowRank, SocialEdges


@pytest.mark.parametrize("name", MIXTURES)
def test_what_is_clipped_in_closed_form_is_what_a_walk_over_all_pairs_finds(name: str) -> None:
    affinity = SocialEdges(MIXTURES[name]).probabilities(Batch.from_data_list(list(DOCUMENTS.values())))
    assert isinstance(affinity, LowRank)
    some = 0
    for factor in (0.5, 1.0, 2.0, 5.0, 30.0, 1e4):
        factors = torch.full((len(DOCUMENTS),), factor, dtype=torch.float64)
        (count, rest), (want, plain) = affinity.clipped(factors), Affinity.clipped(affinity, factors)
        assert torch.equal(count, want)
        assert torch.allclose(rest, plain, atol=1e-3)  # the walk rounds each of up to 7,140 pairs to 2^-24
        some += int(want.sum())
    assert some > 1000


def test_few_pairs_of_a_long_document_are_asked_whether_they_are_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    affinity = SocialEdges(MIXTURES["three"]).probabilities(random_document(6000, 5, vocabulary=3000))
    assert isinstance(affinity, LowRank)
    asked, pair = [0], LowRank.pair
    monkeypatch.setattr(LowRank, "pair", lambda self, i, j: asked.append((i + j).numel()) or pair(self, i, j))
    factor = torch.tensor([1.02], dtype=torch.float64) / max(p.max() for p in affinity.dense())
    asked.clear()
    monkeypatch.delattr(LowRank, "block")  # what walks over all pairs
    count, _ = affinity.clipped(factor)
    assert 0 < int(count) < 100
    assert 0 < sum(asked) < 20 * 6000


def test_sums_over_long_documents_are_rounded_once():
    """A GPU adds in any order, so the sums are whole numbers: 9,000 tokens are more than float64 can add up exactly."""
    size = 9000
    batch, ptr = torch.zeros(size, dtype=torch.long), torch.tensor([0, size])
    kernel = 1.0 - torch.rand(size, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 0.01
    p = LowRank(batch, ptr, kernel)
    whole = (p.kernel * 2.0**30).long().tolist()
    total = sum(2 * (size - distance) * whole[distance] for distance in range(1, size))
    assert p.totals().tolist() == [total / 2**30]
    rows = [2**23 - number for number in range(size)]
    p.row_sums = lambda: 4500.0 + torch.tensor(rows, dtype=torch.float64) * 2.0**-30
    assert Affinity.totals(p).tolist() == [sum((4500 << 30) + row for row in rows) / 2**30]
