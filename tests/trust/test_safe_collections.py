"""A collection's files lead nowhere: no id is a path, and no line fills the memory."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import sys
from pathlib import Path

import pytest
from bad_input import COLLECTION
from children import fresh

from socialgraph import cli
from socialgraph.data.folder import load_folder
from socialgraph.data.lines import MAX_LINE
from socialgraph.errors import SocialgraphError


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "collection"
    path.mkdir()
    for name, content in COLLECTION.items():
        (path / name).write_bytes(content)
    return path


def everything(folder: Path, cache: Path | None = None) -> object:
    return load_folder(folder, cache=cache or folder.parent / "cache")["test"].candidates


def test_ids_name_no_files(tiny_bert, tmp_path):
    """Ids that are paths, through all that is written: caches, stores, runs, a page."""
    ids = ["../../escaped", "/tmp/escaped", "..", "~/escaped", "a/b/../../../../escaped"]
    folder = tmp_path / "deep" / "deeper" / "collection"
    folder.mkdir(parents=True)
    lines = [json.dumps({"doc_id": one, "text": "w1 w2 " * 10, "title": one}) for one in ids]
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "queries.test.tsv").write_text("../../q\tw1\n")
    before = {path for path in tmp_path.rglob("*") if "escaped" in path.name}
    arguments = ["--query", "w1", "--collection", str(folder), "--backbone", tiny_bert[0], "--window", "16", "--output"]
    for one in ids:
        cli.main(["inspect", *arguments, str(folder / "page.html"), "--document", one])
    everywhere = {path for path in tmp_path.rglob("*") if "escaped" in path.name or path.name == "q"}
    assert everywhere == before == set()
    assert {path.name for path in folder.iterdir()} == {"corpus.jsonl.gz", "queries.test.tsv", "page.html"}
    assert not Path("/tmp/escaped").exists()


def _grown(path: str, answer) -> None:
    # In a process of its own: how much memory reading took, and what came of it.
    start = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    try:
        everything(Path(path))
        text = "read"
    except SocialgraphError as error:
        text = f"{type(error).__name__}: {error}"
    answer.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - start, text))


def _bomb(line: bytes, size: int) -> bytes:
    """Return gzip data that unpack to about ``size`` bytes of this line, again and again."""
    block = gzip.compress(line * max(1, (8 << 20) // len(line)), 9)
    return block * (size // (max(1, (8 << 20) // len(line)) * len(line)))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is asked of Linux")
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl.gz", _bomb(bytes(1 << 20), 2 << 30),
        rf"corpus\.jsonl\.gz:1: the line is longer than {MAX_LINE >> 20} MiB"),
        ("corpus.jsonl", 300 << 20, r"corpus\.jsonl:1: the line is longer"),
        ("queries.test.tsv", 300 << 20, r"queries\.test\.tsv:1: the line is longer"),
        ("qrels.test.txt", 300 << 20, r"qrels\.test\.txt:1: the line is longer"),
        ("run.bm25.test.txt.gz", _bomb(bytes(1 << 20), 2 << 30), r"run\.bm25\.test\.txt\.gz:1: the line is longer"),
    ],
)  # fmt: skip
def test_long_lines_end_in_an_error_not_in_swap(folder, name, content, message):
    (folder / name.removesuffix(".gz")).unlink()
    if isinstance(content, int):
        with open(folder / name, "wb") as file:
            file.truncate(content)  # of nothing but NULs, and no room on the disk
    else:
        assert len(content) < 20 << 20
        (folder / name).write_bytes(content)
    context = fresh()
    answer = context.SimpleQueue()
    process = context.Process(target=_grown, args=(str(folder), answer))
    process.start()
    grown, text = answer.get()
    process.join(60)
    assert process.exitcode == 0
    assert text.startswith("InputError")
    assert re.search(message, text), text
    assert grown < 150 << 20
    assert not [path for path in (folder.parent / "cache").rglob("*") if path.is_file()]
