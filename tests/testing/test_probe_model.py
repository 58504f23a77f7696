"""What a model can carry, on documents that are looked at, too."""

import pytest
import torch

from socialgraph.errors import OptionError
from socialgraph.nn import PARADE, MaxP
from socialgraph.partition import EdgeCircles
from socialgraph.testing import probe_model
from socialgraph.testing.probe_model import ASTRAY, LENGTH, ONE, OTHER, QUERY, SMALL, SORTS, WINDOW, Sort, pairs


def halves_of(graph) -> list[tuple[int, int]]:
    """Return the places of words that are halves of an answer, and whether each is the value 0 or 1."""
    said = graph.input_ids.tolist()
    return [(place, (*ONE, *OTHER).index(word)) for place, word in enumerate(said) if word in (*ONE, *OTHER)]


@pytest.mark.parametrize("sort", SORTS[1:])
def test_halves_agree_in_the_right_document_alone(sort):
    graphs = pairs(torch.Generator().manual_seed(1), sort, 20, None).to_data_list()
    for right, wrong in zip(graphs[::2], graphs[1::2], strict=True):
        for graph, agree in ((right, True), (wrong, False)):
            (first, one), (second, other) = sorted(halves_of(graph), key=lambda half: half[1])
            assert second - first == sort.distance
            assert (one == other - 2) is agree
            assert (first // WINDOW == second // WINDOW) is (sort.distance < WINDOW)
        assert int((right.input_ids != wrong.input_ids).sum()) == 1
        assert torch.equal(right.query_ids, wrong.query_ids)
    astray = [sum(word in ASTRAY for word in graph.input_ids.tolist()) for graph in graphs]
    assert (
        all(sort.distractors <= found <= sort.distractors + 2 for found in astray)
        if sort.distractors
        else not any(astray)
    )


def test_a_fact_belongs_to_what_the_query_says():
    for number, graph in enumerate(pairs(torch.Generator().manual_seed(1), SORTS[0], 20, None).to_data_list()):
        ((_, value),) = halves_of(graph)
        assert (value == QUERY.index(int(graph.query_ids))) is (number % 2 == 0)


def test_neither_half_alone_tells():
    graphs = pairs(torch.Generator().manual_seed(0), Sort("halves", 20), 200, None).to_data_list()
    for values in (ONE, OTHER):
        shares = [sum(values[0] in g.input_ids.tolist() for g in part) / 200 for part in (graphs[::2], graphs[1::2])]
        assert all(abs(share - 0.5) < 0.12 for share in shares)


def test_friend_circles_stand_beside_the_windows():
    graph = pairs(torch.Generator().manual_seed(0), SORTS[2], 2, EdgeCircles(2, 16))
    assert int(graph.passage_mask.sum()) == 4 * LENGTH // WINDOW
    assert int((~graph.passage_mask).sum()) == 8


def test_what_no_best_window_can_do_a_pool_of_windows_can():
    """MaxP's score is one window's, and of two windows neither tells: pooled states can say that both are there."""
    sort = Sort("halves", 32)
    before = torch.get_rng_state()
    maxp, parade = (probe_model(lambda kind=kind: kind(**SMALL), sorts=[sort]) for kind in (MaxP, PARADE))
    assert torch.equal(torch.get_rng_state(), before)
    assert maxp.rows[0].share[0] < 0.85 < 0.95 < parade.rows[0].share[0]
    assert "halves          32            0" in str(parade)
    assert str(parade).startswith("PARADE, 100 steps of 32 pairs; right of 256, chance 0.50")


def test_wrong_numbers_are_refused():
    with pytest.raises(OptionError, match="steps must be at least 1 and distances at least 0, got 0"):
        probe_model(lambda: MaxP(**SMALL), steps=0)
