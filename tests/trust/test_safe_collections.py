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
from children import fresh
from tales import write_collection

from socialgraph import cli
from socialgraph.data.folder import load_folder
from socialgraph.data.lines import MAX_LINE
from socialgraph.errors import SocialgraphError


def test_ids_name_no_files(tiny_bert, tmp_path):
    """Ids that are paths, through all that is written: caches, stores, runs, a page."""
    ids = ["../../escaped", "/tmp/escaped", "~/escaped"]
    folder = tmp_path / "deep" / "deeper" / "collection"
    folder.mkdir(parents=True)
    lines = [json.dumps({"doc_id": one, "text": "w1 w2 " * 10, "title": one}) for one in ids]
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "queries.test.tsv").write_text("../../q\tw1\n")
    arguments = ["--query", "w1", "--collection", str(folder), "--backbone", tiny_bert[0], "--window", "16", "--output"]
    for one in ids:
        cli.main(["inspect", *arguments, str(folder / "page.html"), "--document", one])
    assert not [path for path in tmp_path.rglob("*") if "escaped" in path.name or path.name == "q"]
    assert {path.name for path in folder.iterdir()} == {"corpus.jsonl.gz", "queries.test.tsv", "page.html"}
    assert not Path("/tmp/escaped").exists()


def _grown(path: str, answer) -> None:
    # In a process of its own: how much memory reading took, and what came of it.
    start = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    try:
        _ = load_folder(path, cache=Path(path).parent / "cache")["test"].candidates
        text = "read"
    except SocialgraphError as error:
        text = f"{type(error).__name__}: {error}"
    answer.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - start, text))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is asked of Linux")
@pytest.mark.parametrize("name", ["corpus.jsonl.gz", "queries.test.tsv"])
def test_long_lines_end_in_an_error_not_in_swap(tmp_path, name):
    folder = tmp_path / "collection"
    write_collection(folder, {"d": "w1"}, {"d": "w1"}, test=["d"])
    (folder / name.removesuffix(".gz")).unlink()
    if name.endswith(".gz"):
        (folder / name).write_bytes(gzip.compress(bytes(8 << 20), 9) * 256)  # 2 GB of nothing but NULs
    else:
        with open(folder / name, "wb") as file:
            file.truncate(300 << 20)  # which take no room on the disk
    context = fresh()
    answer = context.SimpleQueue()
    process = context.Process(target=_grown, args=(str(folder), answer))
    process.start()
    grown, text = answer.get()
    process.join(60)
    assert process.exitcode == 0
    told = rf"^InputError: .*{re.escape(name)}:1: the line is longer than {MAX_LINE >> 20} MiB"
    assert re.search(told, text), text
    assert grown < 150 << 20
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
