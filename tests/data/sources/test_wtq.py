"""WikiTableQuestions, from a source of five tables on four pages in its own format."""

import pytest
from excerpts import write_wtq

from socialgraph.data.sources.wtq import WTQ

pytest.importorskip("lxml", reason="the extra 'data' is not installed")


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    return WTQ.read(write_wtq(tmp_path_factory.mktemp("wtq")))


def test_tables_of_one_page_are_one_document(contents):
    assert [(one.doc_id, one.title) for one in contents.documents.values()] == [
        ("W31", "Otter (band)"), ("W32", "Heron"), ("W33", "Lynx"), ("W4", "Newt"),
    ]  # fmt: skip
    heron = contents.documents["W32"]
    assert heron.text == "About Heron\nHeron0 | 0\nHeron1 | 32\nHeron2 | 64\nThen\nYear | 32"
    # in the order of the files' names: 200-page/0, 200-page/1, 201-page/0, 201-page/10, 201-page/2
    assert contents.tables["pages.tsv"] == "W31\t155\tOtter (band)\nW32\t160\tHeron\nW4\t20\tNewt\nW33\t165\tLynx\n"


def test_questions_are_unescaped_and_short_ones_and_repeats_dropped(contents):
    assert [(one.query_id, one.text, one.doc_id) for one in contents.questions] == [
        ("nt-0", "how many years did otters play?", "W31"),
        ("nt-2", "how many years did otters play?", "W32"),
        ("nt-4", "what of a|b or \\ is lynx?", "W33"),
        ("ns-0", "which year is last?", "W31"),
        ("nu-0", "which newt is it?", "W4"),
    ]


def test_the_place_is_the_table_that_was_asked_about(contents):
    shown = {one.query_id: contents.documents[one.doc_id].text[slice(*one.place)] for one in contents.questions}
    assert shown["nt-0"] == "Otter (band)0 | 0\nOtter (band)1 | 31\nOtter (band)2 | 62"
    assert shown["nt-2"] == "Year | 32"
    assert shown["ns-0"] == "Year | 31"


def test_a_page_goes_where_the_authors_have_it(contents):
    found = contents.splits(dict.fromkeys(contents.documents, 1))
    assert found == {"W31": "train", "W32": "dev", "W33": "train", "W4": "test"}
