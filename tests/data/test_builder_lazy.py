"""GraphBuilder's lazy option: the same circles, no edges."""

import pytest
import torch

from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens, builder
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance
from socialgraph.errors import OptionError
from socialgraph.partition import EdgeCircles, NodeCircles, Partition, Windows
from socialgraph.partition.expected_circles import ExpectedCircles
from socialgraph.partition.random_circles import RandomCircles

PAIRS = [("q1", "w1 w7 w9", "d0"), ("q2", "w5", "empty"), ("q1", "w1 w7 w9", "d1"), ("q3", "w2 w4", "d2")]


class Own(Partition):
    """Somebody's partition that reads the edges."""

    def forward(self, edge_index, batch, batch_size, edge_weight=None):
        return edge_index[:, :1] * 0, edge_index[0, :1]


@pytest.fixture
def build(tiny_bert):
    generator = torch.Generator().manual_seed(0)
    words = lambda n: " ".join(f"w{i}" for i in torch.randint(0, 195, (n,), generator=generator))  # noqa: E731
    documents = {f"d{i}": Document(f"d{i}", words(n), "") for i, n in enumerate((300, 60, 5))}
    documents["empty"] = Document("empty", " ")
    tokens = Tokens(tiny_bert[0], max_document_length=400)
    statistics = TermStatistics.count((tokens.document(d) for d in documents.values()), tokens.vocab_size)
    edges = SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()])
    return lambda *args, **options: GraphBuilder(documents, tokens, statistics, *(args or (edges,)), **options)


@pytest.mark.parametrize("circles", [EdgeCircles(k=3), NodeCircles(k=3)])
def test_the_same_circles_without_edges(build, circles):
    full, lazy = (build(circles=circles, passages=Windows(64), lazy=choice)(PAIRS) for choice in (False, True))
    assert "edge_index" in full
    assert "edge_index" not in lazy
    assert "edge_weight" not in lazy
    for key in ("circle_index", "leader_index", "passage_mask", "tfidf", "dynamic_distance"):
        assert torch.equal(full[key], lazy[key])
        for number in range(len(PAIRS)):
            assert torch.equal(full[number][key], lazy[number][key])


def test_by_size_when_nobody_says(build, monkeypatch):
    one = build(circles=EdgeCircles(k=3))
    assert "edge_index" in one(PAIRS)
    monkeypatch.setattr(builder, "LAZY_ABOVE", 299)
    assert "edge_index" not in one(PAIRS)
    assert "edge_index" in one(PAIRS[1:])
    assert "edge_index" in build(circles=EdgeCircles(k=3), lazy=False)(PAIRS)


def test_partitions_that_read_edges_get_them(build, monkeypatch):
    monkeypatch.setattr(builder, "LAZY_ABOVE", 0)
    assert "edge_index" in build(circles=Own())(PAIRS)
    assert "edge_index" in build(circles=EdgeCircles(k=3), passages=Own())(PAIRS)
    for options in ({"circles": Own()}, {"circles": EdgeCircles(k=3), "passages": Own()}):
        with pytest.raises(OptionError, match="lazy"):
            build(lazy=True, **options)
    with pytest.raises(OptionError, match="lazy"):
        build(None, lazy=True, passages=Windows(64))


@pytest.mark.parametrize("circles", [ExpectedCircles(k=3, max_size=20), RandomCircles(ExpectedCircles(k=3))])
def test_circles_that_must_not_know_who_drew_the_edges(build, circles):
    full, lazy = (build(circles=circles, passages=Windows(64), lazy=choice)(PAIRS) for choice in (False, True))
    drawn = build(circles=EdgeCircles(), lazy=False)(PAIRS)
    assert torch.equal(full.edge_index, drawn.edge_index)
    assert torch.equal(full.edge_weight, drawn.edge_weight)
    assert "edge_index" not in lazy
    assert int((~full.passage_mask).sum()) >= 6
    for key in ("circle_index", "leader_index", "passage_mask"):
        assert torch.equal(full[key], lazy[key])


def test_edges_for_who_reads_them_and_for_who_must_not(build):
    seen = []

    class Watching(Own):
        takes_lazy = True

        def forward(self, edge_index, batch, batch_size, edge_weight=None):
            seen.append((type(edge_index).__name__, edge_weight is None))
            return torch.zeros(2, 0).long(), torch.zeros(0).long()

    class Needing(Watching):
        needs_lazy = True

    build(circles=Watching(), lazy=False)(PAIRS)
    build(circles=Needing(), lazy=False)(PAIRS)
    build(circles=Needing(), passages=Own())(PAIRS)  # passages need every edge: then circles get them as well
    assert seen == [("Tensor", False), ("LazyGraph", True), ("Tensor", False)]
