"""Getting a source: the repository's archive at one commit, or an unpacked copy; its files are checked either way."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tarfile
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from socialgraph.data.files import sha256
from socialgraph.data.sources.source import Source
from socialgraph.errors import InputError, first_line

logger = logging.getLogger(__name__)

#: GitHub makes it on the spot, so its own hash is not fixed: what is checked are the files inside
ARCHIVE = "https://github.com/{repository}/archive/{commit}.tar.gz"


def fetch(source: Source, cache: Path) -> Path:
    """Return the source's archive; it is downloaded once, with a bar, and tried again where the connection breaks.

    An archive is there whole or not at all. GitHub gives no part of one, so a download that broke off begins anew.

    Raises:
        InputError: pooch is not installed, or the archive cannot be had.
    """
    try:
        import pooch
    except ImportError:
        raise InputError(
            f"{source.name} is downloaded by the extra: pip install 'socialgraph-ir[data]'; or --source FOLDER names a "
            f"copy of https://github.com/{source.repository}"
        ) from None
    url = ARCHIVE.format(repository=source.repository, commit=source.commit)
    name = f"{source.name}-{source.commit[:12]}.tar.gz"
    store = pooch.create(cache / "sources", base_url="", registry={name: None}, urls={name: url}, retry_if_failed=3)
    pooch.get_logger().setLevel(logging.WARNING)
    logger.info("%s: %s", source.name, url)
    try:
        return Path(store.fetch(name, progressbar=True))
    except Exception as error:  # of requests, urllib3, or the disk
        raise InputError(
            f"{url} cannot be downloaded ({first_line(error)}); where there is no network, --source FOLDER names an "
            f"unpacked copy"
        ) from error


def unpack(source: Source, archive: Path, folder: Path) -> None:
    """Unpack the files that are read, and nothing else; a damaged archive is removed, so that the next call gets it.

    Raises:
        InputError: The archive is damaged.
    """
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


def _is_read(path: PurePosixPath, patterns: tuple[str, ...]) -> bool:
    return ".." not in path.parts and any(
        len(PurePosixPath(pattern).parts) == len(path.parts) and fnmatchcase(str(path), pattern) for pattern in patterns
    )


def check_source(source: Source, folder: Path) -> None:
    """Compare the files that are read with those of the commit.

    The digest is the SHA-256 of what ``sha256sum`` prints of these files, relative to the folder, sorted by name.

    Raises:
        InputError: The folder lacks the files, or they are other ones.
    """
    origin = f"https://github.com/{source.repository} at commit {source.commit[:7]}"
    for pattern in source.files:
        if next(folder.glob(pattern), None) is None:
            raise InputError(f"{folder}: there is no {pattern}; expected an unpacked copy of {origin}")
    actual = digest(source, folder)
    if actual != source.digest:
        raise InputError(
            f"{folder}: the files are not those of {origin} (digest {actual[:12]}, expected {source.digest[:12]}); get "
            "that commit, with line ends as they are, or take them as they are with --unchecked"
        )


def digest(source: Source, folder: Path) -> str:
    """Return the digest of the files that are read, see :func:`check_source`."""
    names = sorted({file.relative_to(folder).as_posix() for pattern in source.files for file in folder.glob(pattern)})
    lines = "".join(f"{sha256(folder / name)}  {name}\n" for name in names)
    return hashlib.sha256(lines.encode()).hexdigest()
