r"""Reading files line by line: the one layer below all formats (JSON lines, columns between tabs, TREC).

Lines end with ``\n`` or ``\r\n``, and with nothing else: no character inside a text counts as a line end. Files whose
name ends in ``.gz`` are read through gzip. Whatever is wrong is an `InputError` that names the file and the line.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from socialgraph.errors import InputError

#: bytes of the longest line that is read: four times the Bible
MAX_LINE = 16 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: no blank, no control character (C0, DEL, C1), no mark of byte order, no half of a surrogate pair
_WORD = re.compile("[^\x00-\x20\x7f-\x9f\ufeff\ud800-\udfff]{1,4096}")
_SURROGATE = re.compile("[\ud800-\udfff]")
#: what an id may be called in a file of JSON lines: here, in BEIR's files, in some of the Hub's
ID_KEYS = ("doc_id", "_id", "id")


def raw_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line with its line end).

    Memory holds one line of at most `MAX_LINE` bytes.

    Raises:
        InputError: The file cannot be read, a line is too long, or gzip data are damaged or cut short.
    """
    file_path, number = Path(path).expanduser(), 0
    try:
        with gzip.open(file_path) if file_path.suffix == ".gz" else open(file_path, "rb") as file:
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    raise InputError(f"{path}:{number}: the line is longer than {MAX_LINE >> 20} MiB; cut it")
                yield number, line
    except InputError:
        raise
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}:{number + 1}: damaged gzip data ({error})") from None
    except (OSError, ValueError) as error:  # the last: a NUL in the name
        reason = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise InputError(f"{path}: {reason}") from None


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, bytes]]:
    """Yield (``file:line``, line without its end), see :func:`raw_lines`. A byte order mark at the start is dropped."""
    for number, line in raw_lines(path):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        yield f"{path}:{number}", line.removesuffix(b"\n").removesuffix(b"\r")


def decoded(line: bytes, where: str) -> str:
    """Return the line as text; `where` (file:line) is named in the InputError if it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 (byte {error.start}: {error.reason})") from None


def table(
    path: str | os.PathLike[str], columns: Sequence[str], heading: bool = False
) -> Iterator[tuple[str, list[str]]]:
    """Yield (``file:line``, columns) of a file whose columns are divided by tabs. Quotes are text.

    Args:
        path: the file.
        columns: what they hold, for messages.
        heading: whether the first line must be these names.

    Raises:
        InputError: another number of columns, or another heading; and see :func:`raw_lines`.
    """
    names = ", ".join(columns)
    for where, line in numbered_lines(path):
        row = decoded(line, where).split("\t")
        if len(row) != len(columns) or (heading and row != list(columns)):
            expected = f"the heading {names}" if heading else f"{len(columns)} columns ({names})"
            raise InputError(f"{where}: expected {expected}, tabs between, got {' '.join(row)[:80]!r}")
        if not heading:
            yield where, row
        heading = False


def json_object(line: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object of a line; `where` is file:line.

    Raises:
        InputError: it is none.
    """
    text = decoded(line, where).removeprefix("\ufeff")  # a byte order mark may stand at the start of a file
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: expected a JSON object, got {text.strip()[:60]!r} ({error})") from None
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected a JSON object, got {type(entry).__name__}")
    return entry


def strings(entry: Mapping[str, Any], where: str, *names: str) -> list[str]:
    """Return an entry's id, under one of `ID_KEYS`, and the texts of these names; a text that is null is empty.

    Args:
        entry: such as a JSON object, or a row of a table.
        where: file:line, or what else leads to it.
        names: of the texts; all but ``title`` must be there.

    Raises:
        InputError: a key is missing, what it has is no string, or the id can be none (:func:`is_word`).
    """
    id_key = next((key for key in ID_KEYS if key in entry), ID_KEYS[0])
    values = []
    for key in (id_key, *names):
        if key not in entry and key != "title":
            there = ", ".join(map(repr, entry))[:200] or "none"
            raise InputError(f"{where}: the key {key!r} is missing; there are: {there}")
        value = entry.get(key)
        if value is None and key != id_key:
            value = ""
        if not isinstance(value, str) or not is_unicode(value):
            got = "" if isinstance(value, list | dict) else f" {str(value)[:40]!r}"
            raise InputError(f"{where}: {key!r} must be a string, got {type(value).__name__}{got}")
        values.append(value)
    checked_id(values[0], f"{where}: {id_key!r}")
    return values


def is_word(text: str) -> bool:
    """Whether `text` can be an id: one word without blanks and control characters.

    The programs that measure runs end an id at a NUL, and a terminal obeys an escape.
    """
    return _WORD.fullmatch(text) is not None


def is_unicode(text: str) -> bool:
    """Whether `text` can be stored as UTF-8: it holds no half of a surrogate pair."""
    return text.isascii() or _SURROGATE.search(text) is None


def checked_id(text: str, what: str) -> str:
    """Return an id; `what` begins the InputError where it can be none (:func:`is_word`)."""
    if not is_word(text):
        raise InputError(f"{what} must be one word without blanks, got {text[:80]!r}")
    return text


def find(folder: Path, name: str) -> Path | None:
    """Return `name` or `name.gz` in the folder, whichever is there.

    Raises:
        InputError: both are.
    """
    files = [file for file in (folder / name, folder / f"{name}.gz") if os.path.lexists(file)]
    if len(files) == 2:
        raise InputError(f"{folder}: both {name} and {name}.gz are there; keep one")
    return files[0] if files else None
