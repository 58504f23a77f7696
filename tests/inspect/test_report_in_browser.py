"""What a reader can do with the page of a document, in a browser. Hostile documents: test_hostile_in_browser.py."""

from __future__ import annotations

import pytest
from pages import TIES, circles_of, friends_of, one, piece

from socialgraph.inspect.patterns import pattern_shares
from socialgraph.inspect.report import report
from socialgraph.partition import EdgeCircles


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
