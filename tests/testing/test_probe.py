"""The probe finds what is known: windows end, random circles meet by chance, words do not matter to who cannot read."""

from __future__ import annotations

import itertools

import pytest
import torch

from socialgraph.edges import DynamicDistance, LongformerEdges, SocialEdges, StaticDistance, Uniform
from socialgraph.errors import OptionError
from socialgraph.partition import EdgeCircles, NodeCircles, Partition, QueryWindows, RandomCircles, Whole, Windows
from socialgraph.testing import Probe, probe
from socialgraph.testing import probe as function
from socialgraph.testing.probe import Met, Row, chances, shares

#: small and quick: the edges of 256 words
SMALL = {"length": 256, "distances": (2, 60), "distractors": (0, 3), "documents": 8}


def by_sort(found: Probe) -> dict[tuple[str, int, int], Row]:
    return {row[:3]: row for row in found.rows}


def test_windows_hold_what_is_nearer_than_their_end() -> None:
    found = probe(Windows(64), SocialEdges([Uniform()]), 1024, (4, 100), (0,), 200)
    for kind in ("fact", "halves"):
        sort = by_sort(found)
        near, far = sort[kind, 0, 4], sort[kind, 0, 100]
        width = (2, 4) if kind == "fact" else (4, 4)
        gaps = [4 + i + j for i in range(width[0]) for j in range(width[1])]  # from word to word
        expected = sum(1 - gap / 64 for gap in gaps) / len(gaps)
        assert near.circle.share == pytest.approx(expected, abs=4 * near.circle.error)
        assert far.circle.share == 0.0
        # a word has 63 others in its window, of 1,023
        assert near.circle.chance == pytest.approx(63 / 1023)
        assert near.leaders[:2] == (1.0, 1.0)  # everybody is in a window
        assert near.circle.clear
        assert not far.circle.clear
        assert not near.leaders.clear
        assert found.reach(kind, 0) == 4
        assert found.reach(kind, 0, by="leaders") == 0


def test_random_circles_meet_by_chance() -> None:
    circles = RandomCircles(Windows(32, k=4))
    found = probe(circles, SocialEdges([Uniform()]), 256, (1, 50), (0, 2), 150)
    for row in found.rows:
        for met in (row.circle, row.leaders):
            assert 0 < met.chance < 1
            assert abs(met.share - met.chance) < 4 * met.error
    assert found.reach("fact", 0) == found.reach("halves", 2) == 0


def test_the_whole_document_is_one_circle_and_no_better_than_chance() -> None:
    found = probe(Whole(), **SMALL)
    for row in found.rows:
        assert row.circle == row.leaders == Met(1.0, 1.0, 0.0)
        assert not row.circle.clear


def test_nobody_meets_where_there_are_no_circles() -> None:
    class Nobody(Partition):
        def forward(self, edge_index, batch, batch_size, edge_weight=None):
            return batch.new_empty(2, 0), batch.new_empty(0)

    found = probe(Nobody(), **SMALL)
    assert {(row.circle, row.leaders) for row in found.rows} == {(Met(0.0, 0.0, 0.0), Met(0.0, 0.0, 0.0))}


def test_friends_of_neighbours_do_not_see_distractors() -> None:
    """Static distance reads no word, so false keys change nothing."""
    sort = by_sort(probe(NodeCircles(k=4, max_size=40), SocialEdges([StaticDistance()]), **SMALL))
    for (kind, distractors, distance), row in sort.items():
        assert row[3:] == sort[kind, 0, distance][3:], distractors


def test_who_stands_near_the_query_meets_across_the_text() -> None:
    """Dynamic distance joins two halves that stand beside the query's words, however far; static distance does not.

    And it does not find a fact that stands far from them.
    """
    sizes = {"length": 1024, "distances": (500,), "distractors": (0,), "documents": 12}
    circles = NodeCircles(k=4, max_size=64)
    asked, near = (by_sort(probe(circles, SocialEdges([x]), **sizes)) for x in (DynamicDistance(), StaticDistance()))
    assert asked["halves", 0, 500].circle.clear
    assert asked["halves", 0, 500].leaders.clear
    assert not asked["fact", 0, 500].circle.clear
    assert not near["halves", 0, 500].circle.clear


