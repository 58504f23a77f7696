"""What is shown runs nothing: no escape on a terminal, no script on a page."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from socialgraph import cli
from socialgraph.data.collection import first_ids
from socialgraph.errors import shown
from socialgraph.inspect.report import View, report

ESCAPE = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202eturned"


def test_no_escape_reaches_the_terminal(tiny_bert, tmp_path, capfd, caplog):
    assert shown(ESCAPE).isprintable()
    assert shown("Müller 文 😀 'quoted'") == "Müller 文 😀 'quoted'"
    assert first_ids([ESCAPE, "b"]).isprintable()
    folder = tmp_path / "collection"
    folder.mkdir()
    turned = "d\u202e1"  # an id may hold what turns the direction, but no control character
    corpus = [{"doc_id": turned, "text": ESCAPE, "title": ESCAPE}, {"doc_id": "d\u200f2", "text": ""}]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)))
    (folder / "queries.test.tsv").write_bytes(f"q\u202e1\t{ESCAPE}\n".encode())
    (folder / "qrels.test.txt").write_bytes(b"q9\xe2\x80\xae 0 d9 1\n")
    arguments = ["--query", ESCAPE, "--collection", str(folder), "--backbone", tiny_bert[0], "--window", "16",
                 "--output", str(tmp_path / "page.html"), "--document"]  # fmt: skip
    with pytest.warns(UserWarning) as warned:  # noqa: PT030
        cli.main(["inspect", *arguments, turned])
    texts = [str(one.message) for one in warned if one.category is UserWarning]
    assert len(texts) >= 2
    with pytest.raises(SystemExit) as stopped, pytest.warns(UserWarning):  # noqa: PT030
        cli.main(["inspect", *arguments, ESCAPE])
    out, err = capfd.readouterr()
    for text in (*texts, str(stopped.value), caplog.text, out, err):
        assert not {c for c in text if not c.isprintable()} - {"\n", "\r", "\t"}, repr(text)
    page = (tmp_path / "page.html").read_text()
    assert not set(page) & set("\x1b\x07\x9b\u202e")


def test_a_page_with_hostile_names_runs_nothing_in_a_browser(tiny_bert, tmp_path):
    """Names of patterns and statistics, ids, query and words, all at once, in a real browser."""
    from conftest import document_batch

    playwright = pytest.importorskip("playwright.sync_api")
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no Chromium (set CHROMIUM to its path)")
    attacks = [
        "</script><script>window.hacked=1</script>", "<!--<script>window.hacked=1//-->", "javascript:window.hacked=1",
        "<a href='javascript:window.hacked=1'>x</a>", "<img src=https://example.org/x onerror=window.hacked=1>",
        "\u2028window.hacked=1\u2029", "';window.hacked=1;//", '";window.hacked=1;//',
        "</title><svg onload=window.hacked=1>",
        "\u202e" + "x" * 100_000, "<meta http-equiv=refresh content='0;url=https://example.org'>", "\x00\x1b\x08\ud800",
        "<link rel=stylesheet href=//example.org/x.css>", "<base href=//example.org>", "&#60;script&#62;", "]]>",
        "\\u003cscript>",
        "<iframe srcdoc='<script>parent.hacked=1</script>'>",
    ]  # fmt: skip
    pages = []
    for attack in attacks:
        graph = document_batch(lengths=(len(attacks),))[0]
        graph.document_id, graph.query_id = attack, attack
        pages.append(report(View(graph, attack, 1.0, {0: 0.5}, {attack: attack, "b": [attack]}), attacks, attack))
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = chromium.new_page()
        asked: list[str] = []
        complaints: list[str] = []
        elements = (
            "document.querySelectorAll('a, img, iframe, svg:not(.strip), link, base, form, meta, script, style').length"
        )
        (tmp_path / "clean.html").write_text(
            report(View(document_batch(lengths=(18,))[0], "", 1.0, {0: 0.5}, {"a": "b", "c": "d"}), ["a"] * 18, "a")
        )
        tab.goto((tmp_path / "clean.html").as_uri())
        clean = tab.evaluate(elements)
        tab.on("request", lambda one: asked.append(one.url))
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda one: complaints.append(one.message))
        for number, page in enumerate(pages):
            file = tmp_path / f"page{number}.html"
            file.write_text(page, encoding="utf-8")
            tab.goto(file.as_uri())
            tab.locator(".text .piece").nth(0).hover()
            tab.locator(".text .piece").nth(number).click()
            assert tab.locator(".text .piece").count() == len(attacks)
            assert tab.evaluate("window.hacked") is None
            assert tab.evaluate(elements) == clean
        chromium.close()
    assert asked == [(tmp_path / f"page{number}.html").as_uri() for number in range(len(pages))]
    assert complaints == []
