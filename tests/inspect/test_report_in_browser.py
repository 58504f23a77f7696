"""What a reader can do with the page of a document, in a browser. Hostile documents: test_hostile_in_browser.py."""

from __future__ import annotations

import pytest
import torch
from pages import TIES, circles_of, friends_of, one, piece

from socialgraph.inspect.patterns import pattern_shares
from socialgraph.inspect.report import View, report
from socialgraph.partition import EdgeCircles, NodeCircles


def lines(tab) -> list[int]:
    """How many circles' lines each word has."""
    drawn = tab.locator(".text .piece").evaluate_all("all => all.map(one => getComputedStyle(one).backgroundImage)")
    return [image.count("repeating-linear-gradient") for image in drawn]


def current(tab) -> list[int]:
    return tab.locator(".piece.self").evaluate_all("all => all.map(one => Number(one.dataset.node))")


def listed(tab) -> dict[int, list[str]]:
    """The friends that the panel lists, by node: the texts of their row."""
    rows = tab.locator("#ties tr[data-node]").evaluate_all(
        "all => all.map(row => [row.dataset.node, [...row.cells].map(cell => cell.textContent)])"
    )
    return {int(node): cells for node, cells in rows}


def test_hovering_a_word_shows_its_friends(load):
    graph, edges = one()
    ids = graph.input_ids.tolist()
    tab = load(report(graph, [f"w{i}" for i in ids], "", edges))
    shares = pattern_shares(graph, edges, graph.edge_index)
    for node in (0, 33, 69):
        friends = friends_of(graph, node)
        piece(tab, node).hover()
        assert current(tab) == [node]
        assert tab.locator("#about h2").text_content() == f"w{ids[node]}"
        assert f"{len(friends)} friends" in tab.locator("#about").text_content()
        shaded = tab.locator(".piece.shaded").evaluate_all("all => all.map(one => Number(one.dataset.node))")
        assert set(shaded) == set(friends)
        piece(tab, node).click()  # hold it, to reach the button
        if tab.locator("#more").count():
            tab.locator("#more").click()
        found = listed(tab)
        assert set(found) == set(friends)
        weights = [float(cells[2]) for cells in found.values()]
        assert weights == sorted(weights, reverse=True)
        for friend, (word, place, weight, by, met) in found.items():
            assert (word, place) == (f"w{ids[friend]}", str(friend))
            assert float(weight) == pytest.approx(friends[friend], abs=6e-4)
            at = ((graph.edge_index[0] == node) & (graph.edge_index[1] == friend)).nonzero().item()
            parts = {"".join(w[0] for w in name.split("_")): float(shares[name][at]) for name in TIES}
            assert parts[by] == pytest.approx(max(parts.values()), abs=1 / 255)
            both = [number for number in circles_of(graph, node) if number in circles_of(graph, friend)]
            assert met == "".join(map(str, both))
        tab.keyboard.press("Escape")


def test_a_pattern_weighs_friends_by_its_part(load):
    graph, edges = one()
    tab = load(report(graph, ["a"] * 70, "", edges))
    tab.select_option("#shade", "pattern:static_distance")
    assert tab.locator(".piece.shaded").count() > 30
    piece(tab, 33).hover()
    friends = friends_of(graph, 33)
    ends = torch.tensor([[33] * len(friends), list(friends)])
    share = dict(zip(friends, pattern_shares(graph, edges, ends)["static_distance"].tolist(), strict=True))
    for friend, cells in listed(tab).items():
        assert float(cells[2]) == pytest.approx(friends[friend] * share[friend], abs=3e-3)
    tab.select_option("#shade", "weight:tfidf")
    much = piece(tab, int(graph.tfidf.argmax())).evaluate("one => one.style.getPropertyValue('--much')")
    assert float(much) == 1.0


def test_toggling_a_circle_takes_its_line_away(load):
    graph, edges = one(circles=EdgeCircles(k=16, max_size=12))
    tab = load(report(graph, ["a"] * 70, "", edges))
    friends = (~graph.passage_mask).nonzero().flatten().tolist()
    assert tab.locator(".friends .circle").count() == len(friends)
    belongs = [circles_of(graph, node) for node in range(70)]
    assert lines(tab) == [len(numbers) for numbers in belongs]
    assert max(lines(tab)) > 2
    number = 1
    members = graph.circle_index[0, graph.circle_index[1] == friends[number]].tolist()
    leader = int(graph.leader_index[friends[number]])
    assert tab.locator(".friends .number").all_text_contents() == [str(place) for place in range(len(friends))]
    assert str(number) in piece(tab, leader).evaluate("one => one.nextElementSibling.textContent").split()
    tab.get_by_label(f"Show circle {number}", exact=True).uncheck()
    assert lines(tab) == [len(numbers) - (number in numbers) for numbers in belongs]
    assert str(number) not in piece(tab, leader).evaluate("one => one.nextElementSibling.textContent").split()
    tab.locator(".none").click()
    assert not any(lines(tab))
    assert tab.locator(".piece.leading").count() == 0
    tab.locator(".first").fill("1")
    assert lines(tab) == [int(0 in numbers) for numbers in belongs]
    tab.locator(f'.friends .circle[data-circle="{number}"] .name').click()  # let it stand out
    marked = tab.locator(".piece.member").evaluate_all("all => all.map(one => Number(one.dataset.node))")
    assert sorted(marked) == sorted(members)
    passages = int(graph.passage_mask.sum())
    assert tab.locator(".text.passages > div").count() == passages
    labels = tab.locator(".text > div").evaluate_all("all => all.map(one => one.dataset.label)")
    assert labels == [f"¶{number}" for number in range(passages)]
    tab.get_by_label("Passages").uncheck()
    assert tab.locator(".text.passages").count() == 0


