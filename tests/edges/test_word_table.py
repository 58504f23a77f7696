"""What a table of words says of its sums in closed form, against the sums over all pairs."""

import pytest
import torch
from drawing import Rule
from torch import Tensor

from socialgraph.edges.affinity import LowRank
from socialgraph.edges.mixture import Mixture, mix
from socialgraph.edges.word_table import Words, WordTable

DOCUMENTS = [[], [3], [3, 3], [5, 3], [2, 5, 2, 9, 9, 2], [], list(range(20)), [7] * 30, [1, 2] * 20, [4]]


def some_table(documents: list[list[int]] = DOCUMENTS) -> tuple[WordTable, Tensor]:
    """A table of random numbers, and the matrix over all word pieces that it is taken from."""
    draw = torch.rand(30, 30, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    matrix = torch.round((draw + draw.T) * 2.0**21) * 2.0**-22

    def table(words: Words) -> Tensor:
        one, other = words.pairs
        return matrix[words.piece[one], words.piece[other]]

    lengths = torch.tensor([len(words) for words in documents])
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    input_ids = torch.tensor([word for words in documents for word in words], dtype=torch.long)
    return WordTable.of(torch.repeat_interleave(lengths), ptr, input_ids, table), matrix


def test_a_pair_is_that_of_its_words() -> None:
    table, matrix = some_table()
    for words, found in zip(DOCUMENTS, table.dense(), strict=True):
        ids = torch.tensor(words, dtype=torch.long)
        assert torch.equal(found, matrix[ids[:, None], ids].fill_diagonal_(0.0))


@pytest.mark.parametrize("size", [0.3, 1.0, 1.7])
def test_sums_are_those_of_all_pairs(size: float) -> None:
    table, _ = some_table()
    one = torch.ones(len(DOCUMENTS), dtype=torch.float64)
    table = table.shifted(size * one, 0.01 * one)  # above 1 for some pairs
    pairwise = Rule(table.batch, table.ptr, table.pair)
    assert torch.equal(table.row_sums(), pairwise.row_sums())
    assert torch.equal(table.totals(), pairwise.totals())
    highest = torch.stack([matrix.max() if matrix.numel() else matrix.new_zeros(()) for matrix in table.dense()])
    assert torch.equal(table.highest(), highest)
    for factor in (0.1, 1.0, 1.5, 40.0):
        for found, expected in zip(table.clipped(factor * one), pairwise.clipped(factor * one), strict=True):
            assert torch.equal(found, expected)


def test_with_constants_a_table_stays_a_table() -> None:
    table, _ = some_table()
    one = torch.ones(len(DOCUMENTS), dtype=torch.float64)
    constant = LowRank(table.batch, table.ptr, constant=one)
    mixed = mix([constant, table, constant], [0.1, 0.7, 0.2])
    assert isinstance(mixed, WordTable)
    expected = Mixture([table, constant], [0.7, 0.3])
    for found, matrix in zip(mixed.dense(), expected.dense(), strict=True):
        torch.testing.assert_close(found, matrix, atol=1e-15, rtol=0)
    near = LowRank(table.batch, table.ptr, kernel=torch.arange(200) < 4)
    assert isinstance(mix([table, near], [1.0, 1.0]), Mixture)
