"""The small picture of a graph: what is drawn, not how it looks."""

from __future__ import annotations

import numpy as np
import pytest
from artists import find, no_warnings, one, render, texts

from socialgraph.errors import InputError
from socialgraph.inspect import draw

HOSTILE = r"$\frac{1}{$ \input{/etc/passwd} <b>" + "\x00\u202e漢\n"

pytestmark = no_warnings


def test_a_line_for_each_circle_with_its_members_and_its_leader(batch):
    graph = batch[0]
    words = [f"word{node}" for node in range(70)]
    figure = draw(graph, words)
    circles = (~graph.passage_mask).nonzero().flatten().tolist()
    leaders = [int(graph.leader_index[circle]) for circle in circles]
    for number, circle in enumerate(circles):
        ticks = [int(segment[0][0]) for segment in one(figure, f"circle {number}").get_segments()]
        assert ticks == graph.circle_index[0, graph.circle_index[1] == circle].tolist()
        assert one(figure, f"leader {number}").get_xydata().tolist() == [[leaders[number], number]]
    names = [label.get_text().split() for label in figure.axes[0].get_yticklabels()]
    assert names == [[f"word{leader}", str(number)] for number, leader in enumerate(leaders)]
    assert "node" in draw(graph).axes[0].get_yticklabels()[0].get_text()
    assert not find(figure, f"circle {len(circles)}")
    render(figure)


def test_the_matrix_holds_every_edge_and_those_inside_a_circle_in_its_colour(batch):
    graph = batch[0]
    figure = draw(graph)
    adjacency = np.zeros((70, 70))
    adjacency[tuple(graph.edge_index.numpy())] = 1
    assert np.array_equal(one(figure, "edges").get_array(), adjacency)
    first = int((~graph.passage_mask).nonzero()[0])
    members = set(graph.circle_index[0, graph.circle_index[1] == first].tolist())
    inside = {(i, j) for i, j in graph.edge_index.T.tolist() if {i, j} <= members}
    assert {(int(x), int(y)) for x, y in one(figure, "edges 0").get_xydata()} == inside
    assert inside


def test_words_title_and_ids_are_drawn_as_they_are(batch):
    graph = batch[0]
    figure = draw(graph, [HOSTILE] * 70, HOSTILE)
    shown = r"$\frac{1}{$ \input{/etc/passwd} <b>□□□□"
    assert shown in texts(figure)
    assert all(label.get_text()[:-3] == shown[:15] + "…" for label in figure.axes[0].get_yticklabels())
    assert not any(text.get_parse_math() for text in [figure._suptitle, *figure.axes[0].get_yticklabels()])
    render(figure)
    graph.query_id, graph.document_id = HOSTILE, ""
    assert f"query {shown}" in texts(draw(graph))


def test_what_cannot_be_drawn_is_said(batch):
    with pytest.raises(InputError, match="batch of 4"):
        draw(batch)
    with pytest.raises(InputError, match="a word for each of its 70 nodes, got 1"):
        draw(batch[0], ["a"])
