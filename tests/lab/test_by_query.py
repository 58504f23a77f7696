"""experiments/lab/by_query.py: what queries are sorted by."""

from lab.by_query import lengths_of

from socialgraph.data import Collection, Document, Tokens


def test_a_judged_document_that_is_not_there_has_no_length(tiny_bert):
    documents = {name: Document(name, "w1 " * length) for name, length in (("short", 3), ("long", 9))}
    tokens = Tokens(tiny_bert[0], 1 << 30)
    relevant = {"both": ["long", "short"], "one": ["gone", "long"], "none": ["gone"], "nothing": []}
    assert lengths_of(relevant, Collection("c", documents, {}), tokens) == {"both": 3, "one": 9}
