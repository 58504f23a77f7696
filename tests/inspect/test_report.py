"""The HTML page: what its data hold, that a hostile document stays text, and what a reader can do in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import document_batch
from pages import one, social

from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens
from socialgraph.edges import SocialEdges, StaticCentrality
from socialgraph.errors import InputError
from socialgraph.inspect.report import View, embedded_json, page, pattern_shares, report
from socialgraph.partition import EdgeCircles, NodeCircles, Windows

HOSTILE = [
    "<script>window.hacked=1</script>",
    "</script>",
    "<!--<script>",
    "]]>",
    "</textarea>",
    "</style>",
    "<img src=x onerror=window.hacked=1>",
    "<svg/onload=window.hacked=1>",
    "{{7*7}}",
    "{{script}}",
    "\\1 \\g<0>",
    "${window.hacked=1}",
    "javascript:window.hacked=1",
    "' onmouseover='window.hacked=1",
    '" autofocus onfocus="window.hacked=1',
    "&lt;b&gt;&amp;",
    "\u202eright to left",
    "\u200f\u061c",
    "\u2028\u2029",
    "\x00\x1b[31m",
    "\ud800",
    "\U0001f469\u200d\U0001f52c",
    "Z\u0351\u036b\u0343",
    "שלום",
    "",
    "x" * 500,
    "##",
    "##<b>",
    "constructor",
    "__proto__",
]
TIES = ("static_distance", "static_centrality", "dynamic_distance")


def friends_of(graph, node: int) -> dict[int, float]:
    mine = graph.edge_index[0] == node
    return dict(zip(graph.edge_index[1, mine].tolist(), graph.edge_weight[mine].tolist(), strict=True))


def circles_of(graph, node: int) -> list[int]:
    friends = ~graph.passage_mask[graph.circle_index[1]]
    return graph.circle_index[1, friends & (graph.circle_index[0] == node)].tolist()


class Elements(HTMLParser):
    """All elements of a page with what stands in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[list] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append([tag, dict(attributes), ""])

    def handle_endtag(self, tag):
        self.found.append(["", {}, ""])  # what follows belongs to nobody here

    def handle_data(self, data):
        if self.found:
            self.found[-1][2] += data

    def all(self, tag: str) -> list[list]:
        return [element for element in self.found if element[0] == tag]


def embedded(text: str) -> dict:
    (data,) = (element for element in Elements(text).all("script") if element[1].get("id") == "data")
    assert data[1]["type"] == "application/json"
    return json.loads(data[2])


# ---- the file ----------------------------------------------------------------------------------------------


def test_json_holds_no_character_that_html_reads():
    text = embedded_json({"words": HOSTILE})
    assert text.isascii()
    assert not set(text) & set("<>&")
    assert json.loads(text) == {"words": HOSTILE}
    with pytest.raises(ValueError, match="JSON"):
        embedded_json(float("nan"))


def test_a_hostile_document_adds_no_element():
    graph, edges = one(len(HOSTILE))
    text = report(graph, HOSTILE, HOSTILE[0], edges)
    harmless = report(graph, ["word"] * len(HOSTILE), "query", edges)
    assert [element[:2] for element in Elements(text).found] == [element[:2] for element in Elements(harmless).found]
    data = embedded(text)
    assert data["words"] == HOSTILE
    assert data["query"] == HOSTILE[0]


