"""What of a page is text, and what is a line of it. The HTML is written here, in the form that MediaWiki gave it."""

import pytest

from socialgraph.data.sources.wikipedia import page_text

pytest.importorskip("lxml", reason="the extra 'data' is not installed")

COMMENT = "<!-- http%3A//en.wikipedia.org/wiki%3Faction%3Drender 2014-06-09-18-25-23 -->\n"
PAGE = (
    COMMENT
    + """
<table class="metadata plainlinks ambox"><tr><td>This article needs citations.</td></tr></table>
<div class="hatnote">For the animal, see <a href="//x">Otter</a>.</div>
<p>The <b>Otters</b> are a
band from<br />
Wales.<sup id="cite_ref-1" class="reference"><a>[1]</a></sup> Founded <span style="display: none">key</span>1990</p>
<p></p>
<div id="toc" class="toc"><h2>Contents</h2><ul><li>1 Records</li></ul></div>
<h2><span class="mw-headline">Records</span><span class="mw-editsection">[edit]</span></h2>
<ul><li>First
<ul><li>Nested</li></ul>
</li><li>Second</li></ul>
<dl><dt>Term</dt><dd>Its meaning</dd></dl>
<blockquote><p>Quoted.</p><div>A poet</div></blockquote>
Bare text &amp; a <i>word</i>
<h2>Notes</h2><div class="reflist"><ol class="references"><li>^ A note</li></ol></div>
<table class="navbox"><tr><td>Other bands</td></tr></table>"""
)


def test_paragraphs_headings_and_items_are_lines():
    assert page_text(PAGE).lines == [
        "For the animal, see Otter.",
        "The Otters are a band from Wales. Founded 1990",
        "Records",
        "First",
        "Nested",
        "Second",
        "Term",
        "Its meaning",
        "Quoted.",
        "A poet",
        "Bare text & a word",
        "Notes",
    ]


def test_a_row_is_its_cells_that_are_not_empty():
    page = page_text(
        """<table class="wikitable sortable"><caption>Songs</caption>
        <tr><th>Year</th><th>Song<br />title</th><th></th></tr>
        <tr><td><p>1991</p></td><td><ul><li>One</li><li>Two</li></ul></td><td style="display:none">9e9</td></tr>
        <tr><td> </td><td><a><img alt="no text" /></a></td></tr></table>"""
    )
    assert page.text == "Songs\nYear | Song title\n1991 | One Two"
    assert page.tables == [(0, 3)]
    assert page.place(0) == (0, len(page.text))


def test_rows_of_a_nested_table_stand_twice():
    inner = "<table><tr><td>Previous</td><td>Next</td></tr></table>"
    rows = f"<tr><th>Record</th><td>9-7</td></tr><tr><td>{inner}</td></tr>"
    page = page_text(f'<table class="infobox vcard">{rows}</table>')
    assert page.lines == ["Record | 9-7", "Previous Next", "Previous | Next"]
    assert page.tables == []


def test_a_table_that_only_arranges_others_is_read_like_the_page():
    data = '<table class="wikitable"><tr><th>{0}</th><td>1</td></tr></table>'
    left, right = f"Left <b>side</b> {data.format('a')}", f"Right{data.format('b')}<p>End</p>"
    page = page_text(f"<table><tr><td>{left}</td><td>{right}</td></tr></table>")
    assert page.lines == ["Left side", "a | 1", "Right", "b | 1", "End"]
    assert [page.text[slice(*page.place(number))] for number in (0, 1)] == ["a | 1", "b | 1"]


def test_a_table_that_is_left_out_has_no_place():
    page = page_text(
        '<div class="noprint"><table class="wikitable"><tr><td>x</td></tr></table></div>'
        '<table class="wikitable"><tr><td></td></tr></table><table class="wikitable"><tr><td>y</td></tr></table>'
    )
    assert page.lines == ["y"]
    assert [page.place(number) for number in range(4)] == [None, None, (0, 1), None]
