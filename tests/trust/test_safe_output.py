"""What is shown runs nothing: no escape on a terminal, no script on a page."""

from __future__ import annotations

import json

import pytest

from socialgraph import cli
from socialgraph.data.collection import first_ids
from socialgraph.errors import shown

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
