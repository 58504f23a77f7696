"""The page of a hostile document, in a browser: what looks like HTML is text, and nothing runs or is loaded."""

from __future__ import annotations

import torch
from pages import ATTACKS, HOSTILE, one, piece

from socialgraph.inspect.report import View, report


def test_hostile_words_stand_there_as_text(load):
    graph, edges = one(len(HOSTILE))
    graph.document_id = HOSTILE[6]
    tab = load(report(View(graph, statistics={HOSTILE[6]: HOSTILE[0]}), HOSTILE, HOSTILE[0], edges))
    shown = tab.locator(".text .piece").all_text_contents()
    browser = tab.evaluate("JSON.parse(document.getElementById('data').textContent).words")  # lone surrogates differ
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


ELEMENTS = "document.querySelectorAll('a, img, iframe, svg:not(.strip), link, base, form, meta, script, style').length"


def test_hostile_names_add_nothing_and_run_nothing(load):
    """As ids, query, words, and names of partitions and statistics."""

    def shown(name, words):
        graph, edges = one(len(words))
        graph.document_id, graph.query_id = name, name
        tab = load(
            report(
                View(graph, name, 1.0, torch.full((graph.num_circles,), 0.5), {name: name, "b": [name]}),
                words,
                name,
                edges,
            )
        )
        piece(tab, 0).hover()
        piece(tab, len(words) - 1).click()
        return tab

    clean = shown("a", ["a"] * len(ATTACKS)).evaluate(ELEMENTS)
    for attack in ATTACKS:
        tab = shown(attack, ATTACKS)
        assert tab.locator(".text .piece").count() == len(ATTACKS)
        assert tab.evaluate("window.hacked") is None
        assert tab.evaluate(ELEMENTS) == clean


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
