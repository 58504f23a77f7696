# ruff: noqa: F811  (fixtures are imported)
"""A folder that is no collection is refused with file and line."""

import gzip
import json

import pytest
from test_folder import CORPUS, cache, corpus, folder, pack  # noqa: F401  (fixtures)

from socialgraph.data.folder import load_folder
from socialgraph.errors import InputError


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"doc_id": "d1", "text": "again"}', r"'d1' comes twice \(first in line 1\)"),
        ('{"doc_id": "d4", "text": "x"', "expected a JSON object"),
        ("[" * 100_000, "expected a JSON object"),
        ('["d4", "x"]', "expected a JSON object, got list"),
        ('{"doc_id": "d4"}', "the key 'text' is missing; there are: 'doc_id'"),
        ('{"text": "x"}', "the key 'doc_id' is missing"),
        ('{"doc_id": 4, "text": "x"}', "'doc_id' must be a string, got int '4'"),
        ('{"doc_id": "d4", "text": null}', "'text' must be a string, got NoneType"),
        ('{"doc_id": "d4", "text": "x", "title": ["t"]}', "'title' must be a string, got list"),
        ('{"doc_id": "d 4", "text": "x"}', "one word without blanks"),
        (r'{"doc_id": "d4", "text": "\ud800"}', "surrogate"),
    ],
)
def test_bad_corpus_lines_are_named(folder, line, message):
    corpus(folder, *map(json.dumps, CORPUS), line)
    with pytest.raises(InputError, match=message) as caught:
        load_folder(folder)
    assert f"{folder / 'corpus.jsonl'}:4: " in str(caught.value)
    pack(folder / "corpus.jsonl")
    with pytest.raises(InputError, match=message) as caught:
        load_folder(folder)
    assert f"{folder / 'corpus.jsonl.gz'}:4: " in str(caught.value)


def test_a_corpus_that_is_not_utf8_empty_or_damaged_is_named(folder):
    path = folder / "corpus.jsonl"
    path.write_bytes(b'{"doc_id": "d", "text": "\xff"}\n')
    with pytest.raises(InputError, match=r"corpus\.jsonl:1: not UTF-8"):
        load_folder(folder)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="the corpus is empty"):
        load_folder(folder)
    path.unlink()
    (folder / "corpus.jsonl.gz").write_bytes(b"not packed")
    with pytest.raises(InputError, match=r"corpus\.jsonl\.gz:1: damaged gzip"):
        load_folder(folder)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q9\t  ", "'q9' is empty"),
        ("q9", "1 columns"),
        ("q9\ta\tb", "3 columns"),
        ("q1\tagain", "'q1' comes twice"),
        ("q 9\ttext", "one word"),
    ],
)
def test_bad_query_lines_are_named(folder, line, message):
    (folder / "queries.dev.tsv").write_text(f"q1\tone\n{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        load_folder(folder)
    assert f"{folder / 'queries.dev.tsv'}:2: " in str(caught.value)


def test_missing_files_are_named(folder, tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        load_folder(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no run\.splade.* there are runs named bm25"):
        load_folder(folder, candidates="splade")
    for file in folder.glob("run.*"):
        file.unlink()
    assert not load_folder(folder)["dev"].has_candidates
    for file in folder.glob("queries.*"):
        file.unlink()
    with pytest.raises(InputError, match="no queries"):
        load_folder(folder)
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(InputError, match=r"neither corpus\.jsonl nor corpus\.jsonl\.gz"):
        load_folder(folder)


def test_two_versions_of_one_file_are_refused(folder):
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(InputError, match="keep one"):
        load_folder(folder)


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "..", ".", "", "a/b", "x\0", "bm25\n", "a\nb", "C:\\x", "\x1b[31m", "~"]
)
def test_the_name_of_a_run_cannot_leave_the_folder(folder, name):
    (folder.parent / "run.x.dev.txt").write_text("q1 Q0 d1 1 1.0 t\n")
    with pytest.raises(InputError, match="the name of a run") as caught:
        load_folder(folder, candidates=name)
    assert str(caught.value).isprintable()
