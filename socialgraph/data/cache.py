"""What is costly to make, found again by what it was made from: in memory, or in one file that processes share."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from socialgraph.data.batches import batches
from socialgraph.data.files import cache_folder
from socialgraph.errors import InputError, OutputError

#: bytes that are kept in memory, and on disk unless SOCIALGRAPH_CACHE_GB says otherwise
MEMORY, DISK = 1 << 30, 20 * 10**9
#: what a row takes beside its value, roughly
_ROW = 64
#: bytes of the largest value that SQLite takes; that are written in one transaction; rows that are asked for at once
_LARGEST, _WRITE, _READ = 900 << 20, 4 << 20, 500
_TABLE = "CREATE TABLE IF NOT EXISTS entries (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"
#: what SQLite says of a folder that is closed, full or in use
_CLOSED = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
}  # fmt: skip


class Cache:
    """Bytes by key, in at most ``size`` bytes; what was written first goes first. Nothing but bytes is read.

    A key is a hash of all that the value was made from (:func:`content_key`), so nothing that is kept can be out of
    date. Values carry a checksum: one that is damaged counts as missing. In a folder it is the file ``cache.sqlite``,
    which processes share; a writer that is killed leaves what was there before (SQLite's rollback journal, which works
    on network disks, too, where files can be locked). In memory each process has its own: a pickled copy begins empty.

    Args:
        folder: where the file is, see :meth:`on_disk`; None: in memory.
        size: bytes of keys and values; 0 keeps nothing.

    Raises:
        OutputError: the file cannot be written.
        InputError: the file is damaged.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, size: int = MEMORY) -> None:
        self.path = None if folder is None else Path(folder) / "cache.sqlite"
        self.size = size
        # By process: a fork opens the file itself, and never touches, not even closes, what it inherited.
        self._opened: dict[int, tuple[sqlite3.Connection, Lock]] = {}

    @classmethod
    def on_disk(cls, folder: str | os.PathLike[str] | None = None) -> Cache:
        """Return the cache that all commands share.

        Args:
            folder: of caches; by default the environment variable ``SOCIALGRAPH_CACHE``, else ``socialgraph`` in the
                user's cache folder. ``SOCIALGRAPH_CACHE_GB`` is its size, by default 20.

        Raises:
            InputError: that variable is no number.
        """
        wanted = os.environ.get("SOCIALGRAPH_CACHE_GB")
        try:
            size = DISK if wanted is None else int(float(wanted) * 1e9)
        except (ValueError, OverflowError):
            raise InputError(f"SOCIALGRAPH_CACHE_GB must be a number of gigabytes, got {wanted!r}") from None
        return cls(cache_folder(folder), size)

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the values of those keys that are there."""
        found: dict[bytes, bytes] = {}
        damaged = []
        with self._file() as file:
            for some in batches(dict.fromkeys(keys), lambda _: 1, _READ):
                asked = f"SELECT key, value FROM entries WHERE key IN ({','.join('?' * len(some))})"
                for key, value in file.execute(asked, some):
                    if isinstance(value, bytes) and value[:4] == _checksum(value[4:]):
                        found[key] = value[4:]
                    else:
                        damaged.append((key,))
            if damaged:
                file.executemany("DELETE FROM entries WHERE key = ?", damaged)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep values. What is there already stays; a value larger than the cache is not kept."""
        fitting = [item for item in values.items() if _room(item) <= min(self.size, _LARGEST)]
        for some in batches(fitting, _room, min(self.size, _WRITE)):
            rows = [(key, _checksum(value) + value) for key, value in some]
            with self._file() as file, file:  # the connection, and a transaction of it
                file.execute("BEGIN IMMEDIATE")
                _make_room(file, self.size - sum(map(_room, some)))
                file.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?)", rows)

    def used(self) -> int:
        """Return how many bytes it takes."""
        with self._file() as file:
            return _used(file)

    def clear(self) -> None:
        """Forget everything, and give the room back; a damaged file goes, too."""
        try:
            with self._file() as file:
                with file:
                    file.execute("BEGIN IMMEDIATE")
                    file.execute("DROP TABLE entries")
                    file.execute(_TABLE)
                file.execute("VACUUM")
        except InputError:
            self._opened.clear()
            for left in ("", "-journal"):
                Path(f"{self.path}{left}").unlink(missing_ok=True)

    @contextmanager
    def _file(self) -> Iterator[sqlite3.Connection]:
        """Hold the file; what is wrong with it is said in one line."""
        try:
            if os.getpid() not in self._opened:
                self._opened.setdefault(os.getpid(), (_open(self.path), Lock()))
            file, lock = self._opened[os.getpid()]
            with lock:  # of the threads: they share the connection, and a transaction is one thread's
                yield file
        except (OSError, sqlite3.Error) as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if isinstance(error, OSError) or code in _CLOSED:
                message = "free the disk or set SOCIALGRAPH_CACHE to another folder"
                raise OutputError(f"{self.path}: cannot be written ({error}); {message}") from error
            message = "socialgraph cache --clear makes it anew"
            raise InputError(f"{self.path}: damaged ({error}); {message}") from error

    def __len__(self) -> int:
        with self._file() as file:
            count: int = file.execute("SELECT count(*) FROM entries").fetchone()[0]
            return count

    def __reduce__(self) -> tuple[type[Cache], tuple[Path | None, int]]:
        return type(self), (self.path and self.path.parent, self.size)

    def __repr__(self) -> str:
        return f"{self.path or 'in memory'}: {len(self):,} entries, {self.used():,} of {self.size:,} bytes"


def content_key(*parts: bytes) -> bytes:
    """Return a hash of some parts, 128 bits; it counts where one ends and the next begins."""
    whole = hashlib.blake2b(digest_size=16)
    for part in parts:
        whole.update(b"%d " % len(part))
        whole.update(part)
    return whole.digest()


def _open(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    # who comes second waits; a statement outside of a transaction is one of its own
    file = sqlite3.connect(path or ":memory:", timeout=60, isolation_level=None, check_same_thread=False)
    file.execute("PRAGMA synchronous = NORMAL")
    file.execute(_TABLE)
    return file


def _make_room(file: sqlite3.Connection, most: int) -> None:
    """Remove the oldest entries, a tenth at a time, until the rest takes no more than ``most`` bytes."""
    while _used(file) > most:
        first, last = file.execute("SELECT min(rowid), max(rowid) FROM entries").fetchone()
        if first is None:
            return
        file.execute("DELETE FROM entries WHERE rowid <= ?", (first + (last - first) // 10,))


def _used(file: sqlite3.Connection) -> int:
    names = ("page_size", "page_count", "freelist_count")
    size, all_pages, free = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return int(size * (all_pages - free))


def _room(item: tuple[bytes, bytes]) -> int:
    return len(item[1]) + _ROW


def _checksum(value: bytes) -> bytes:
    return zlib.crc32(value).to_bytes(4, "little")
