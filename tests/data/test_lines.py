"""The one reader of lines."""

import gzip
import os

import pytest

from socialgraph.data.lines import MAX_LINE, decoded, numbered_lines, table
from socialgraph.errors import InputError


def test_numbered_lines_split_at_line_feeds_only(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\u2028still\r\n\ntwo\x0bs".encode())
    lines = [(where, line.decode()) for where, line in numbered_lines(path)]
    assert lines == [(f"{path}:1", "one\u2028still"), (f"{path}:2", ""), (f"{path}:3", "two\x0bs")]


def test_numbered_lines_name_missing_and_damaged_files(tmp_path):
    with pytest.raises(InputError, match=r"none\.txt: no such file"):
        list(numbered_lines(tmp_path / "none.txt"))
    with pytest.raises(InputError, match=r"cannot be read .*Is a directory"):
        list(numbered_lines(tmp_path))
    cut = tmp_path / "cut.txt.gz"
    cut.write_bytes(gzip.compress(os.urandom(50_000))[:30_000])
    with pytest.raises(InputError, match=r"cut\.txt\.gz:\d+: damaged gzip"):
        list(numbered_lines(cut))
    cut.write_bytes(b"plain text")
    with pytest.raises(InputError, match=r"cut\.txt\.gz:1: damaged gzip"):
        list(numbered_lines(cut))


def test_decoded_names_the_place():
    assert decoded("é".encode(), "f:1") == "é"
    with pytest.raises(InputError, match="f:7: not UTF-8"):
        decoded(b"\xff", "f:7")


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path):
    with open(tmp_path / "long.txt", "wb") as file:
        file.truncate(MAX_LINE + 2)
    with pytest.raises(InputError, match=r"long\.txt:1: the line is longer than 16 MiB"):
        list(numbered_lines(tmp_path / "long.txt"))


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x0c", "\x0b", "\x1c", "\x85", "\r"])
def test_nothing_else_ends_a_line(tmp_path, end):
    (tmp_path / "a.tsv").write_bytes(f"q1\tone{end}still one\r\nq2\ttwo".encode())
    assert [row for _, row in table(tmp_path / "a.tsv", ("id", "text"))] == [
        ["q1", f"one{end}still one"],
        ["q2", "two"],
    ]


def test_a_table_has_its_columns_and_quotes_are_text(tmp_path):
    file = tmp_path / "a.tsv"
    file.write_text('a\tb\n"x\ty"\n"z\tw\n')
    assert [row for _, row in table(file, ("a", "b"), heading=True)] == [['"x', 'y"'], ['"z', "w"]]
    with pytest.raises(InputError, match=r"a\.tsv:1: expected the heading a, c, tabs between, got 'a b'"):
        list(table(file, ("a", "c"), heading=True))
    with pytest.raises(InputError, match=r"a\.tsv:1: expected 3 columns \(a, b, c\), tabs between; got 2 columns"):
        list(table(file, ("a", "b", "c")))


def test_the_users_own_folder_may_be_named_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("one\n")
    assert [line for _, line in numbered_lines("~/a.txt")] == [b"one"]
