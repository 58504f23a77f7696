"""The page in a browser: search, two partitions, what BERT reads, the evidence, a phone, a notebook."""

from __future__ import annotations

import copy

import pytest
from pages import one

from socialgraph.inspect.report import Page, View, report

WORDS = ("the", "sym", "##link", "##s", "of", "Ünder", "shut", "##il", ".", "copy") * 7


def page(**options) -> str:
    graph, edges = one()
    return report(graph, WORDS, "copy a file", edges, **options)


def two() -> tuple[str, list]:
    """A page of two partitions of one graph, and the members of the circles of each."""
    graph, edges = one()
    other = copy.copy(graph)
    friends = (~graph.passage_mask).nonzero().flatten().tolist()
    keep = graph.circle_index[:, graph.circle_index[1] < friends[1]]  # one friend circle fewer, or more
    other.circle_index, other.leader_index = keep, graph.leader_index[: friends[1]]
    other.passage_mask = graph.passage_mask[: friends[1]]
    text = report([View(graph, "edge"), View(other, "node")], WORDS, "copy a file", edges)
    return text, [listed(graph), listed(other)]


def listed(graph) -> list[list[int]]:
    """The members of circles in the order in which the page lists them: friend circles, then passages."""
    order = [*(~graph.passage_mask).nonzero().flatten().tolist(), *graph.passage_mask.nonzero().flatten().tolist()]
    return [graph.circle_index[0, graph.circle_index[1] == circle].tolist() for circle in order]


def nodes(tab, selector: str) -> list[int]:
    return tab.locator(selector).evaluate_all("all => all.map(one => Number(one.dataset.node))")


def test_search_marks_words_across_their_pieces_and_goes_from_place_to_place(load):
    tab = load(page())
    tab.fill("#search", "SYMLINK")
    assert nodes(tab, ".piece.found") == [10 * i + part for i in range(7) for part in (1, 2)]
    assert tab.locator("#hits").text_content() == "1 of 7"
    tab.keyboard.press("Enter")
    assert nodes(tab, ".piece.now") == [11, 12]
    tab.keyboard.press("Shift+Enter")
    tab.keyboard.press("Shift+Enter")
    assert nodes(tab, ".piece.now") == [61, 62]
    tab.fill("#search", "under shutil.copy")  # several words, without accents, with punctuation
    assert nodes(tab, ".piece.found")[:5] == [5, 6, 7, 8, 9]
    tab.fill("#search", "<b>")
    assert tab.locator("#hits").text_content() == "not found"
    tab.keyboard.press("Escape")
    assert (nodes(tab, ".piece.found"), tab.locator("#hits").text_content()) == ([], "")


def test_what_bert_reads_of_a_circle(load):
    graph = one()[0]
    whole = (300, 9)
    tab = load(page(query_words=["copy", "a", "fil", "##e"], whole=whole, evidence=(20, 30)))
    row = tab.locator(".friends .circle").first
    circle = int((~graph.passage_mask).nonzero()[int(row.get_attribute("data-circle"))])
    members = graph.circle_index[0, graph.circle_index[1] == circle].tolist()
    row.locator(".given summary").click()
    text = row.locator(".sequence").text_content()
    assert text.startswith("[CLS] copy a file [SEP] ")
    assert text.endswith(" [SEP]")
    pieces, last = "", -2
    for node in members:
        joined = node == last + 1 and WORDS[node].startswith("##")
        pieces += WORDS[node][2:] if joined else f" {WORDS[node]}"
        last = node
    assert text.removeprefix("[CLS] copy a file [SEP]").removesuffix(" [SEP]") == pieces
    note = row.locator(".given .note").text_content()
    size = len(members)
    assert f"{size + 4 + 3} word pieces: 4 of the query, {size} word pieces of the circle, 3 marks" in note
    assert "The query is cut after 4 of its 9 word pieces" in note
    assert f"It holds {len({*members} & {*range(20, 30)})} of the 10 word pieces of the evidence" in note
    friends = graph.edge_index[1, graph.edge_index[0] == graph.leader_index[circle]].tolist()
    assert f"Left out: {len({*friends} - {*members})} of the leader’s {len(friends)} friends" in note
    assert "70 of its 300 word pieces are read" in tab.locator(".text .cut").text_content()


def test_two_partitions_stand_side_by_side(load):
    text, members = two()
    tab = load(text)
    texts = tab.locator(".text")
    assert texts.count() == 2
    left, right = (texts.nth(i).bounding_box() for i in (0, 1))
    assert left["x"] + left["width"] <= right["x"]
    assert left["y"] == pytest.approx(right["y"], abs=1)
    for place, view in enumerate(members):
        rows = tab.locator(".view").nth(place).locator(".circle")
        assert rows.locator(".size").all_text_contents() == [str(len(one)) for one in view]
    tab.locator('.view:nth-child(1) .piece[data-node="12"]').hover()
    assert nodes(tab, ".piece.self") == [12, 12]
    assert tab.locator(".columns").all_text_contents() == ["edgenode"]
    tab.set_viewport_size({"width": 390, "height": 844})
    above, beneath = (texts.nth(i).bounding_box() for i in (0, 1))
    assert above["y"] + above["height"] <= beneath["y"]
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_in_a_notebook_the_search_works_inside_its_frame(chromium, tmp_path):
    (tmp_path / "cell.html").write_text(f"<div>{Page(two()[0])._repr_html_()}</div>", encoding="utf-8")
    tab, complaints = chromium.new_page(), []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto((tmp_path / "cell.html").as_uri())
    frame = tab.frames[1]
    frame.fill("#search", "symlink")
    assert frame.locator("#hits").text_content() == "1 of 7"
    assert complaints == []
    tab.close()
