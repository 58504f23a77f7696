"""The levels of compare.py: their numbers written out, and scores that are kept."""

import itertools
from statistics import fmean

import pytest
import torch
from commands import composed_from
from graphs import document
from lab.levels import reading
from lab.levels.evidence import measures
from lab.levels.reading import CachedScores, content_of, random_reciprocal_rank
from lab.levels.runs import depends_on
from lab.results import differences
from torch_geometric.data import Batch

from socialgraph.data import Cache, Split
from socialgraph.data.graph import gather
from socialgraph.partition import Partition, RandomCircles, Whole, Windows


def batch_of(sizes, partition: Partition | None = None, query=(13,), step=7):
    """A batch of documents of these sizes with the circles of a partition; with step 0 all begin alike."""
    graphs = [document([10 + (step * n + i * i) % 50 for i in range(size)], list(query), [1.0] * size)
              for n, size in enumerate(sizes)]  # fmt: skip
    batch = Batch.from_data_list(graphs)
    circles, leader = (partition or Windows(8))(torch.empty(2, 0, dtype=torch.long), batch.batch, batch.num_graphs)
    gather(batch, circles, leader, torch.ones_like(leader, dtype=torch.bool))
    return batch


def written_out(length, circles, start, end):
    """The measures of one document, by their definitions."""
    evidence = set(range(start, min(end, length)))
    union = set().union(*map(set, circles)) if circles else set()
    most = sorted(circles, key=lambda circle: -len(evidence & set(circle)))  # of equals the first
    held = [len(evidence & set().union(*most[:amount])) for amount in (1, 2)]
    runs = sum(sum(i - 1 not in circle for i in circle) for circle in map(set, circles))
    members = sum(map(len, circles))
    return {
        "lift": len(union & evidence) / len(evidence) - len(union) / length,
        "best circle": held[0] / len(evidence),
        "best two": held[1] / len(evidence),
        "run": members / max(1, runs),
        "sequences": len(circles),
        "words": members,
    }


@pytest.mark.parametrize("partition", [Windows(8, k=3), Whole(), Windows(5), RandomCircles(Windows(9, k=4), seed=3)])
def test_what_circles_hold(partition):
    sizes, places = (40, 9, 64, 1, 30), [(3, 12), (0, 4), (50, 90), (0, 1), (25, 28)]
    batch = batch_of(sizes, partition)
    found = measures(batch, torch.tensor(places))
    start = 0
    for number, (size, place) in enumerate(zip(sizes, places, strict=True)):
        mine = (batch.batch[batch.leader_index] == number).nonzero().flatten().tolist()
        circles = [(batch.circle_index[0, batch.circle_index[1] == c] - start).tolist() for c in mine]
        for name, value in written_out(size, circles, *place).items():
            assert float(found[name][number]) == pytest.approx(value, abs=1e-6), (number, name)
        start += size


def test_random_members_have_no_lift_and_whole_documents_none():
    sizes = range(200, 320)
    places = torch.tensor([[size // 2, size // 2 + 40] for size in sizes])
    for partition, tolerance in ((RandomCircles(Windows(16, k=3)), 0.03), (Whole(), 1e-6)):
        assert abs(float(measures(batch_of(sizes, partition), places)["lift"].mean())) < tolerance
    start = torch.zeros_like(places)
    start[:, 1] = 48
    assert (measures(batch_of(sizes, Windows(16, k=3)), start)["lift"] > 0.7).all()


def test_equal_sequences_are_read_once():
    def length(graph):
        return torch.bincount(graph.circle_index[1], minlength=graph.leader_index.numel()).float()

    cache, few, many = Cache(), batch_of((40, 24), Windows(8, k=2)), batch_of((40, 24), Windows(8))
    scores = CachedScores("length", length, cache)
    assert scores(few).tolist() == [8.0] * 4
    assert (scores.new, scores(many).tolist()) == (4, [8.0] * 8)
    assert scores.new == 8
    assert torch.equal(content_of(many)[[0, 1, 5, 6]], content_of(few))
    assert not torch.isin(content_of(batch_of((40, 24), Windows(8), query=(14,))), content_of(many)).any()
    assert not torch.isin(content_of(batch_of((40, 24), Windows(7))), content_of(many)).any()
    again = CachedScores("length", lambda graph: pytest.fail("everything is known"), cache)
    assert torch.equal(again(many), scores(many))
    other = CachedScores("another reader", length, cache)
    assert other(batch_of((40, 40), Windows(8), step=0)).tolist() == [8.0] * 10  # one document, twice
    assert other.new == 5
    places = CachedScores("order", lambda graph: graph.input_ids[graph.leader_index].float(), Cache())
    expected = many.input_ids[many.leader_index].float()
    places(few)
    assert torch.equal(places(many), expected)  # those that were known and those that were not, each in its place


def test_a_random_order():
    def split(n, relevant):
        names = [f"d{i}" for i in range(n)]
        return Split({"q": "?"}, {"q": {f"d{i}": 1 for i in range(relevant)}}, {"q": dict.fromkeys(names, 1.0)})

    for n, relevant, cut in ((5, 1, 10), (6, 2, 10), (6, 2, 3), (4, 4, 10)):
        orders = itertools.permutations(range(n))
        firsts = [min(place for place, d in enumerate(order, 1) if d < relevant) for order in orders]
        expected = fmean(1 / place if place <= cut else 0.0 for place in firsts)
        assert random_reciprocal_rank(split(n, relevant), cut) == pytest.approx(expected)


def test_what_a_reading_depends_on():
    typed = ["partition=edge", "recipe.passages=null", "data.label=x"]
    plain = depends_on(composed_from(*typed, name="compare"), "reading")
    assert not differences(plain, depends_on(composed_from(*typed, "trainer.bf16=auto", name="compare"), "reading"))
    half = depends_on(composed_from(*typed, "trainer.bf16=true", name="compare"), "reading")
    assert differences(plain, half) == ["bf16 was None, is True"]
    other = depends_on(composed_from("partition=edge", "levels.reading.amount=7", name="compare"), "reading")
    assert {one.split(" was ")[0] for one in differences(plain, other)} >= {"recipe.passages", "amount"}


def test_a_document_without_a_circle_comes_last():
    score, document = torch.tensor([-3.0, -1.0, -5.0]), torch.tensor([0, 0, 2])
    assert reading.pool(score, document, 3, "mean").tolist() == [-2.0, -1e4, -5.0]
    assert reading.pool(score, document, 3, "max").tolist() == [-1.0, -1e4, -5.0]
