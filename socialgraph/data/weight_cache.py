"""Weights that cost a pass through a BERT, kept for each (query, document)."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.data.files import cache_folder
from socialgraph.data.lru_cache import LRUCache
from socialgraph.edges import Centrality
from socialgraph.errors import InputError, OutputError

#: what SQLite says of a folder that is closed, full or in use
_CLOSED = {
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
}  # fmt: skip


class WeightCache:
    """Keeps the node weights of costly patterns, so that a pair goes through BERT once.

    A weight is found by what it is made of: the pattern's options and parameters, the query's and the document's word
    pieces. So nothing that is kept can be out of date, and a pair has the same weights, and with them the same graph
    to the last bit, in whatever batch it comes again. Where several processes compute the same pair, all take what
    the file got first. Kept weights that cannot be right (of another length, or not finite) are computed again.

    Args:
        size: bytes that are kept in memory; each worker of a DataLoader has as many of its own.
        folder: keeps all weights in a file of this folder too, for later runs and for all workers; None keeps none. A
            pair of 2,048 word pieces takes 8 kB. See :meth:`at`.

    Raises:
        OutputError: the folder cannot be written, or its disk is full.
        InputError: the file is damaged.
    """

    def __init__(self, size: int = 1 << 30, folder: str | os.PathLike[str] | None = None) -> None:
        self.size = size
        self.folder = None if folder is None else Path(folder)
        self._memory = LRUCache(size)
        self._patterns: WeakKeyDictionary[Centrality, bytes] = WeakKeyDictionary()
        # By process: a forked worker opens the file itself, and never touches, not even closes, what it inherited.
        self._opened: dict[int, sqlite3.Connection] = {}
        if self.folder is not None:
            self._file()

    @classmethod
    def at(cls, cache: str | os.PathLike[str] | None = None, size: int = 1 << 30) -> WeightCache:
        """Return one that keeps weights in the folder of caches, see :meth:`TokenStore.of`."""
        return cls(size, cache_folder(cache) / "weights")

    def weights(self, pattern: Centrality, batch: Batch) -> Tensor:
        """Return the pattern's weight of every node, ``[N]`` float32; only pairs that are not kept are computed."""
        keys = self._keys(pattern, batch)
        place = {key: number for number, key in enumerate(keys)}  # of each pair, which may come twice
        cached = {key: weights for key in place if (weights := self._memory.get(key)) is not None}
        size = batch.ptr.diff().tolist()
        new = self._read({key: size[number] for key, number in place.items() if key not in cached})
        if missing := [key for key in place if key not in cached and key not in new]:
            all_are = len(missing) == batch.num_graphs
            some = batch if all_are else Batch.from_data_list(batch.index_select([place[key] for key in missing]))
            parts = torch.split(pattern.weights(some).float().cpu(), some.ptr.diff().tolist())
            fresh = {key: part.clone() for key, part in zip(missing, parts, strict=True)}
            new |= fresh | self._write(fresh)
        for key, weights in new.items():
            self._memory.put(key, weights)
        cached |= new
        return torch.cat([cached[key] for key in keys]).to(batch.input_ids.device)

    def _keys(self, pattern: Centrality, batch: Batch) -> list[bytes]:
        """Return a hash for each pair, 128 bits."""
        if pattern not in self._patterns:
            whole = hashlib.blake2b(repr(pattern).encode(), digest_size=16)
            for name, value in pattern.state_dict().items():
                whole.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
                whole.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
            self._patterns[pattern] = whole.digest()
        words = batch.input_ids.int().cpu().numpy().tobytes()
        query = batch.query_ids.int().cpu().numpy().tobytes()
        ends, query_ends = ((4 * x).tolist() for x in (batch.ptr[1:], batch.query_length.cumsum(0)))
        keys, start, query_start = [], 0, 0
        for end, query_end in zip(ends, query_ends, strict=True):
            key = hashlib.blake2b(query[query_start:query_end], digest_size=16, key=self._patterns[pattern])
            key.update(b"%d " % (query_end - query_start))
            key.update(words[start:end])
            keys.append(key.digest())
            start, query_start = end, query_end
        return keys

    def _file(self) -> sqlite3.Connection | None:
        if self.folder is None:
            return None
        if os.getpid() not in self._opened:
            with self._errors():
                self.folder.mkdir(parents=True, exist_ok=True)
                file = sqlite3.connect(self.folder / "weights.sqlite", timeout=60, check_same_thread=False)
                file.execute("PRAGMA journal_mode = WAL")  # readers and a writer do not wait for each other
                file.execute("PRAGMA synchronous = NORMAL")
                file.execute("CREATE TABLE IF NOT EXISTS weights (key BLOB PRIMARY KEY, value BLOB)")
            self._opened[os.getpid()] = file
        return self._opened[os.getpid()]

    def _read(self, sizes: Mapping[bytes, int]) -> dict[bytes, Tensor]:
        """Return the weights that the file keeps of pairs of so many nodes; what cannot be theirs counts as missing."""
        file, cached = self._file(), {}
        if file is None:
            return {}
        with self._errors():
            for key, size in sizes.items():
                row = file.execute("SELECT value FROM weights WHERE key = ?", (key,)).fetchone()
                if row is not None and isinstance(row[0], bytes) and len(row[0]) == 4 * size:
                    weights = torch.from_numpy(np.frombuffer(row[0], "<f4").copy())
                    if bool(weights.isfinite().all()):
                        cached[key] = weights
        return cached

    def _write(self, fresh: Mapping[bytes, Tensor]) -> dict[bytes, Tensor]:
        """Keep weights in the file, and return those that it keeps: another process may have been first."""
        file = self._file()
        if file is None:
            return {}
        rows = {key: weights.numpy().astype("<f4").tobytes() for key, weights in fresh.items()}
        with self._errors(), file:
            file.executemany("INSERT OR IGNORE INTO weights VALUES (?, ?)", rows.items())
        kept = self._read({key: weights.numel() for key, weights in fresh.items()})
        if damaged := [(key, row) for key, row in rows.items() if key not in kept]:
            with self._errors(), file:
                file.executemany("INSERT OR REPLACE INTO weights VALUES (?, ?)", damaged)
        return kept

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say in one line what is wrong with the file."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if isinstance(error, OSError) or code in _CLOSED:
                raise OutputError(
                    f"{self.folder}: no weights can be kept there ({error}); free the disk or choose another folder"
                ) from error
            raise InputError(
                f"{self.folder}/weights.sqlite: damaged ({error}); delete the file, it is made again"
            ) from error

    def __reduce__(self) -> tuple[type[WeightCache], tuple[int, Path | None]]:
        return type(self), (self.size, self.folder)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._memory!r}, folder={str(self.folder)!r})"
