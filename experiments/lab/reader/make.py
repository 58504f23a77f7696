"""Makes shards out of what apt and pip have downloaded, and collections of what the reader is to be tested on."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lab.reader.collection_shards import collection_shard
from lab.reader.heldout import collection_of, write_collection
from lab.reader.shards import Shard, shards_of, texts_of
from lab.reader.sources import Page, description_pages, docstring_pages, html_pages, manual_pages, read_lz4

from socialgraph.data import Collection
from socialgraph.data.evidence import evidence_of

log = logging.getLogger("socialgraph")


def found(patterns: Iterable[str]) -> list[Path]:
    """Return the files of some patterns, each with its whole path."""
    return [file for one in patterns for file in sorted(Path(one).parent.glob(Path(one).name))]


def pages_of(file: Path) -> Iterable[Page]:
    """Return the pages of a file that apt or pip downloaded."""
    if file.suffix == ".deb":
        return html_pages(file)
    return docstring_pages(file) if file.suffix == ".whl" else description_pages(read_lz4(file))


def make_shards(sources: Iterable[str], tests: Mapping[str, Iterable[str]], folder: Path) -> None:
    """Write the shards of each source, named by it.

    Args:
        sources: patterns of files.
        tests: patterns of those that are left out.
        folder: where to.
    """
    held_out = {file for patterns in tests.values() for file in found(patterns)}
    for file in found(sources):
        if file not in held_out:
            name = file.name.split("_" if file.suffix == ".deb" else "-")[0]
            write(name, shards_of(texts_of(pages_of(file))), folder)


def shards_of_collection(name: str, collection: Collection, place: Path, folder: Path) -> None:
    """Write the shard of a collection, "real-": questions of people; the places of their answers lie in a folder."""
    write(f"real-{name}", (collection_shard(collection, evidence_of(name, collection, place)) for _ in "1"), folder)


def write(name: str, shards: Iterator[Shard], folder: Path) -> None:
    """Write shards; a source that has all of its own is left alone."""
    if (folder / f"{name}.done").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    count = questions = 0
    for number, shard in enumerate(shards):
        shard.write(folder / f"{name}-{number:02d}.npz")
        count, questions = count + len(shard.tokens), questions + len(shard.document)
    (folder / f"{name}.done").write_text(f"{name}\t{count}\t{questions}\n")
    log.info("%s: %d word pieces, %d questions", name, count, questions)


def make_tests(tests: Mapping[str, Iterable[str]], folder: Path) -> None:
    """Write a collection for each name, which asks for the pages of Debian packages: by headings of pages in HTML.

    Manual pages, called "manual", are asked for by their one line.

    Args:
        tests: name -> patterns of files.
        folder: where to.
    """
    for name, patterns in tests.items():
        manual = name == "manual"
        pages = [page for file in found(patterns) for page in (manual_pages(file) if manual else html_pages(file))]
        if pages:
            write_collection(collection_of(name, pages, titles=manual), folder / name)