def test_the_keyboard_reaches_everything(load):
    graph, edges = one()
    tab = load(report(graph, ["word"] * 70, "", edges))
    for _ in range(40):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.classList.contains('piece')"):
            break
    assert current(tab) == [0]
    for key, expected in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 69), ("Home", 0)):
        tab.keyboard.press(key)
        assert current(tab) == [expected]
        assert tab.evaluate("document.activeElement.dataset.node") == str(expected)
    tab.keyboard.press("ArrowDown")
    (below,) = current(tab)
    assert piece(tab, below).bounding_box()["y"] > piece(tab, 0).bounding_box()["y"] + 8
    assert piece(tab, below).bounding_box()["x"] == pytest.approx(piece(tab, 0).bounding_box()["x"], abs=20)
    tab.keyboard.press("ArrowUp")
    assert current(tab) == [0]
    assert tab.locator('.piece[tabindex="0"]').count() == 1
    tab.keyboard.press("Enter")
    piece(tab, 5).hover()
    assert current(tab) == [0]  # held
    assert tab.locator('.piece[aria-selected="true"]').count() == 1
    tab.keyboard.press("Escape")
    piece(tab, 6).hover()
    assert current(tab) == [6]
    tab.keyboard.press("Escape")
    assert current(tab) == []


def test_scores_stand_beside_the_circles(load):
    graph, edges = one()
    passages = int(graph.passage_mask.sum())
    without = torch.tensor([1.0 + (circle - 3) / 8 for circle in range(graph.num_circles)])
    without[3] = 1.0 - 1e-5
    tab = load(report(View(graph, "", 1.0, without), ["a"] * 70, "", edges))
    rows = [*tab.locator(".passage-list .circle").all(), *tab.locator(".friends > .circle").all()]  # as in the graph
    assert len(rows) == graph.num_circles
    for circle, row in enumerate(rows):
        assert int(row.get_attribute("data-circle")) == (circle if circle < passages else circle - passages)
        after, change = row.locator(".delta").text_content().replace("−", "-").split()
        assert float(after) == pytest.approx(float(without[circle]), abs=6e-4)
        assert float(change) == pytest.approx(float(without[circle]) - 1.0, abs=6e-4)
        side = "" if circle == 3 else " down" if circle < 3 else " up"  # of 3 no change is seen
        assert row.locator(".delta").get_attribute("class") == f"delta{side}"
        assert change[0] == {"": "0", " down": "-", " up": "+"}[side]
    tab = load(report(graph, ["a"] * 70, "", edges))
    assert tab.locator(".delta").count() == 0
    assert "--model" in tab.locator(".list > .note").text_content()


def test_a_touch_opens_the_word_on_a_phone(load):
    graph, edges = one()
    tab = load(report(graph, ["a"] * 70, "", edges), has_touch=True)
    tab.set_viewport_size({"width": 380, "height": 700})
    assert not tab.locator("#word").is_visible()
    piece(tab, 8).tap()
    assert current(tab) == [8]
    assert tab.locator("#word").is_visible()
    tab.locator("#close").tap()
    assert not tab.locator("#word").is_visible()
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_long_document_is_light_and_answers_at_once(load):
    graph, edges = one(2048, NodeCircles(k=16), 0.93, 128)
    text = report(graph, [f"word{i % 7}" for i in range(2048)], "", edges)
    assert len(text) < 3e6
    tab = load(text)
    assert tab.locator(".text .piece").count() == 2048
    piece(tab, 1000).hover()
    assert current(tab) == [1000]
    assert f"{len(friends_of(graph, 1000))} friends" in tab.locator("#about").text_content()


@pytest.mark.parametrize("length", [0, 1, 2])
def test_short_documents_open(load, length):
    graph, edges = one(length)
    tab = load(report(graph, ["a"] * length, "a query", edges))
    assert tab.locator(".text .piece").count() == length
    assert "a query" in tab.title()
