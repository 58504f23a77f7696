"""COVID-QA, from a source of 19 papers in its own format."""

import pytest
from excerpts import write_covidqa

from socialgraph.data.sources.covidqa import COVIDQA


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    return COVIDQA.read(write_covidqa(tmp_path_factory.mktemp("covidqa")))


def test_papers_are_numbered_and_their_text_is_as_it_is(contents):
    assert list(contents.documents) == [f"C{number:03d}" for number in range(19)]
    assert contents.documents["C004"].text == "Paper 4\n\nAbstract: Masks of kind4 help much. They cost4 little."


def test_a_question_that_was_asked_before_is_dropped_before_questions_are_numbered(contents):
    assert [(one.query_id, one.text) for one in contents.questions[:5]] == [
        ("C000-0", "What does kind0 do?"),
        ("C000-1", "What is cost0?"),
        ("C000-2", "What is new?"),
        ("C001-3", "What does kind1 do?"),
        ("C001-4", "What is cost1?"),
    ]
    assert len(contents.questions) == 2 * 19 + 1


def test_the_place_is_the_first_character_of_the_answer(contents):
    one = contents.questions[3]
    assert contents.documents["C001"].text[one.place[0] :].startswith("help much")
    assert one.place[1] == one.place[0] + 1


def test_splits_are_drawn_by_hash(contents):
    # printf covC011 | sha1sum | cut -c1-12, as a number modulo 100: C011 4, C016 28; C018 31; all others 52 or more
    found = contents.splits(dict.fromkeys(contents.documents, 100))
    assert {doc_id: split for doc_id, split in found.items() if split != "train"} == {
        "C011": "test", "C016": "test", "C018": "dev",
    }  # fmt: skip
