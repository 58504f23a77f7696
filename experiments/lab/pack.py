"""All that the study needs on a machine without network, in one tar file: collections with fewer candidates, a BERT."""

from __future__ import annotations

import gzip
import logging
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from lab.plan import Run
from lab.task import test_splits
from socialgraph.backbone import load_bert, load_tokenizer
from socialgraph.data import read_run, write_run
from socialgraph.data.collection import ranked
from socialgraph.data.files import atomic_write
from socialgraph.errors import InputError

log = logging.getLogger("socialgraph")

#: candidates of a training question that are taken along
TRAIN_CANDIDATES = 15


def pack(runs: Sequence[Run], path: Path) -> None:
    """Write ``data/<collection>/`` and ``backbone/`` into a .tar.xz.

    Of each collection: the texts as they are, and the splits that the runs read with their depth of candidates
    (training questions: 15). The backbone's weights have 16 bits; they are computed with in 32, as everywhere.
    Unpacked in a folder, ``data_root=folder/data model.backbone=folder/backbone`` take it.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for run in {run.config.data.path: run for run in runs}.values():
            pack_collection(run, folder / "data" / Path(run.config.data.path).name)
        name = (runs[0].warm_up.config if runs[0].warm_up else runs[0].config).backbone
        bert = load_bert(name).to(torch.float16)
        bert.config.dtype = torch.float32  # what it is computed with
        bert.save_pretrained(folder / "backbone")
        load_tokenizer(name).save_pretrained(folder / "backbone")
        with atomic_write(path, "wb") as file, tarfile.open(fileobj=file, mode="w:xz") as tar:
            for part in ("data", "backbone"):
                tar.add(folder / part, part)
    log.info("%s: %.1f MiB", path, path.stat().st_size / 2**20)


def pack_collection(run: Run, target: Path) -> None:
    """Copy what a run reads of its collection."""
    data, source = run.config.data, Path(run.config.data.path)
    if not source.is_dir():
        raise InputError(f"{source}: no such folder")
    target.mkdir(parents=True)
    for name in ("corpus.jsonl", "evidence.tsv", "flags.tsv", "LICENSE", "NOTICE"):
        for file in source.glob(f"{name}*"):
            copy(file, target)
    for split in dict.fromkeys([data.splits.train, data.splits.dev, *test_splits(data)]):
        depth = TRAIN_CANDIDATES if split == data.splits.train else data.depth
        for file in [source / f"queries.{split}.tsv", *source.glob(f"qrels.{split}.txt*")]:
            copy(file, target)
        for file in source.glob(f"run.{data.candidates}.{split}.txt*"):
            best = {
                query: {document: scores[document] for document in ranked(scores)[:depth]}
                for query, scores in read_run(file).items()
            }
            write_run(target / f"run.{data.candidates}.{split}.txt", best, str(data.candidates))


def copy(file: Path, folder: Path) -> None:
    """Copy a file into a folder, unpacked: all is packed once more, and better."""
    target = folder / file.name.removesuffix(".gz")
    with gzip.open(file) if file.suffix == ".gz" else open(file, "rb") as source, open(target, "wb") as plain:
        shutil.copyfileobj(source, plain)
