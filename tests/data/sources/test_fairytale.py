"""FairytaleQA, from a source of six tales in its own format."""

import pytest
from excerpts import TALES, write_fairytale

from socialgraph.data.sources.fairytale import FAIRYTALE


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    return FAIRYTALE.read(write_fairytale(tmp_path_factory.mktemp("fairytale")))


def test_sections_are_joined_to_whole_tales(contents):
    assert list(contents.documents) == sorted(TALES)
    newt = contents.documents["the-newt"]
    assert newt.title == ""
    assert newt.text == (
        "Once there was a newt.\nIt lived by a brook.\n"
        '"Good day," said the newt,\n"and who are you?"\n'
        "In the end the newt found a golden shell."
    )


def test_questions_in_the_order_of_the_authors_split(contents):
    order = list(dict.fromkeys(one.doc_id for one in contents.questions))
    assert order == ["the-heron", "the-otter", "the-stoat", "the-toad", "the-lynx", "the-newt"]  # train, val, test


def test_repeats_are_dropped_and_the_place_is_in_the_text(contents):
    text = contents.documents["the-newt"].text
    found = [one for one in contents.questions if one.doc_id == "the-newt"]
    assert [(one.query_id, one.text) for one in found] == [
        ("the-newt-1", "Where did the newt live?"),
        ("the-newt-2", "What did the newt find?"),
        ("the-newt-3", "Whom did the newt greet?"),
        ("the-newt-10", "Of what section is the newt?"),
    ]
    shown = [None if one.place is None else text[slice(*one.place)] for one in found]
    assert shown == [
        "Once there was a newt.\nIt lived by a brook.",
        "In the end the newt found a golden shell.",
        '"Good day," said the newt,\n"and who are you?"\nIn the end the newt found a golden shell.',
        None,
    ]


def test_splits_are_drawn_by_hash_in_each_bucket_of_lengths(contents):
    # printf ftthe-toad | sha1sum, and so on, sorted: toad, lynx, newt, heron, stoat, otter
    drawn = ["the-toad", "the-lynx", "the-newt", "the-heron", "the-stoat", "the-otter"]
    expected = dict(zip(drawn, ["test"] * 2 + ["dev"] + ["train"] * 3, strict=True))
    assert contents.splits(dict.fromkeys(TALES, 511)) == expected
    assert contents.splits(dict.fromkeys(TALES, 2048)) == expected
    # three tales in each of two buckets: round(3 * 0.37) = 1 for test, round(3 * 0.09) = 0 for dev
    halves = contents.splits({tale: 511 if tale in drawn[::2] else 512 for tale in TALES})
    assert sorted(tale for tale in halves if halves[tale] == "test") == ["the-lynx", "the-toad"]
    assert "dev" not in halves.values()
