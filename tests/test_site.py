"""The documentation site: what its hooks make of pages and docstrings, and what a page shows of other libraries."""

import logging
import re

import pytest
from test_docs_pages import ROOT, follow

SITE = ROOT / "docs" / "site"


@pytest.fixture
def hooks(monkeypatch):
    pytest.importorskip("mkdocs", reason="the site comes with the extra docs")
    pytest.importorskip("latex2mathml", reason="the site comes with the extra docs")
    monkeypatch.syspath_prepend(str(SITE))
    import hooks

    return hooks


def shown(hooks, name, text):
    """Return what the hooks make of a page."""
    from types import SimpleNamespace

    page = SimpleNamespace(file=SimpleNamespace(src_uri=name))
    config = SimpleNamespace(extra={"repository": "https://example.org/us"})
    return hooks.on_page_markdown(text, page, config, None)


def test_links_out_of_the_pages_lead_to_the_repository(hooks, caplog):
    text = "[a](../socialgraph/cli.py#L3) [b](../benchmarks) [c](study.md#x) ![d](../x.png) [e](https://e.org) [f](#g)"
    assert shown(hooks, "compare.md", text) == (
        "[a](https://example.org/us/blob/main/socialgraph/cli.py#L3) [b](https://example.org/us/tree/main/benchmarks) "
        "[c](study.md#x) ![d](repository/x.png) [e](https://e.org) [f](#g)"
    )
    (told,) = caplog.records
    assert told.message == "compare.md links to x.png, which is not in the repository"
    assert told.levelno == logging.WARNING  # which fails a strict build
    assert "](../compare.md)" in shown(hooks, "api/cli.md", "[a](../compare.md)")
    assert "](https://example.org/us/blob/main/README.md)" in shown(hooks, "api/cli.md", "[a](../../README.md)")


def test_the_readme_is_the_front_page(hooks):
    text = "![a](docs/images/x.png) [b](docs/study.md#y) [c](experiments) [d](docs) [e](https://e.org)"
    made = hooks.LINK.sub(hooks._from_docs, text)
    assert made == "![a](images/x.png) [b](study.md#y) [c](../experiments) [d](../docs) [e](https://e.org)"


def test_a_page_shows_what_help_prints(hooks):
    from socialgraph.cli import parser

    assert parser().format_help() in shown(hooks, "api/cli.md", "before\n\n::: help\n\nafter")
    assert "--top N" in shown(hooks, "api/cli.md", "::: help rank")


def test_formulas_and_names_of_docstrings(hooks):
    pytest.importorskip("griffe", reason="the site comes with the extra docs")
    import docstrings

    names = ":class:`~socialgraph.nn.Readout`, :meth:`pair`, ``code``"
    formula = "    .. math::\n        a &= b \\\\\n        c &= d\n\nend"
    made = docstrings.as_markdown(f"{names}\n\n{formula}")
    link = '<autoref optional identifier="socialgraph.nn.Readout"><code>Readout</code></autoref>'
    assert made.startswith(f"{link}, `pair`, ``code``\n")
    assert re.search(r'^    <div class="formula"><math [^>]*display="block">', made, re.MULTILINE)
    assert made.count("<mtr>") == 2
    assert made.endswith("\n\nend")
    assert "&=" not in made


def test_every_room_of_the_package_has_a_page():
    rooms = {path.parent.name for path in (ROOT / "socialgraph").glob("*/__init__.py")} | {"pyterrier", "cli"}
    pages = {path.stem for path in (ROOT / "docs" / "api").glob("*.md")}
    assert pages == rooms
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md"), *(ROOT / "docs").glob("*/*.ipynb")]:
        assert str(page.relative_to(ROOT / "docs")) in navigation


def test_the_page_about_other_libraries(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, _ = follow(ROOT / "docs" / "other-libraries.md", tmp_path)
    assert names["scores"].shape == (2,)
    assert names["ranking"][0][1] == pytest.approx(float(names["scores"].max()), abs=1e-5)
