"""Every number of a document is told in words."""

from pages import one

from socialgraph.inspect import describe
from socialgraph.inspect.meanings import MEANINGS


def test_each_statistic_has_a_meaning_and_each_meaning_a_statistic():
    graph, edges = one()
    assert set(describe(graph, edges=edges)) == set(MEANINGS)
    assert all(f"``{name}``" in describe.__doc__ for name in MEANINGS)
