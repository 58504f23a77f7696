"""Company in the collection makes friends in the document: against the formula, written out."""

import math

import pytest
import torch
from graphs import document
from tales import builder_of

from socialgraph.data import TermStatistics
from socialgraph.edges import Pmi, SocialEdges, StaticDistance
from socialgraph.errors import OptionError
from socialgraph.partition import EdgeCircles

TEXTS = [[1, 2, 3, 1, 2, 4], [1, 2, 5, 5], [3, 4, 3, 4, 6]]


def statistics(texts=TEXTS):
    texts = [torch.tensor(text) for text in texts]
    counted = TermStatistics.count(texts, vocab_size=10)
    return TermStatistics(counted.document_frequency, counted.size, lambda: texts)


def expected(s, t, window, least):
    places = [(i, j, text) for text in TEXTS for i in range(len(text)) for j in range(len(text))]
    pairs = [(text[i], text[j]) for i, j, text in places if 0 < abs(i - j) <= window]
    together = pairs.count((s, t))
    if together < least:
        return 0.0
    chance = [sum(pair[0] == word for pair in pairs) / len(pairs) for word in (s, t)]
    joint = together / len(pairs)
    return max(0.0, math.log(joint / (chance[0] * chance[1])) / -math.log(joint))


@pytest.mark.parametrize(("window", "least"), [(1, 1), (2, 1), (2, 3)])
def test_values_are_the_formula(window, least):
    words = [1, 2, 3, 9, 5, 1, 6]
    graph = document(words, [2], [1.0] * len(words))
    graph.statistics = statistics()
    (matrix,) = Pmi(window, least)(graph).dense()
    for i, s in enumerate(words):
        for j, t in enumerate(words):
            want = 0.0 if i == j else expected(s, t, window, least)
            assert float(matrix[i, j]) == pytest.approx(want, abs=1e-6)
    assert float(matrix.max()) > 0.3


def test_a_graph_without_statistics_says_what_is_missing():
    with pytest.raises(OptionError, match=r"set graph.statistics = builder.statistics"):
        Pmi()(document([1, 2], [1], [1.0, 1.0]))


def test_the_builder_hands_statistics_over_and_leaves_none_behind():
    texts = {"d": "new york and new york again, and the old town of york " * 3}
    edges = SocialEdges({"pmi": Pmi(1, 2), "near": StaticDistance()}, sparsity=0.8)
    builder = builder_of("minilm", texts, edges, EdgeCircles(2, 8))
    batch = builder([("q", "york", "d")])
    assert "statistics" not in batch
    assert batch.circle_index.numel()
    builder.keep_edges = True
    kept = builder([("q", "york", "d")])
    assert kept.statistics is builder.statistics
    assert torch.equal(kept.circle_index, batch.circle_index)
