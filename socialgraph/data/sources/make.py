"""A collection from its public source, in the cache: fetched, built, checked file by file."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from filelock import FileLock

from socialgraph.data.collection import first_ids
from socialgraph.data.files import built_folder, cache_folder, check_room
from socialgraph.data.lines import raw_lines
from socialgraph.data.sources.build import FirstStage, write_folder
from socialgraph.data.sources.covidqa import COVIDQA
from socialgraph.data.sources.fairytale import FAIRYTALE
from socialgraph.data.sources.fetch import check_source, fetch, unpack
from socialgraph.data.sources.wtq import WTQ
from socialgraph.errors import InputError, OptionError

logger = logging.getLogger(__name__)

#: the collections that can be built
SOURCES = {source.name: source for source in (WTQ, FAIRYTALE, COVIDQA)}
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
        checked: whether the source's files and those that are built must have the digests that they should have.

    Raises:
        OptionError: There is no such collection.
        InputError: The source cannot be had or is another one; what was built is not what it should be.
        OutputError: The cache cannot be written.
    """
    if name not in SOURCES:
        raise OptionError(f"there is no collection {name!r} to build; there are: {', '.join(SOURCES)}")
    source, folder = SOURCES[name], built_folder(name, cache)
    expected = digests(name)
    check_room(folder.parent)
    with FileLock(folder.parent / ".lock"):  # who comes second waits, and finds it there
        if folder.is_dir() and (not checked or not unlike(folder, expected)):
            logger.info("%s: it is there", folder)
            return folder
        check_room(folder.parent, _ROOM)
        for left in folder.parent.glob(f".{name}.*.part"):  # by a build that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}.", suffix=".part") as beside:
            unpacked, made = Path(beside) / "source", Path(beside) / name
            made.mkdir()
            if copy is None:
                unpack(source, fetch(source, cache_folder(cache)), unpacked)
            origin = copy or unpacked
            if checked:
                check_source(source, origin)
            logger.info("%s: reading %s", name, origin)
            write_folder(source, source.read(origin), origin / "LICENSE", made, first_stage)
            if checked and (wrong := unlike(made, expected)):
                raise InputError(
                    f"{name}: {len(wrong)} of {len(expected)} files did not come out as they should: "
                    f"{first_ids(wrong, 5)}; install the versions of constraints.txt, or keep them with --unchecked"
                )
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(made, folder)
    return folder


def digests(name: str) -> dict[str, str]:
    """Return file -> SHA-256 of what it holds (packed files: of what is inside), of all files of a collection."""
    lines = (files("socialgraph.data.sources") / "digests.txt").read_text().splitlines()
    pairs = (line.split() for line in lines)
    return {path.removeprefix(f"{name}/"): value for value, path in pairs if path.startswith(f"{name}/")}


def unlike(folder: Path, expected: Mapping[str, str]) -> list[str]:
    """Return the files that miss or hold something else, and those that should not be there."""
    there = {file.name for file in folder.iterdir()}
    return sorted(
        name for name in expected.keys() | there if name not in there or content(folder / name) != expected.get(name)
    )


def content(file: Path) -> str:
    """Return the SHA-256 of what a file holds; of a packed one of what is inside, as packers differ."""
    digest = hashlib.sha256()
    for _, line in raw_lines(file):
        digest.update(line)
    return digest.hexdigest()
