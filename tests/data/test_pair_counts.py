"""Counts of neighbours against a count by hand, pair by pair."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from socialgraph.data import Cache, Document, PairCounts, TermStatistics, Tokens
from socialgraph.errors import OptionError

COPIES = {"one": Document("one", "copy a file copy a file"), "two": Document("two", "copy a tree")}
TEXTS = st.lists(st.lists(st.integers(0, 6), max_size=12), max_size=6)


def by_hand(texts, window):
    found = Counter()
    for text in texts:
        for i, s in enumerate(text):
            for j, t in enumerate(text):
                if 0 < abs(i - j) <= window:
                    found[s, t] += 1
    return found


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(1, 5), st.integers(1, 3))
def test_every_pair_is_counted(texts, window, least):
    found = PairCounts.of((torch.tensor(text, dtype=torch.int32) for text in texts), 7, window, least)
    expected = by_hand(texts, window)
    s, t = torch.meshgrid(torch.arange(7), torch.arange(7), indexing="ij")
    counts = found(s, t)
    for a in range(7):
        for b in range(7):
            assert counts[a, b] == (expected[a, b] if expected[a, b] >= least else 0)
        assert found.frequency[a] == sum(expected[a, b] for b in range(7))
    assert found.total == sum(expected.values())


def test_many_pairs_are_counted_in_parts(monkeypatch):
    text = torch.randint(0, 50, (400,), generator=torch.Generator().manual_seed(0))
    whole = PairCounts.of([text, text[:100]], 50, 4, 2)
    monkeypatch.setattr("socialgraph.data.pair_counts._AT_ONCE", 100)
    parts = PairCounts.of([text, text[:100]], 50, 4, 2)
    for name in ("key", "count", "frequency"):
        assert torch.equal(getattr(whole, name), getattr(parts, name))


def test_a_collection_is_counted_once_as_far_as_it_is_read():
    tokens = Tokens("minilm", max_document_length=3)
    statistics = TermStatistics.of(tokens, COPIES)
    copy, a, file, tree = (int(i) for i in tokens.query("copy a file tree"))
    counts = statistics.pairs(window=1, least=1)
    word = torch.tensor
    assert [int(counts(word(x), word(y))) for x, y in ((copy, a), (a, file), (a, tree), (file, copy))] == [2, 1, 1, 0]
    assert statistics.pairs(window=1, least=1) is counts


def test_counts_are_kept_on_disk(tmp_path):
    first, again = (TermStatistics.of(Tokens(cache=Cache(tmp_path)), COPIES) for _ in range(2))
    counts = first.pairs(window=2, least=1)
    again.texts = None  # nothing to count
    for name in ("key", "count", "frequency"):
        assert torch.equal(getattr(again.pairs(window=2, least=1), name), getattr(counts, name))


def test_texts_that_are_gone_are_missed():
    with pytest.raises(OptionError, match="within 8 places of each other, and the texts are gone"):
        TermStatistics(torch.zeros(5, dtype=torch.long), 3).pairs()