def test_the_policy_lets_the_pages_own_script_and_style_run_and_nothing_else():
    text = page({"words": ["{{data}}", "{{policy}}"]})
    elements = Elements(text)
    (policy,) = (meta[1]["content"] for meta in elements.all("meta") if "http-equiv" in meta[1])
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    (script,) = (element[2] for element in elements.all("script") if not element[1])
    (style,) = (element[2] for element in elements.all("style"))
    for kind, content in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert not any("unsafe" in rule for rule in rules.values())
    # nothing from elsewhere, and no way to make HTML of a text
    assert set(re.findall(r"\w+://[^\"'\s)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|\burl\(|@import", text)
    assert embedded(text) == {"words": ["{{data}}", "{{policy}}"]}


def test_the_data_are_those_of_the_graph():
    graph, edges = one()
    without = {number: -0.5 * number for number in range(graph.num_circles)}
    words = [f"w{i}" for i in graph.input_ids.tolist()]
    data = embedded(
        report(View(graph, "", 0.25, without, {"density_of_edges": 0.0712, "sizes": [3, 4000]}), words, "w7 of", edges)
    )
    assert (data["words"], data["query"], data["query_id"], data["document_id"]) == (words, "w7 of", "q", "d")
    assert data["matches"] == [i for i, word in enumerate(words) if word == "w7"]
    (view,) = data["views"]
    assert view["score"] == 0.25
    assert view["statistics"] == [["density of edges", "0.0712", ""], ["sizes", "3, 4,000", ""]]
    assert data["weights"]["tfidf"] == pytest.approx(graph.tfidf.tolist(), rel=1e-5)
    for number, circle in enumerate(view["circles"]):
        members = graph.circle_index[0, graph.circle_index[1] == number].tolist()
        assert (circle["number"], circle["members"], circle["without"]) == (number, members, without[number])
        assert circle["leader"] == graph.leader_index[number]
        assert circle["passage"] == graph.passage_mask[number]
        inside = sum(j in members for i in members for j in friends_of(graph, i)) // 2
        assert circle["ties"] == (None if circle["passage"] else inside)

    def array(name, kind):
        return np.frombuffer(base64.b64decode(data["edges"][name]), kind)

    i = np.repeat(np.arange(70), array("count", "<u4"))
    weights = dict(zip(zip(i, array("friend", "<u2"), strict=True), array("weight", "<u2"), strict=True))
    assert len(weights) == graph.edge_index.size(1) // 2
    for (i, j), weight in weights.items():
        assert weight * data["edges"]["step"] == pytest.approx(friends_of(graph, i)[j], abs=1e-5)


def test_shares_are_the_parts_of_the_weighted_mean():
    graph, edges = one()
    i, j = torch.triu_indices(70, 70, 1)
    found = pattern_shares(graph, edges, torch.stack([i, j]))
    dense = {name: edges.patterns[name](graph).dense()[0][i, j] for name in TIES}
    parts = {name: (2.0 if name == "static_distance" else 1.0) * dense[name] for name in TIES}
    total = sum(parts.values())
    assert list(found) == list(TIES)
    for name in TIES:
        assert torch.allclose(found[name], parts[name] / total, atol=1e-5)
    graph.tfidf = torch.ones(70, dtype=torch.float64)  # then centrality abstains, and alone it leaves all to chance
    nobody = pattern_shares(graph, SocialEdges([StaticCentrality()]), torch.stack([i, j]))
    assert nobody["static_centrality"].max() == 0


@pytest.mark.parametrize("length", [0, 1, 2])
def test_short_documents_have_a_page(length):
    graph, edges = one(length)
    assert len(embedded(report(graph, ["a"] * length, "", edges))["words"]) == length


def test_weights_above_one_keep_their_size():
    graph = one()[0]
    graph.edge_weight = graph.edge_weight * 100
    edges = embedded(report(graph, ["a"] * 70))["edges"]
    most = np.frombuffer(base64.b64decode(edges["weight"]), "<u2").max() * edges["step"]
    assert most == pytest.approx(float(graph.edge_weight.max()), rel=1e-4)
    assert edges["shares"] == {}


def test_what_cannot_be_shown_is_said():
    batch = document_batch()
    with pytest.raises(InputError, match=r"take batch\[i\]"):
        report(batch, [])
    with pytest.raises(InputError, match="expected a word for each of its 70 nodes, got 1"):
        report(batch[0], ["a"])
    with pytest.raises(InputError, match="scores name circle 99, but the graph has"):
        report(View(batch[0], without={99: 1.0}), ["a"] * 70)
    graph = batch[0]
    del graph.edge_index
    with pytest.raises(InputError, match="keep_edges=True"):
        report(graph, ["a"] * 70)


def test_the_code_in_the_docs_runs(tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "report.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    graph, edges = one()
    model = torch.nn.Module()
    model.forward = lambda graph: torch.ones(graph.num_graphs)
    exec(code, {"graph": graph, "edges": edges, "words": ["a"] * 70, "query": "a query", "model": model})
    assert embedded(Path("report.html").read_text(encoding="utf-8"))["views"][0]["score"] == 1.0


# ---- in a browser ------------------------------------------------------------------------------------------


def piece(tab, node: int):
    return tab.locator(f'.text .piece[data-node="{node}"]')


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


def test_hostile_words_stand_there_as_text(load):
    graph, edges = one(len(HOSTILE))
    graph.document_id = HOSTILE[6]
    tab = load(report(View(graph, statistics={HOSTILE[6]: HOSTILE[0]}), HOSTILE, HOSTILE[0], edges))
    shown = tab.locator(".text .piece").all_text_contents()
    browser = tab.evaluate(
        "JSON.parse(document.getElementById('data').textContent).words"
    )  # as it sees lone surrogates
    for word, found, known in zip(HOSTILE, shown, browser, strict=True):
        if word in ("", "\u200f\u061c", "\u2028\u2029", "\ud800"):
            assert found == "□"  # nothing to see would be nothing to point at
        else:
            assert found == (known[2:] if word == "##<b>" else known)
    for node in range(0, len(HOSTILE), 4):
        piece(tab, node).hover()
    piece(tab, 0).click()
    assert HOSTILE[0] in tab.locator("#title").text_content()
    assert HOSTILE[6] in tab.title()
    assert tab.locator(".what").text_content() == HOSTILE[6]
    assert tab.locator("img, iframe, object, embed, textarea, a, script:not(#data)").count() == 1  # the page's script
    assert tab.evaluate("window.hacked") is None
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")  # long words break


def test_a_hostile_document_through_the_tokenizer(load):
    text = (
        "The <script>window.hacked=1</script> says </textarea> <img src=x onerror=alert(1)> {{7*7}} \u202eevil \u2122"
    )
    tokens, documents = Tokens("minilm"), {"d": Document("d", text)}
    statistics = TermStatistics.count([tokens.document(documents["d"])], tokens.vocab_size)
    builder = GraphBuilder(documents, tokens, statistics, social(), EdgeCircles(k=2), Windows(128), keep_edges=True)
    graph = builder([("q", "<script>", "d")])[0]
    words = tokens.words(graph.input_ids)
    tab = load(report(graph, words, "<script>", builder.edges))
    joined = re.sub(r"\s", "", "".join(tab.locator(".text .piece").all_text_contents()))
    assert "<script>window.hacked=1</script>says</textarea><imgsrc=xonerror=alert(1)>{{7*7}}" in joined
    assert tab.evaluate("window.hacked") is None


def test_the_policy_holds_even_if_text_became_html(chromium, tmp_path):
    graph, edges = one()
    attack = (
        "<script>window.hacked=1</script><img src=x onerror='window.hacked=2'>"
        "<img src='https://example.org/x.png'><b id=trap onclick='window.hacked=3'></b>"
    )
    file = tmp_path / "page.html"
    file.write_text(report(graph, ["a"] * 70, "", edges).replace("<noscript>", attack + "<noscript>"), encoding="utf-8")
    tab, asked, refused = chromium.new_page(), [], []
    tab.on("requestfinished", lambda request: asked.append(request.url))
    tab.on("requestfailed", lambda request: refused.append(request.failure))
    tab.goto(file.as_uri())
    tab.evaluate("document.getElementById('trap').click()")
    tab.evaluate("try { document.body.innerHTML = '<img src=y>'; } catch (error) { window.refused = error.name; }")
    assert tab.evaluate("window.hacked") is None
    assert tab.evaluate("window.refused") == "TypeError"
    assert tab.locator(".text .piece").count() == 70  # the page itself works
    assert asked == [file.as_uri()]
    assert refused == ["csp", "csp"]
    tab.close()


def test_hovering_a_word_shows_its_friends(load):
    graph, edges = one()
    ids = graph.input_ids.tolist()
    tab = load(report(graph, [f"w{i}" for i in ids], "", edges))
    shares = pattern_shares(graph, edges, graph.edge_index.sort(0).values)
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
    ends = torch.tensor([[min(33, j) for j in friends], [max(33, j) for j in friends]])
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
    number = friends[1]
    members = graph.circle_index[0, graph.circle_index[1] == number].tolist()
    leader = int(graph.leader_index[number])
    assert str(number) in piece(tab, leader).evaluate("one => one.nextElementSibling.textContent").split()
    tab.get_by_label(f"Show circle {number}", exact=True).uncheck()
    assert lines(tab) == [len(numbers) - (number in numbers) for numbers in belongs]
    assert str(number) not in piece(tab, leader).evaluate("one => one.nextElementSibling.textContent").split()
    tab.locator(".none").click()
    assert not any(lines(tab))
    assert tab.locator(".piece.leading").count() == 0
    tab.locator(".first").fill("1")
    assert lines(tab) == [int(friends[0] in numbers) for numbers in belongs]
    tab.locator(f'.circle[data-circle="{number}"] .name').click()  # let it stand out
    marked = tab.locator(".piece.member").evaluate_all("all => all.map(one => Number(one.dataset.node))")
    assert sorted(marked) == sorted(members)
    passages = int(graph.passage_mask.sum())
    assert tab.locator(".text.passages > div").count() == passages
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
    without = {number: 1.0 + (number - 3) / 8 for number in range(graph.num_circles)} | {3: 1.0 - 1e-5}
    tab = load(report(View(graph, "", 1.0, without), ["a"] * 70, "", edges))
    for row in tab.locator(".circle").all():
        number = int(row.get_attribute("data-circle"))
        after, change = row.locator(".delta").text_content().replace("−", "-").split()
        assert float(after) == pytest.approx(without[number], abs=6e-4)
        assert float(change) == pytest.approx(without[number] - 1.0, abs=6e-4)
        side = "" if number == 3 else " down" if number < 3 else " up"  # of 3 no change is seen
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


@pytest.mark.parametrize("length", [0, 1])
def test_empty_documents_open(load, length):
    graph, edges = one(length)
    tab = load(report(graph, ["a"] * length, "a query", edges))
    assert tab.locator(".text .piece").count() == length
    assert "a query" in tab.title()
