"""Runs and judgements are read back as they were written; what is wrong in a file is named."""

import gzip
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socialgraph.data.trec import read_qrels, read_run, write_qrels, write_run
from socialgraph.errors import InputError

letters = st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters=" \ufeff")
words = st.text(letters, min_size=1, max_size=5)
scores = st.floats(allow_nan=False, allow_infinity=False)
runs = st.dictionaries(words, st.dictionaries(words, scores, min_size=1))
grades = st.dictionaries(words, st.dictionaries(words, st.integers(-3, 4), min_size=1))


@pytest.mark.parametrize("name", ["run.txt", "run.txt.gz"])
@given(run=runs)
def test_runs_are_read_back_exactly(tmp_path_factory, name, run):
    path = tmp_path_factory.mktemp("run") / name
    write_run(path, run)
    assert read_run(path) == run
    assert list(read_run(path)) == list(run)
    first = path.read_bytes()
    write_run(path, read_run(path))
    assert path.read_bytes() == first


@given(qrels=grades)
def test_qrels_are_read_back_exactly(tmp_path_factory, qrels):
    path = tmp_path_factory.mktemp("qrels") / "qrels.txt"
    write_qrels(path, qrels)
    assert read_qrels(path) == qrels


def test_run_lines_are_in_rank_order_with_ties_by_id(tmp_path):
    write_run(tmp_path / "run", {"q": {"b": 1.0, "c": 2.5, "a": 1}}, tag="me")
    assert (tmp_path / "run").read_text() == "q Q0 c 1 2.5 me\nq Q0 a 2 1.0 me\nq Q0 b 3 1.0 me\n"


def test_reading_keeps_unicode_blanks_inside_ids_and_takes_tabs(tmp_path):
    (tmp_path / "run").write_text("q\u00a01\tQ0\td\u30001\t1\t3.5\tx\r\n")
    assert read_run(tmp_path / "run") == {"q\u00a01": {"d\u30001": 3.5}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q Q0 d 1 2.0", "expected 6 columns"),
        ("q Q0 d one 2.0 tag", "the rank must be a whole number, got 'one'"),
        ("q Q0 d 1_0 2.0 tag", "the rank must be a whole number, got '1_0'"),
        ("q Q0 d 1 high tag", "the score must be a finite number, got 'high'"),
        ("q Q0 d 1 nan tag", "the score must be a finite number, got 'nan'"),
        ("q1 Q0 d1 9 0.5 tag", "'d1' comes twice for query 'q1'"),
        ("q Q0 \udcff 1 2.0 tag", "not UTF-8"),  # the byte ff
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_bad_run_lines_are_named(tmp_path, line, message, packed):
    path = tmp_path / ("run.txt.gz" if packed else "run.txt")
    text = f"q1 Q0 d1 1 2.0 tag\n{line}\n".encode(errors="surrogateescape")
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(InputError, match=message) as caught:
        read_run(path)
    assert f"{path}:2: " in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q 0 d", "4 columns"),
        ("q 0 d 1.5", "the grade must be a whole number, got '1.5'"),
        ("q1 0 d1 0", "judged twice"),
        ("q 0 d 1001", "whole number from -1000 to 1000, got 1001"),
    ],
)
def test_bad_qrels_lines_are_named(tmp_path, line, message):
    path = tmp_path / "qrels"
    path.write_text(f"q1 0 d1 1\n{line}\n")
    with pytest.raises(InputError, match=message) as caught:
        read_qrels(path)
    assert f"{path}:2: " in str(caught.value)


@pytest.mark.parametrize(
    ("run", "tag"), [({"q 1": {"d": 1.0}}, "t"), ({"q": {"d\n": 1.0}}, "t"), ({}, "a b"), ({"q": {"d": math.nan}}, "t")]
)
def test_what_cannot_be_read_back_is_not_written(tmp_path, run, tag):
    path = tmp_path / "run"
    path.write_text("old")
    with pytest.raises(InputError):
        write_run(path, {"ok": {"d": 1.0}} | run, tag)
    assert path.read_text() == "old"
