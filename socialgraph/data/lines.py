r"""Reading files line by line: one reader for all formats.

Lines end with ``\n`` or ``\r\n``, and with nothing else: no character inside a text counts as a line end. Files whose
name ends in ``.gz`` are read through gzip. Whatever is wrong is an `InputError` that names the file and the line.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from socialgraph.errors import InputError

#: bytes of the longest line that is read: four times the Bible
MAX_LINE = 16 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}:{number + 1}: damaged gzip data ({error})") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # the last: a NUL in the name
        raise error if isinstance(error, InputError) else InputError(f"{path}: cannot be read ({error})") from None


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
    expected = list(columns)
    for where, line in numbered_lines(path):
        row = decoded(line, where).split("\t")
        if heading:
            heading = False
            if row != expected:
                shown = " ".join(row)[:80]
                raise InputError(f"{where}: expected the heading {', '.join(columns)}, tabs between, got {shown!r}")
        elif len(row) != len(expected):
            shown = line[:80].decode(errors="replace")
            raise InputError(
                f"{where}: expected {len(expected)} columns ({', '.join(columns)}), tabs between; got {len(row)} "
                f"columns in {shown!r}"
            )
        else:
            yield where, row


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


def find(folder: Path, name: str) -> Path | None:
    """Return `name` or `name.gz` in the folder, whichever is there.

    Raises:
        InputError: both are.
    """
    files = [file for file in (folder / name, folder / f"{name}.gz") if os.path.lexists(file)]
    if len(files) == 2:
        raise InputError(f"{folder}: both {name} and {name}.gz are there; keep one")
    return files[0] if files else None
