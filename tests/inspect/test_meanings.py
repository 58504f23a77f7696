"""Every number of a document is told in words."""

from pages import one

from socialgraph.inspect import describe
from socialgraph.inspect.meanings import MEANINGS, meaning


def test_each_statistic_has_a_meaning_and_each_meaning_a_statistic():
    graph, edges = one()
    names = list(describe(graph, edges=edges))
    assert all(meaning(name) for name in names)
    assert {meaning(name) for name in names} == set(MEANINGS.values())
    assert all(f"``{name}" in describe.__doc__ for name in MEANINGS)
    assert meaning("my own number") == ""
