"""A collection from its public source, in the cache: fetched at one commit, built, and checked."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tarfile
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from filelock import FileLock

from socialgraph.data.files import built_folder, cache_folder, check_room
from socialgraph.data.lines import raw_lines
from socialgraph.data.sources.build import FirstStage, write_folder
from socialgraph.data.sources.covidqa import COVIDQA
from socialgraph.data.sources.fairytale import FAIRYTALE
from socialgraph.data.sources.source import Source
from socialgraph.data.sources.wtq import WTQ
from socialgraph.errors import InputError, check_choice, first_line

logger = logging.getLogger(__name__)

#: the collections that can be built
SOURCES = {source.name: source for source in (WTQ, FAIRYTALE, COVIDQA)}
ARCHIVE = "https://github.com/{repository}/archive/{commit}.tar.gz"
_ROOM = 1 << 30  # bytes that the largest of them takes while it is made


def make_collection(
    name: str,
    first_stage: FirstStage,
    copy: Path | None = None,
    cache: str | os.PathLike[str] | None = None,
    checked: bool = True,
) -> Path:
    """Build a collection in the cache, unless it is there; return its folder, which appears whole or not at all.

    Args:
        name: of the collection.
        first_stage: finds the candidates.
        copy: an unpacked copy of the source; None: it is downloaded.
        cache: see :func:`cache_folder <socialgraph.data.files.cache_folder>`.
        checked: whether what is built must have the digest that it should have.

    Raises:
        OptionError: There is no such collection.
        InputError: The source cannot be had; what was built is not what it should be.
        OutputError: The cache cannot be written.
    """
    check_choice("the collection", name, SOURCES)
    source, folder = SOURCES[name], built_folder(name, cache)
    check_room(folder.parent)
    with FileLock(folder.parent / ".lock"):  # who comes second waits, and finds it there
        if folder.is_dir() and (not checked or digest(folder) == source.digest):
            logger.info("%s: it is there", folder)
            return folder
        check_room(folder.parent, _ROOM)
        beside = folder.parent / f".{name}.part"
        shutil.rmtree(beside, ignore_errors=True)  # of a build that was killed
        (beside / name).mkdir(parents=True)
        try:
            origin = copy or _unpack(source, _fetch(source, cache_folder(cache)), beside / "source")
            lacking = [pattern for pattern in source.files if next(origin.glob(pattern), None) is None]
            if lacking:
                raise InputError(f"{origin}: there is no {lacking[0]}; expected {_repository(source)}")
            logger.info("%s: reading %s", name, origin)
            write_folder(source, source.read(origin), origin / "LICENSE", beside / name, first_stage)
            if checked and digest(beside / name) != source.digest:
                raise InputError(
                    f"{name}: the files did not come out as they should; take {_repository(source)} with line ends as "
                    "they are, and the versions of constraints.txt, or keep what came out with --unchecked"
                )
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(beside / name, folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return folder


def _repository(source: Source) -> str:
    return f"an unpacked copy of https://github.com/{source.repository} at commit {source.commit[:7]}"


def digest(folder: Path) -> str:
    """Return the SHA-256 of what ``sha256sum *`` prints, packed files unpacked before, as packers differ."""
    whole = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        inside = hashlib.sha256()
        for _, line in raw_lines(file):
            inside.update(line)
        whole.update(f"{inside.hexdigest()}  {file.name}\n".encode())
    return whole.hexdigest()


def _fetch(source: Source, cache: Path) -> Path:
    """Return the source's archive; it is downloaded once, with a bar, and tried again where the connection breaks.

    An archive is there whole or not at all. GitHub gives no part of one, so a download that broke off begins anew.
    """
    try:
        import pooch
    except ImportError:
        message = f"pip install 'socialgraph-ir[data]'; or --source FOLDER names {_repository(source)}"
        raise InputError(f"{source.name} is downloaded by the extra: {message}") from None
    url = ARCHIVE.format(repository=source.repository, commit=source.commit)
    name = f"{source.name}-{source.commit[:12]}.tar.gz"
    store = pooch.create(cache / "sources", base_url="", registry={name: None}, urls={name: url}, retry_if_failed=3)
    pooch.get_logger().setLevel(logging.WARNING)
    logger.info("%s: %s", source.name, url)
    try:
        return Path(store.fetch(name, progressbar=True))
    except Exception as error:  # of requests, urllib3, or the disk
        message = f"where there is no network, --source FOLDER names {_repository(source)}"
        raise InputError(f"{url} cannot be downloaded ({first_line(error)}); {message}") from error


def _unpack(source: Source, archive: Path, folder: Path) -> Path:
    """Unpack the files that are read, and nothing else; a damaged archive is removed, so that the next call gets it."""
    try:
        with tarfile.open(archive) as packed:
            for member in packed:
                path = PurePosixPath(*PurePosixPath(member.name).parts[1:])  # the first is <name>-<commit>
                data = packed.extractfile(member) if member.isreg() and _is_read(path, source.files) else None
                if data is not None:
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    with open(folder / path, "wb") as file:
                        shutil.copyfileobj(data, file)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        archive.unlink(missing_ok=True)
        raise InputError(f"{archive}: damaged, and removed ({first_line(error)}); call again") from error
    return folder


def _is_read(path: PurePosixPath, patterns: tuple[str, ...]) -> bool:
    return ".." not in path.parts and any(
        len(PurePosixPath(pattern).parts) == len(path.parts) and fnmatchcase(str(path), pattern) for pattern in patterns
    )
