"""Counts of words and of neighbours against a count by hand."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from socialgraph.data import Cache, Document, TermStatistics, Tokens
from socialgraph.data.statistics import PairCounts
from socialgraph.errors import OptionError

COPIES = {"one": Document("one", "copy a file copy a file"), "two": Document("two", "copy a tree")}
TEXTS = st.lists(st.lists(st.integers(0, 6), max_size=12), max_size=6)


def test_tfidf_by_hand():
    documents = [torch.tensor([1, 2, 2]), torch.tensor([2, 3]), torch.tensor([], dtype=torch.int32)]
    statistics = TermStatistics.count(documents, vocab_size=5)
    assert statistics.document_frequency.tolist() == [0, 1, 2, 1, 0]
    expected = torch.tensor([1 * torch.log(torch.tensor(4 / 2.0)), 2 * torch.log(torch.tensor(4 / 3.0))])
    torch.testing.assert_close(statistics.tfidf(documents[0])[:2], expected.double())
    assert statistics.tfidf(documents[2]).shape == (0,)


@pytest.mark.parametrize("at_once", [1 << 20, 10])
@settings(deadline=None, max_examples=40)
@given(texts=TEXTS, window=st.integers(1, 5), least=st.integers(1, 3))
def test_every_pair_is_counted(at_once, texts, window, least):
    expected = Counter()
    for text in texts:
        for i, s in enumerate(text):
            expected.update((s, t) for j, t in enumerate(text) if 0 < abs(i - j) <= window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("socialgraph.data.statistics._AT_ONCE", at_once)
        found = PairCounts.of((torch.tensor(text, dtype=torch.int32) for text in texts), 7, window, least)
    counts = found(*torch.meshgrid(torch.arange(7), torch.arange(7), indexing="ij"))
    for a in range(7):
        for b in range(7):
            assert counts[a, b] == (expected[a, b] if expected[a, b] >= least else 0)
        assert found.frequency[a] == sum(expected[a, b] for b in range(7))
    assert found.total == sum(expected.values())


def test_a_collection_is_counted_once_as_far_as_it_is_read(tmp_path):
    first, again = (TermStatistics.of(Tokens("minilm", 3, cache=Cache(tmp_path)), COPIES) for _ in range(2))
    copy, a, file, tree = (int(i) for i in Tokens("minilm").query("copy a file tree"))
    counts = first.pairs(window=1, least=1)
    word = torch.tensor
    assert [int(counts(word(x), word(y))) for x, y in ((copy, a), (a, file), (a, tree), (file, copy))] == [2, 1, 1, 0]
    assert first.pairs(window=1, least=1) is counts
    again.texts = None  # nothing to count: they are on disk
    for name in ("key", "count", "frequency"):
        assert torch.equal(getattr(again.pairs(window=1, least=1), name), getattr(counts, name))


def test_texts_that_are_gone_are_missed():
    with pytest.raises(OptionError, match="within 8 places of each other, and the texts are gone"):
        TermStatistics(torch.zeros(5, dtype=torch.long), 3).pairs()
