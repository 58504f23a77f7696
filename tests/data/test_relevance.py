"""BM25 of circles against plain Python over words; PARADE's passages: the first, the last, a fair draw between them."""

import math
from collections import Counter

import pytest
import torch
from conftest import document_batch, passage_batch
from tales import builder_of, random_texts
from torch_geometric.data import Batch

from socialgraph.data import PassageBM25, PassageSample, TermStatistics, document_graph
from socialgraph.data.circles import compose
from socialgraph.data.graph import gather
from socialgraph.edges import SocialEdges, StaticDistance
from socialgraph.errors import OptionError
from socialgraph.nn.selection import best
from socialgraph.partition import EdgeCircles, Windows


def expected(batch, statistics, k1, b):
    """The formula, circle by circle and word by word."""
    scores = []
    for graph in batch.to_data_list():
        node, circle = graph.circle_index
        circles = [graph.input_ids[node[circle == c]].tolist() for c in range(graph.num_circles)]
        mean = sum(map(len, circles)) / max(len(circles), 1)
        for words in circles:
            count, score = Counter(words), 0.0
            for word in set(graph.query_ids.tolist()) & count.keys():
                frequency = int(statistics.document_frequency[word])
                idf = math.log(1 + (statistics.size - frequency + 0.5) / (frequency + 0.5))
                tf = count[word]
                score += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(words) / mean))
            scores.append(score)
    return torch.tensor(scores)


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (2.0, 0.0), (0.0, 1.0)])
def test_as_the_formula(k1, b):
    batch = document_batch(lengths=(70, 0, 33, 1, 120), vocabulary=12)  # few words, so that queries meet them
    statistics = TermStatistics(torch.randint(0, 6, (200,), generator=torch.Generator().manual_seed(0)), 5)
    score = PassageBM25(k1, b)(batch, statistics)
    assert (score.shape, score.dtype) == ((batch.num_circles,), torch.float32)
    assert int((score > 0).sum()) > 10
    torch.testing.assert_close(score, expected(batch, statistics, k1, b))
    for number, graph in enumerate(batch.to_data_list()):
        mine = batch.batch[batch.leader_index] == number
        assert torch.equal(PassageBM25(k1, b)(graph, statistics), score[mine])


def test_nothing_to_rate():
    statistics = TermStatistics(torch.zeros(200, dtype=torch.long), 0)
    assert PassageBM25()(document_batch(lengths=(0, 0)), statistics).shape == (0,)
    strangers = Batch.from_data_list([document_graph(torch.tensor([5, 6]), torch.tensor([199]), 0)])
    gather(strangers, *compose(Windows(1), None, torch.empty(2, 0, dtype=torch.long), strangers.batch, 1))
    assert PassageBM25()(strangers, statistics).tolist() == [0.0, 0.0]


def test_options():
    assert repr(PassageBM25()) == "PassageBM25(k1=0.9, b=0.4)"
    for bad in ({"k1": -1.0}, {"b": 1.5}):
        with pytest.raises(OptionError, match="k1 must be at least 0 and b from 0 to 1"):
            PassageBM25(**bad)


def test_the_builder_rates_every_circle(tiny_bert):
    texts = zip((100, 0, 7, 50), random_texts((100, 0, 7, 50), words=9), strict=True)
    documents = {f"d{n}": text for n, text in texts}
    parts = {"edges": SocialEdges([StaticDistance()]), "circles": EdgeCircles(k=2), "passages": Windows(16, 2, 3)}
    builder = builder_of(tiny_bert[0], documents, **parts, relevance=PassageBM25(1.0, 0.5))
    pairs = [("q1", "w1 w3 w3", "d100"), ("q1", "w1 w3 w3", "d0"), ("q2", "w5", "d7"), ("q3", "w2 w8", "d50")]
    batch = builder(pairs)
    torch.testing.assert_close(batch.circle_score, expected(batch, builder.statistics, 1.0, 0.5))
    assert not batch.passage_mask.all()
    assert "circle_score" not in builder_of(tiny_bert[0], documents, **parts)(pairs)


def windows(lengths, seed=0):
    return passage_batch(lengths, Windows(2), seed=seed)


def read(batch, amount):
    """Return the places of the passages that are read of each document."""
    document = batch.batch[batch.leader_index]
    keep = best(PassageSample()(batch, None), document, amount)
    return [keep[document == d].nonzero().flatten().tolist() for d in range(batch.num_graphs)]


def test_the_first_and_the_last_are_always_read():
    found = read(windows((80, 0, 33, 1, 6, 4)), 5)
    assert [len(one) for one in found] == [5, 0, 5, 1, 3, 2]
    assert found[3:] == [[0], [0, 1, 2], [0, 1]]
    assert [found[0][0], found[0][-1], found[2][0], found[2][-1]] == [0, 39, 0, 16]


def test_a_draw_is_that_of_the_pair_alone():
    batch = windows((80, 0, 33, 50))
    rating = PassageSample()(batch, None)
    assert torch.equal(rating, torch.cat([PassageSample()(one, None) for one in batch.to_data_list()]))
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
    assert ((count[1:19] - 100) ** 2 / 100).sum() < 40  # 17 degrees of freedom: above 40 once in 800
