"""The one reader of lines."""

import gzip
import os

import pytest

from socialgraph.data.lines import MAX_LINE, is_word, numbered_lines, table
from socialgraph.errors import InputError


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x0c", "\x0b", "\x1c", "\x85", "\r"])
def test_lines_end_at_line_feeds_only(tmp_path, end):
    (tmp_path / "a.tsv").write_bytes(f"\ufeffq1\tone{end}still one\r\nq2\ttwo".encode())
    assert list(table(tmp_path / "a.tsv", ("id", "text"))) == [
        (f"{tmp_path}/a.tsv:1", ["q1", f"one{end}still one"]),
        (f"{tmp_path}/a.tsv:2", ["q2", "two"]),
    ]


def test_missing_damaged_and_endless_files_are_named(tmp_path):
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(os.urandom(50_000))[:30_000])
    (tmp_path / "plain.txt.gz").write_bytes(b"plain text")
    with open(tmp_path / "long.txt", "wb") as file:
        file.truncate(MAX_LINE + 2)
    for name, told in (
        ("none.txt", r"none\.txt: no such file"),
        ("", "cannot be read .*Is a directory"),
        ("cut.txt.gz", r"cut\.txt\.gz:\d+: damaged gzip"),
        ("plain.txt.gz", r"plain\.txt\.gz:1: damaged gzip"),
        ("long.txt", r"long\.txt:1: the line is longer than 16 MiB"),
    ):
        with pytest.raises(InputError, match=told):
            list(numbered_lines(tmp_path / name))


def test_a_table_has_its_columns_and_quotes_are_text(tmp_path):
    file = tmp_path / "a.tsv"
    file.write_text('a\tb\n"x\ty"\n"z\tw\n')
    assert [row for _, row in table(file, ("a", "b"), heading=True)] == [['"x', 'y"'], ['"z', "w"]]
    with pytest.raises(InputError, match=r"a\.tsv:1: expected the heading a, c, tabs between, got 'a b'"):
        list(table(file, ("a", "c"), heading=True))
    with pytest.raises(InputError, match=r"a\.tsv:1: expected 3 columns \(a, b, c\), tabs between, got 'a b'"):
        list(table(file, ("a", "b", "c")))


def test_the_users_own_folder_may_be_named_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("one\n")
    assert [line for _, line in numbered_lines("~/a.txt")] == [b"one"]


def test_an_id_is_one_word():
    assert all(map(is_word, ("d1", "d\u30001", "../x", "d" * 4096, "日本語")))
    assert not any(map(is_word, ("", "d 1", "d\n", "d\0", "\x9b2J", "\ufeff", "\ud800", "d" * 4097)))
