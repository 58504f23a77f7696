"""The HTML page: what its data hold, and that a hostile document stays text. See test_report_in_browser.py, too."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import document_batch
from pages import HOSTILE, TIES, friends_of, one

from socialgraph.edges import SocialEdges, StaticCentrality
from socialgraph.errors import InputError, OutputError
from socialgraph.inspect.patterns import pattern_shares
from socialgraph.inspect.report import Page, View, embedded_json, page, report


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
    without = -0.5 * torch.arange(graph.num_circles)
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
    passages = int(graph.passage_mask.sum())
    for place, circle in enumerate(view["circles"]):
        members = graph.circle_index[0, graph.circle_index[1] == place].tolist()
        assert (circle["members"], circle["without"]) == (members, -0.5 * place)
        assert circle["number"] == (place if place < passages else place - passages)  # each kind counts from 0
        assert circle["leader"] == graph.leader_index[place]
        assert circle["passage"] == graph.passage_mask[place]
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


def test_what_cannot_be_shown_is_said():
    batch = document_batch()
    with pytest.raises(InputError, match=r"take batch\[i\]"):
        report(batch, [])
    with pytest.raises(InputError, match="expected a word for each of its 70 nodes, got 1"):
        report(batch[0], ["a"])
    with pytest.raises(InputError, match="a score without each of the 9 circles of the graph, got 1"):
        report(View(batch[0], without=torch.ones(1)), ["a"] * 70)
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


FRAMED = """<!DOCTYPE html><script>parent.document.title = "mine"</script>"></iframe><img src=x onerror='alert(1)'>"""


def test_it_is_saved_as_it_is(tmp_path):
    path = Page(FRAMED).save(tmp_path / "a" / "page.html")
    assert path.read_text("utf-8") == FRAMED


def test_a_folder_is_no_file_to_save_it_to(tmp_path):
    with pytest.raises(OutputError, match="is a folder: give the path of a file in it") as refused:
        Page(FRAMED).save(tmp_path)
    assert "\n" not in str(refused.value)
    assert not [*tmp_path.iterdir()]


def test_a_notebook_shows_it_in_a_frame_of_its_own():
    shown = Page(FRAMED)._repr_html_()
    frame = re.fullmatch(r'<iframe srcdoc="([^"<>]*)" sandbox="allow-scripts" style="[^"<>]*"></iframe>', shown)
    assert frame, shown
    assert html.unescape(frame[1]) == FRAMED
    assert "allow-same-origin" not in shown
