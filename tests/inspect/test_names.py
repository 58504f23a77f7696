"""Names of circles tell them apart, in words; the query's words are whole words."""

from hypothesis import given
from hypothesis import strategies as st

from socialgraph.inspect.names import STOP_WORDS, circle_names, query_nodes, whole_words

TEXT = [
    *("a", "copy", "of", "the", "sym", "##link", "##s", ",", "and", "the", "copy", "of"),
    *("a", "permission", "with", "s", "`", "the", "owner", ",", "symlink", "1999"),
]


def test_pieces_make_words():
    words, places = whole_words(["##a", "sym", "##link", "##", "Dog"])
    assert words == ["##a", "symlink", "##", "dog"]
    assert places == [0, 1, 1, 2, 3]


def test_the_query_is_marked_in_whole_words_without_stop_words():
    nodes = query_nodes(TEXT, ["copy", "a", "file", "with", "s", "per", "##mission", ","])
    assert [TEXT[node] for node in nodes] == ["copy", "copy", "permission"]


def test_a_word_that_all_circles_hold_names_none_of_them_first():
    circles = [[1, 13], [10, 18], [1, 4, 5, 6]]
    names = circle_names(TEXT, circles)
    assert names[0].split(", ")[0] == "permission"
    assert "owner" in names[1].split(", ")[0]
    assert "symlinks" in names[2].split(", ")[0]


@given(st.lists(st.lists(st.sampled_from(range(len(TEXT))), max_size=8), max_size=9))
def test_names_differ_and_are_made_of_telling_whole_words(circles):
    names = circle_names(TEXT, [sorted(set(circle)) for circle in circles])
    assert len(set(names)) == len(names) == len(circles)
    words = set(whole_words(TEXT)[0])
    for number, name in enumerate(names):
        if name != f"circle {number}":
            assert set(name.split(", ")) <= words - STOP_WORDS - {",", "`", "s"}
            assert len(name.split(", ")) <= 3
