"""Writing files so that a file is whole or it is not there; folders that one process writes at a time."""

from __future__ import annotations

import errno
import glob
import gzip
import hashlib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from safetensors import SafetensorError

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that another process has open
    fcntl = None  # type: ignore[assignment]

from socialgraph.errors import OutputError

#: no room on the disk, over the user's quota, a file larger than is allowed; somebody has removed it meanwhile
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT)


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    r"""Open `path` for writing so that it appears whole or not at all.

    The bytes go to a hidden file beside `path`, reach the disk (fsync), and then take the name of `path` in
    one step (rename). If the block raises, the hidden file is removed and an older `path` stays as it was. What a
    process that was killed has left of `path` is removed by the next who writes it. Missing folders are made.

    Args:
        path: The file to write. Text is UTF-8 with `\n` line ends on every platform.
        mode: `"w"` for text, `"wb"` for bytes.

    Raises:
        OutputError: The path is a folder, its folder is closed, or the disk is full. What was there before is still
            there.
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"mode must be 'w' or 'wb', got {mode!r}")
    target = Path(path).expanduser()
    if target.is_dir():
        raise OutputError(f"{target} is a folder: give the path of a file in it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target)
        handle, name = _begin(target)
    except OSError as error:
        raise _unwritable(target, error) from error
    beside = Path(name)
    hold = os.dup(handle) if fcntl is not None else None  # until the file has its name
    try:
        text = {"encoding": "utf-8", "newline": "\n"} if mode == "w" else {}
        with os.fdopen(handle, mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner can read; a result should be as readable as any other
        # file.
        beside.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(beside, target)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _FULL:
            raise _unwritable(target, error) from error
        raise
    finally:
        if hold is not None:
            os.close(hold)
    sync(target.parent)


@contextmanager
def atomic_text(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """Open for writing text with :func:`atomic_write`, `.gz` through gzip (without a time: same text, same bytes)."""
    if not str(path).endswith(".gz"):
        with atomic_write(path) as file:
            yield file
        return
    with (
        atomic_write(path, "wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as file,
    ):
        yield file


@contextmanager
def atomic_folder(path: str | os.PathLike[str], last: str = "") -> Iterator[Path]:
    """Yield an empty folder whose files and folders take their places in `path` when the block has ended well.

    Only then what `path` has under the same names is replaced; if the block raises, it stays as it was. What else lies
    there stays in any case.

    Args:
        path: the folder; it is made where it is missing.
        last: the file that says that all others are there. It goes first and comes last, so that a process that is
            killed in between leaves no mixture that a reader believes.

    Raises:
        OutputError: the folder is closed, or the disk is full.
    """
    target, is_new = Path(path), not Path(path).exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=target, prefix=".new.", suffix=".part"))
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        yield beside
        for file in beside.rglob("*"):
            if file.is_file():
                share(file)
                sync(file)
        names = sorted((one.name for one in beside.iterdir()), key=lambda name: name == last)
        replaced = Path(tempfile.mkdtemp(dir=beside))
        for name in reversed(names):
            if (target / name).exists():
                os.replace(target / name, replaced / name)
        for name in names:
            os.replace(beside / name, target / name)
    except (OSError, SafetensorError) as error:
        cause = error.__cause__ if isinstance(error, OutputError) else error  # of a folder inside, which is gone now
        raise _unwritable(target, cause if isinstance(cause, Exception) else error) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        if is_new:
            with suppress(OSError):  # something came
                target.rmdir()
    sync(target)


def _begin(target: Path) -> tuple[int, str]:
    """Open a new hidden file beside ``target`` and hold it, so that nobody takes it for abandoned."""
    while True:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
        if os.name != "posix" or os.fstat(handle).st_nlink:
            return handle, name
        os.close(handle)  # before it was held somebody found it, and removed it


def _remove_abandoned(target: Path) -> None:
    """Remove what processes that died in :func:`atomic_write` have left of a file.

    Nobody needs to hold the folder: what another process is writing just now is held by that process, and stays.
    """
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with suppress(OSError), open(left, "rb") as file:  # held, or gone meanwhile
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _unwritable(path: Path, error: Exception) -> OutputError:
    reason = getattr(error, "strerror", None) or error
    return OutputError(f"{path}: cannot be written ({reason}); free the disk or choose another folder")


def share(path: str | os.PathLike[str]) -> None:
    """Let others read a file as they may read any new one; safetensors writes for its owner alone."""
    os.chmod(path, 0o666 & ~_umask())


def _umask() -> int:
    mask = os.umask(0)  # the only portable way to ask is to set it
    os.umask(mask)
    return mask


def sync(path: str | os.PathLike[str]) -> None:
    """Make the bytes of a file, or the names in a folder, reach the disk; a folder where the platform lets it."""
    if os.name != "posix" and Path(path).is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the hash of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_room(folder: str | os.PathLike[str], size: int = 0) -> None:
    """Make a folder and write a file there, so that a closed folder or a full disk shows before hours of work.

    Args:
        folder: it is made where it is missing.
        size: bytes that will be written.

    Raises:
        OutputError: it cannot be written, or its disk has less room.
    """
    place = Path(folder)
    with atomic_write(place / ".room", "wb") as file:
        file.write(b"room")
    (place / ".room").unlink(missing_ok=True)
    free = shutil.disk_usage(place).free
    if free < size:
        raise OutputError(
            f"{place}: {size / 1e9:.1f} GB will be written and {free / 1e9:.1f} GB are free; "
            "free the disk or choose another folder"
        )


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder for what can be made again: `cache`, else `SOCIALGRAPH_CACHE`, else the user's."""
    if cache is None:
        cache = os.environ.get("SOCIALGRAPH_CACHE")
    if cache:
        return Path(cache).expanduser().absolute()  # a program may go to another folder later
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "socialgraph"


def built_folder(name: str, cache: str | os.PathLike[str] | None = None) -> Path:
    """Return where ``experiments/data.py`` builds a collection: ``collections/<name>`` in the cache folder."""
    return cache_folder(cache) / "collections" / name


def file_name(name: Any, also: str = "") -> str:
    """Return a name as that of one file or folder: nothing in it leads elsewhere. Characters in ``also`` stay, too."""
    return re.sub(rf"[^\w.{re.escape(also)}-]+", "-", str(name)).strip("-.") or "-"
