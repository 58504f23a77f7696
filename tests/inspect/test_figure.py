"""The picture: what is drawn, not how it looks."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from artists import find, no_warnings, one, render, texts
from conftest import document_batch
from matplotlib.colors import to_rgba

from socialgraph.data import document_graph
from socialgraph.errors import InputError, OptionError
from socialgraph.inspect import draw
from socialgraph.inspect.figure import LANES
from socialgraph.inspect.marks import OTHERS, PALETTE

pytestmark = no_warnings


def friends(graph) -> list[int]:
    return (~graph.passage_mask).nonzero().flatten().tolist()


def boxes(collection) -> np.ndarray:
    """Left, right, top and low of each rectangle."""
    corners = np.array([path.vertices[:4] for path in collection.get_paths()]).reshape(-1, 4, 2)
    return np.stack([corners[:, 0, 0], corners[:, 1, 0], corners[:, 0, 1], corners[:, 2, 1]], 1)


@pytest.mark.parametrize("with_words", [True, False])
def test_every_word_has_a_cell_in_reading_order(batch, with_words):
    graph = batch[0]
    figure = draw(graph, [f"word{i}" for i in range(graph.num_nodes)] if with_words else None)
    left, right, top, low = boxes(one(figure, "cells")).T
    assert len(left) == 70
    assert (left < right).all()
    assert (top < low).all()
    assert sorted(range(70), key=lambda i: (top[i], left[i])) == list(range(70))
    same = np.isclose(top[1:], top[:-1])
    assert (right[:-1][same] <= left[1:][same] + 1e-9).all()  # no two overlap
    printed = [word.get_text() for word in find(figure, "word")]
    assert printed == ([f"word{i}" for i in range(70)] if with_words else [])
    render(figure)


def test_cells_have_the_colours_of_their_circles(batch):
    graph = batch[0]
    stripes = one(draw(graph), "memberships")
    expected = [
        (node, PALETTE[place])
        for place, circle in enumerate(friends(graph))
        for node in graph.circle_index[0, graph.circle_index[1] == circle].tolist()
    ]
    cells, parts = boxes(one(draw(graph), "cells")), boxes(stripes)
    found = []
    for (left, right, top, _), colour in zip(parts, stripes.get_facecolors(), strict=True):
        inside = (cells[:, 0] - 1e-6 <= left) & (right <= cells[:, 1] + 1e-6) & np.isclose(cells[:, 2], top)
        (node,) = np.flatnonzero(inside)
        (name,) = [name for name in PALETTE if np.allclose(to_rgba(name), colour)]
        found.append((int(node), name))
    assert sorted(found) == sorted(expected)


def test_leaders_and_query_words_are_marked(batch):
    graph = batch[2]
    figure = draw(graph, ["x"] * graph.num_nodes)
    cells, marked = boxes(one(figure, "cells")), boxes(one(figure, "leaders"))
    leaders = sorted({int(graph.leader_index[circle]) for circle in friends(graph)})
    assert leaders
    assert np.allclose(marked, cells[leaders])
    match = [i for i, token in enumerate(graph.input_ids.tolist()) if token in graph.query_ids.tolist()]
    bars = boxes(one(figure, "query matches"))
    assert match
    assert np.allclose(bars[:, :2], cells[match, :2])
    assert len(boxes(one(figure, "passages"))) == int(graph.passage_mask.sum())
    assert [text.get_text() for text in find(figure, "leader number")]


def test_lines_and_numbers_of_each_circle(batch):
    graph = batch[0]
    figure = draw(graph, [f"w{i}" for i in range(70)])
    for circle in friends(graph):
        members = graph.circle_index[0, graph.circle_index[1] == circle].tolist()
        leader = int(graph.leader_index[circle])
        ticks = one(figure, f"members {circle}").get_segments()
        assert [int(tick[0, 0]) for tick in ticks] == members
        assert list(one(figure, f"leader {circle}").get_xdata()) == [leader]
        edges, reach = 0, 0.0
        for (i, j), weight in zip(graph.edge_index.T.tolist(), graph.edge_weight.tolist(), strict=True):
            if i < j and i in members and j in members:
                edges += 1
                reach += weight * (leader in (i, j))
        row = [text.get_text() for text in find(figure, f"circle {circle}")]
        assert row == [f"w{leader}", str(len(members)), str(edges), f"{reach:.1f}"]


def test_a_dot_for_each_directed_edge(batch):
    graph = batch[0]
    dots = one(draw(graph), "edges").get_xydata()
    assert {tuple(dot) for dot in dots.astype(int).tolist()} == set(map(tuple, graph.edge_index.T.tolist()))
    assert len(dots) == graph.edge_index.shape[1]


def test_chosen_circles_have_colours_and_the_rest_is_grey(batch):
    graph = batch[0]
    chosen = friends(graph)[1]
    figure = draw(graph, circles=[chosen])
    members = graph.circle_index[0, graph.circle_index[1] == chosen]
    assert len(boxes(one(figure, "memberships"))) == len(members)
    anybody = set(graph.circle_index[0, ~graph.passage_mask[graph.circle_index[1]]].tolist())
    grey = [np.allclose(colour, to_rgba(OTHERS)) for colour in one(figure, "cells").get_facecolors()]
    assert {i for i, is_grey in enumerate(grey) if is_grey} == anybody
    assert "other friend circles" in texts(figure)
    assert len(find(figure, "edges")) == 1
    assert not find(figure, f"edges {friends(graph)[0]}")
    assert not find(draw(graph, circles=[]), "memberships")


def test_more_circles_than_colours_and_lines():
    graph = document_batch(lengths=(120,), k=LANES + 5)[0]
    assert len(friends(graph)) == LANES + 5
    figure = draw(graph)
    assert len([circle for circle in friends(graph) if find(figure, f"edges {circle}")]) == len(PALETTE)
    assert len([circle for circle in friends(graph) if find(figure, f"members {circle}")]) == LANES
    assert "not shown: 5 friend circles" in texts(figure)
    last = friends(graph)[-1]
    assert find(draw(graph, circles=[last]), f"members {last}")  # who is chosen has a line


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_text_of_documents_is_never_a_formula(batch, kind):
    graph = batch[3]
    hostile = r"$\frac{1}{$"
    graph.document_id = r"$\bad{$"
    figure = draw(graph, [hostile])
    assert hostile in [word.get_text() for word in find(figure, "word")]
    assert any(r"$\bad{$" in text for text in texts(figure))
    render(figure, kind)  # mathtext would raise ValueError
    title = draw(graph, title=r"costs $5 or $\alpha$")
    assert r"costs $5 or $\alpha$" in texts(title)
    render(title, kind)


def test_characters_without_a_glyph_become_boxes(batch):
    graph = batch[2]
    words = ["漢字", "a\nb", "\N{RIGHT-TO-LEFT OVERRIDE}x", "\x00", "", "##", "##ing", "é", "y" * 500]
    figure = draw(graph, words + ["z"] * (33 - len(words)))
    found = [word.get_text() for word in find(figure, "word")]
    assert found[:9] == ["□□", "a□b", "□x", "□", "", "##", "ing", "é", "y" * 15 + "…"]
    render(figure)


@pytest.mark.parametrize("place", [1, 3])
@pytest.mark.parametrize("with_words", [True, False])
def test_empty_and_one_word(batch, place, with_words):
    graph = batch[place]
    figure = draw(graph, ["word"] * graph.num_nodes if with_words else None)
    assert len(find(figure, "cells")) == graph.num_nodes
    assert ("The document has no word piece." in texts(figure)) is (graph.num_nodes == 0)
    assert "No friend circle." in texts(figure)
    render(figure)


def test_before_edges_and_circles():
    graph = document_graph(torch.arange(40), torch.tensor([3]), 0, "q", "d")
    figure = draw(graph)
    assert len(boxes(one(figure, "cells"))) == 40
    assert len(boxes(one(figure, "query matches"))) == 1
    assert "Document d, query q" in texts(figure)
    render(figure)


def test_many_words_become_cells_without_text():
    graph = document_graph(torch.arange(12_000) % 50, torch.tensor([3]), 0)
    figure = draw(graph, ["something"] * 12_000)
    assert find(figure, "word") == []
    assert len(boxes(one(figure, "cells"))) == 12_000
    assert figure.get_size_inches()[1] < 10.5
    render(figure)


def test_refusals(batch):
    with pytest.raises(InputError, match="batch of 4"):
        draw(batch)
    with pytest.raises(InputError, match="70 nodes, got 2"):
        draw(batch[0], ["a", "b"])
    with pytest.raises(OptionError, match="circles names 0, but the friend circles of the graph are 5, 6"):
        draw(batch[0], circles=[5, 0])  # 0 is a passage
    graph = document_batch(lengths=(120,), k=12)[0]
    with pytest.raises(OptionError, match="for 8 circles at most, got 9"):
        draw(graph, circles=friends(graph)[:9])


def test_no_window_and_no_global_state():
    code = "import sys, socialgraph.inspect; print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
