"""What is finished of a long piece of work, so that it is not done again after whatever stopped it."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from socialgraph.data.files import atomic_write, check_room, only_here
from socialgraph.errors import InputError, OutputError
from socialgraph.ranking import processes
from socialgraph.ranking.identity import differences

#: seconds between two times that lines are brought to the disk: a power cut costs as much work, a killed process none
SYNC_SECONDS = 1.0
_ADVICE = "delete the folder or choose another"


class Journal:
    """Keeps the result of each finished batch in a folder. Started again, it tells what is there.

    | file | holds |
    |---|---|
    | journal.json | the identity: everything that results depend on |
    | finished-0.jsonl, ... | of each process, a line a batch: its number, its result, a checksum of both |

    A line reaches the system before the next batch begins, so it outlives the process. Lines that a power cut or a
    full disk has torn are at the end of a file, and are dropped. Floats are written so that they come back the same.

    Used as ``with Journal(folder, identity) as journal``. One run holds the folder at a time; of several processes
    the first reads it and tells the others.

    Args:
        folder: made where it is missing; None: nothing is kept.
        identity: of the work, by name; JSON. Only work with the same identity may go on.
        size: bytes that will be written, roughly.
        together: all processes open it; False: only the first does.

    Raises:
        InputError: the folder holds other work, or is damaged.
        OutputError: it cannot be written, has no room, or another run holds it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        identity: Mapping[str, Any],
        size: int = 0,
        together: bool = True,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.identity = dict(identity)
        self.size = size
        self.together = together
        #: what was finished when it was opened: number of the batch -> result
        self.finished: dict[int, Any] = {}
        self._held = ExitStack()
        self._file: IO[bytes] | None = None
        self._end = 0
        self._synced = 0.0

    def __enter__(self) -> Self:
        if self.folder is None:
            return self
        with ExitStack() as held:  # lets go of the folder where it is refused
            if processes.is_first():
                held.enter_context(only_here(self.folder))
                check_room(self.folder, self.size)
                self._check()
                self.finished = self._read()
            if self.together:
                self.finished = processes.from_first(self.finished)
            with writing(self.folder):
                # unbuffered: a line is handed over whole or it is known how much of it was
                path = self.folder / f"finished-{processes.number()}.jsonl"
                self._file = held.enter_context(open(path, "ab", buffering=0))
                self._end = self._file.seek(0, os.SEEK_END)
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._held:
            if self._file is not None and self.folder is not None and error is None:
                with writing(self.folder):
                    os.fsync(self._file.fileno())

    def append(self, number: int, result: Any) -> None:
        """Write down what a batch gave: something of JSON.

        Raises:
            OutputError: it cannot be written. What was there before is there still.
        """
        if self._file is None or self.folder is None:
            return
        text = json.dumps(result)
        line = f'{{"batch": {number}, "crc32": {_checksum(number, text)}, "result": {text}}}\n'.encode()
        with writing(self.folder):
            try:
                write_all(self._file, line)
            except OSError:
                self._file.truncate(self._end)
                raise
            self._end += len(line)
            if time.monotonic() - self._synced > SYNC_SECONDS:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()

    def _check(self) -> None:
        """Compare identities; a new folder gets this one."""
        assert self.folder is not None
        path = self.folder / "journal.json"
        if not path.exists():
            if any(self.folder.glob("finished-*.jsonl")):
                raise InputError(f"{self.folder}: a journal without journal.json; {_ADVICE}")
            with atomic_write(path) as file:
                json.dump(self.identity, file, indent=1)
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{path}: cannot be read ({error}); {_ADVICE}") from None
        if not isinstance(kept, dict):
            raise InputError(f"{path}: not the beginning of a journal; {_ADVICE}")
        if changes := differences(kept, self.identity):
            raise InputError(f"{self.folder}: the journal is of other work: {'; '.join(changes)}; {_ADVICE}")

    def _read(self) -> dict[int, Any]:
        """Return all results; cut torn ends off."""
        assert self.folder is not None
        results: dict[int, Any] = {}
        for path in sorted(self.folder.glob("finished-*.jsonl")):
            good = end = 0  # bytes up to the last whole line, and up to here
            with writing(path), open(path, "r+b") as file:
                for number, line in enumerate(file, start=1):
                    record = _record(line)
                    if record is not None and good < end:
                        raise InputError(f"{path}:{number - 1}: damaged; {_ADVICE}")
                    end += len(line)
                    if record is not None:
                        good = end
                        results[record[0]] = record[1]
                file.truncate(good)
        return results


def finished(folder: str | os.PathLike[str]) -> dict[int, Any]:
    """Return the results that a journal holds so far: number of the batch -> result. It need not be there."""
    lines = (
        line for path in sorted(Path(folder).glob("finished-*.jsonl")) for line in path.read_bytes().splitlines(True)
    )
    return dict(record for record in map(_record, lines) if record is not None)


def write_all(file: IO[bytes], data: bytes) -> None:
    """Write to an unbuffered file, which may take a part at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an operating system's error into one that says where, and what to do.

    Raises:
        OutputError: something could not be written.
    """
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror or error}); what is finished is kept: "
            "make room and start again"
        ) from error


def _record(line: bytes) -> tuple[int, Any] | None:
    """Return number and result of a line, None where it is damaged."""
    try:
        record = json.loads(line)
        number, result = record["batch"], record["result"]
        whole = line.endswith(b"\n") and record["crc32"] == _checksum(number, json.dumps(result))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return (number, result) if whole else None


def _checksum(number: int, text: str) -> int:
    return zlib.crc32(f"{number} {text}".encode())
