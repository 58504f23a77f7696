"""Makes shards out of what apt and pip have downloaded: one or several files for each source."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from lab.reader.collection_shards import collection_shard, texts_of_collection
from lab.reader.shards import shards_of, texts_of
from lab.reader.sources import Page, description_pages, docstring_pages, html_pages, read_lz4

from socialgraph.data import Collection
from socialgraph.data.evidence import evidence_of

log = logging.getLogger("socialgraph")


def pages_of(file: Path) -> Iterable[Page]:
    """Return the pages of a file that apt or pip downloaded."""
    if file.suffix == ".deb":
        return html_pages(file)
    if file.suffix == ".whl":
        return docstring_pages(file)
    return description_pages(read_lz4(file))


def make_shards(files: Iterable[Path], folder: Path) -> None:
    """Write the shards of each source, named by it; a source that has some is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        name = file.name.split("_")[0] if file.suffix == ".deb" else file.name.split("-")[0]
        if (folder / f"{name}.done").exists():
            continue
        count = questions = 0
        for number, shard in enumerate(shards_of(texts_of(pages_of(file)))):
            shard.write(folder / f"{name}-{number:02d}.xz")
            count, questions = count + len(shard.tokens), questions + len(shard.document)
        (folder / f"{name}.done").write_text(f"{name}\t{count}\t{questions}\n")
        log.info("%s: %d word pieces, %d questions", name, count, questions)


def shards_of_collection(name: str, collection: Collection, place: Path, folder: Path) -> None:
    """Write the shards of a collection: "real-", people's questions, and "own-", what its text asks.

    Args:
        name: of the collection.
        collection: with the split "train".
        place: the folder with its places of answers.
        folder: where to.
    """
    if (folder / f"{name}.done").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    real = collection_shard(collection, evidence_of(name, collection, place))
    real.write(folder / f"real-{name}-00.xz")
    for number, shard in enumerate(shards_of(texts_of_collection(collection))):
        shard.write(folder / f"own-{name}-{number:02d}.xz")
    (folder / f"{name}.done").write_text(f"{name}\t{len(real.tokens)}\t{len(real.document)}\n")
