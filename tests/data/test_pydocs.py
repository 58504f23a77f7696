import hashlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from socialgraph.data import pydocs
from socialgraph.data.pydocs import load_pydocs
from socialgraph.errors import OptionError


def folded(text):
    return " ".join(text.split()).lower()


@pytest.fixture(scope="module")
def collection():
    return load_pydocs()


def test_documents_are_modules_and_chapters(collection):
    modules = [doc_id for doc_id in collection.documents if doc_id.startswith("library/")]
    chapters = [doc_id for doc_id in collection.documents if doc_id.startswith("reference/")]
    assert len(modules) + len(chapters) == len(collection.documents)
    assert len(modules) > 200
    assert 70 <= len(chapters) <= 90
    assert {"library/os", "library/email", "library/math", "library/builtins"} <= set(modules)
    assert {"reference/with", "reference/attribute-access"} <= set(chapters)
    assert not any("test" in doc_id.split("/")[1].split(".") for doc_id in modules)
    words = {doc_id: len(one.full_text.split()) for doc_id, one in collection.documents.items()}
    assert words["library/email"] > 5000  # a package is joined
    assert sum(count > 2000 for count in words.values()) > 30
    assert min(words.values()) >= 10
    assert collection.name == "pydocs-" + ".".join(map(str, sys.version_info[:3]))


def test_a_query_stands_in_no_document_not_even_its_own(collection):
    everything = "\n\n".join(folded(one.full_text) for one in collection.documents.values())
    queries = [text for split in collection.splits.values() for text in split.queries.values()]
    assert len(queries) > 1000
    assert [text for text in queries if folded(text) in everything] == []
    assert len(set(map(folded, queries))) == len(queries)


def test_queries_are_first_sentences_of_their_module_and_splits_are_by_module(collection):
    sources = {module: folded(pydocs._text(entries)) for module, entries in pydocs._modules().items()}
    modules = {}
    for name, split in collection.splits.items():
        assert split.candidates is None
        assert split.queries.keys() == split.qrels.keys()
        assert len(split.queries) > 100
        for query_id, text in split.queries.items():
            module = query_id.split(".")[0]
            modules.setdefault(module, []).append(name)
            assert split.qrels[query_id] == {f"library/{module}": 1}
            assert folded(text) in sources[module]
            assert 5 <= len(text.split()) <= 40
    assert all(len(set(names)) == 1 for names in modules.values())
    assert max(map(len, modules.values())) == 12


def test_options_change_the_choice():
    few = load_pydocs(max_queries=2, min_words=9, shares=(0.5, 0.0, 0.5))
    queries = {query_id: text for split in few.splits.values() for query_id, text in split.queries.items()}
    assert not few["dev"].queries
    assert max(Counter(query_id.split(".")[0] for query_id in queries).values()) == 2
    assert all(len(text.split()) >= 9 for text in queries.values())
    for bad in ({"max_queries": 0}, {"min_words": 1}, {"shares": (1, 1, 1)}):
        with pytest.raises(OptionError):
            load_pydocs(**bad)


def test_another_process_with_another_hash_seed_builds_the_same(collection):
    script = """
from socialgraph.data.pydocs import load_pydocs
import hashlib
c = load_pydocs()
whole = [list(c.documents.values()), [(s.queries, s.qrels) for s in c.splits.values()]]
print("DIGEST", hashlib.sha256(repr(whole).encode()).hexdigest())
"""
    splits = [(split.queries, split.qrels) for split in collection.splits.values()]
    here = hashlib.sha256(repr([list(collection.documents.values()), splits]).encode()).hexdigest()
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:socialgraph", "-c", script],
        env=os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["DIGEST", here]


def test_sources_are_parsed_not_run(tmp_path):
    file = tmp_path / "loud.py"
    file.write_text(
        '"""The module."""\nraise SystemExit\nif True:\n    def f():\n        """Do it.\n\n        Well."""\n'
        'class A:\n    """A class."""\n    async def g(self):\n        """Say so."""\n'
        '        def inner(): """No."""\n'
    )
    assert list(pydocs._parsed(file, "loud")) == [
        ("loud", False, ["The module."]),
        ("loud.f", True, ["Do it.", "Well."]),
        ("loud.A", False, ["A class."]),
        ("loud.A.g", True, ["Say so."]),
    ]
    file.write_text("print 'old Python'")
    assert list(pydocs._parsed(file, "loud")) == []


def sentence(doc):
    return pydocs._candidates([pydocs._Entry("m.f", True, pydocs._paragraphs(doc))], 5).get("m.f")


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        ("Return the name of\n   the file.  Or none.\n\nMore.", "Return the name of the file"),
        ("Use e.g. os.path for the longer way of it", "Use e.g. os.path for the longer way of it"),
        ("Too short this.", None),
        ("frobnicate(x, y) returns the thing that was asked for.", None),
        (">>> one two three four five six", None),
        ("word " * 41, None),
    ],
)
def test_what_can_be_a_query(doc, expected):
    assert sentence(doc) == expected


def test_sentences_are_taken_out_wherever_they_stand():
    text = "m.f\nreturn the NAME of it, always.\nReturn the name of it. More text.\nReturn the name"
    assert pydocs._without(text, ["Return the name", "Return the name of it"]) == "m.f\nalways.\nMore text."


def test_what_a_program_put_into_a_module_is_not_its_documentation(monkeypatch):
    before = list(pydocs._imported("sys"))
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    monkeypatch.setattr(sys, "guest", load_pydocs, raising=False)
    assert list(pydocs._imported("sys")) == before
    assert any(entry.name == "sys.__excepthook__" for entry in before)