def test_a_partition_may_look_for_the_query() -> None:
    """Windows around each key hold the half beside it, unless their border parts the two; k=4 takes all of them."""
    found = probe(QueryWindows(k=4, size=64), SocialEdges([Uniform()]), 512, (200,), (0,), 30)
    halves = by_sort(found)["halves", 0, 200]
    assert halves.circle.share == 0.0
    assert halves.leaders.share > 0.7
    assert halves.leaders.clear


def test_how_many_are_drawn_together_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    module = __import__("sys").modules[function.__module__]
    want = probe(EdgeCircles(k=3, max_size=32), **SMALL)
    monkeypatch.setattr(module, "TOGETHER", 3)
    assert probe(EdgeCircles(k=3, max_size=32), **SMALL) == want


def test_shares_by_hand() -> None:
    """Circles {0, 1, 2} and {2, 4} of the first document, {0, 5} of the second; nobody else is in one."""
    member = torch.zeros(2, 6, 3, dtype=torch.bool)
    member[0, [0, 1, 2], 0] = True
    member[0, [2, 4], 1] = True
    member[1, [0, 5], 2] = True
    one, other = torch.tensor([[0, 1], [0, 1]]), torch.tensor([[2, 4, 3], [5, 2, 3]])
    # together 0-2, 1-2 of six pairs; by leaders 0-4, 1-4 too; then 0-5 only
    assert shares(member, one, other).tolist() == [[2 / 6, 4 / 6], [1 / 6, 1 / 6]]


def test_chance_is_the_share_of_all_pairs() -> None:
    member = torch.rand(5, 12, 7, generator=torch.Generator().manual_seed(1)) < 0.2
    member[4] = False
    pairs = list(itertools.permutations(range(12), 2))
    for document in range(5):
        together = [bool((member[document, i] & member[document, j]).any()) for i, j in pairs]
        linked = [bool(member[document, i].any() and member[document, j].any()) for i, j in pairs]
        want = [sum(together) / len(pairs), sum(linked) / len(pairs)]
        assert chances(member)[document].tolist() == pytest.approx(want)


def test_reach_is_the_last_distance_before_the_first_failure() -> None:
    good, bad = Met(0.5, 0.1, 0.1), Met(0.3, 0.1, 0.1)
    rows = [Row("fact", 0, d, circle, bad) for d, circle in ((4, good), (16, good), (64, bad), (256, good))]
    found = Probe("", "", 512, 2, rows)
    assert found.reach("fact", 0) == 16
    assert found.reach("fact", 0, by="leaders") == 0
    with pytest.raises(OptionError, match="nothing was tried with kind='fact', distractors=8, by='circle'"):
        found.reach("fact", 8)


def test_it_is_shown_as_a_table() -> None:
    found = probe(Windows(16, k=2), SocialEdges([Uniform()]), **SMALL)
    lines = str(found).splitlines()
    assert lines[0] == repr(Windows(16, k=2))
    row = found.rows[0]
    assert row[:3] == ("fact", 0, 2)
    assert lines[6].split()[:4] == ["fact", "2", f"{row.circle.share:.2f}", f"({row.circle.chance:.2f})"]
    sorts = [line.split()[:2] for line in lines[6:10]]
    assert sorts == [["fact", "2"], ["fact", "60"], ["halves", "2"], ["halves", "60"]]
    assert str(Met(0.5, 0.125, 0.1)) == "0.50 (0.12)*"
    assert str(Met(0.4, 0.125, 0.1)) == "0.40 (0.12)"


def test_what_cannot_be_probed_is_refused() -> None:
    with pytest.raises(OptionError, match=r"probe takes an instance of a Partition, such as MyPartition\(\), got"):
        probe(Windows)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="probe draws social edges"):
        probe(Windows(16), LongformerEdges())  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="documents, their number, must be at least 2, got 1"):
        probe(Windows(16), documents=1)
    with pytest.raises(OptionError, match="length, the number of words, must be at least 2, got 0"):
        probe(Windows(16), length=0)
    with pytest.raises(OptionError, match=r"distances must be whole numbers of at least 1, got \(0, 4\)"):
        probe(Windows(16), distances=(0, 4))
    with pytest.raises(OptionError, match=r"distractors must be whole numbers of at least 0, got \(\)"):
        probe(Windows(16), distractors=())
