"""Writing files so that a file is whole or it is not there; where what can be made again is kept."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from safetensors import SafetensorError

from socialgraph.errors import OutputError

#: no room on the disk, over the user's quota, a file larger than is allowed; somebody has removed it meanwhile
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT)


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    r"""Open `path` for writing so that it appears whole or not at all.

    The bytes go to a hidden file beside `path`, reach the disk (fsync), and then take the name of `path` in
    one step (rename). If the block raises, the hidden file is removed and an older `path` stays as it was. Missing
    folders are made. What a process that is killed leaves is hidden, and nobody reads it.

    Args:
        path: The file to write. Text is UTF-8 with `\n` line ends on every platform, and packed where the name ends in
            `.gz` (without a time: same text, same bytes).
        mode: `"w"` for text, `"wb"` for bytes.

    Raises:
        OutputError: The path is a folder, its folder is closed, or the disk is full. What was there before is still
            there.
    """
    target = Path(path).expanduser()
    if target.is_dir():
        raise OutputError(f"{target} is a folder: give the path of a file in it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise _unwritable(target, error) from error
    beside = Path(name)
    try:
        with ExitStack() as stack:
            file: IO[Any] = stack.enter_context(os.fdopen(handle, "wb"))
            if mode == "w" and target.suffix == ".gz":
                packed = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
                file = stack.enter_context(packed)  # type: ignore[arg-type]
            if mode == "w":
                file = stack.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline="\n"))
            yield file
        sync(beside)
        # mkstemp makes files that only their owner can read; a result should be as readable as any other file.
        beside.chmod(target.stat().st_mode & 0o777 if target.exists() else _usual_mode())
        os.replace(beside, target)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _FULL:
            raise _unwritable(target, error) from error
        raise
    sync(target.parent)


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
                file.chmod(_usual_mode())  # safetensors writes for its owner alone
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


def _unwritable(path: Path, error: Exception) -> OutputError:
    reason = getattr(error, "strerror", None) or error
    return OutputError(f"{path}: cannot be written ({reason}); free the disk or choose another folder")


def _usual_mode() -> int:
    mask = os.umask(0)  # the only portable way to ask is to set it
    os.umask(mask)
    return 0o666 & ~mask


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
    if (free := shutil.disk_usage(place).free) < size:
        message = f"{size / 1e9:.1f} GB will be written and {free / 1e9:.1f} GB are free"
        raise OutputError(f"{place}: {message}; free the disk or choose another folder")


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
