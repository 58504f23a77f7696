"""All that the study needs on a machine without network, in one tar file: collections with fewer candidates, a BERT."""

from __future__ import annotations

import gzip
import logging
import shutil
import tarfile
import tempfile
from pathlib import Path

import torch
from rows import test_splits
from study_plan import Study

from socialgraph.backbone import load_bert, load_tokenizer
from socialgraph.data import read_run, write_run
from socialgraph.data.collection import ranked
from socialgraph.data.files import atomic_write
from socialgraph.errors import InputError

log = logging.getLogger("socialgraph")

#: candidates of a training question that are taken along
TRAIN_CANDIDATES = 15


def pack(study: Study, path: Path) -> None:
    """Write ``data/<collection>/`` and ``backbone/`` into a .tar.xz.

    Of each collection: the texts as they are, and the splits that the study reads with its depth of candidates
    (training questions: 15). The backbone's weights have 16 bits; they are computed with in 32, as everywhere.
    Unpacked in a folder, ``data_root=folder/data backbone=folder/backbone`` take it.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for data, cell in {cell.data: cell for cell in study.cells}.items():
            one = study.compose(cell, study.config.backbone)
            source, target = Path(one.data.path), folder / "data" / data
            if not source.is_dir():
                raise InputError(f"{source}: no such folder")
            target.mkdir(parents=True)
            for name in ("corpus.jsonl", "evidence.tsv", "flags.tsv", "LICENSE", "NOTICE"):
                for file in source.glob(f"{name}*"):
                    copy(file, target)
            splits = [*dict.fromkeys([one.data.splits.train, one.data.splits.dev, *test_splits(one)])]
            for split in splits:
                depth = TRAIN_CANDIDATES if split == one.data.splits.train else one.data.depth
                for file in [source / f"queries.{split}.tsv", *source.glob(f"qrels.{split}.txt*")]:
                    copy(file, target)
                for file in source.glob(f"run.{one.data.candidates}.{split}.txt*"):
                    run = {
                        query: {document: scores[document] for document in ranked(scores)[:depth]}
                        for query, scores in read_run(file).items()
                    }
                    write_run(target / f"run.{one.data.candidates}.{split}.txt", run, str(one.data.candidates))
        bert = load_bert(study.config.backbone).to(torch.float16)
        bert.config.dtype = torch.float32  # what it is computed with
        bert.save_pretrained(folder / "backbone")
        load_tokenizer(study.config.backbone).save_pretrained(folder / "backbone")
        with atomic_write(path, "wb") as file, tarfile.open(fileobj=file, mode="w:xz") as tar:
            for part in ("data", "backbone"):
                tar.add(folder / part, part)
    log.info("%s: %.1f MiB", path, path.stat().st_size / 2**20)


def copy(file: Path, folder: Path) -> None:
    """Copy a file into a folder, unpacked: all is packed once more, and better."""
    target = folder / file.name.removesuffix(".gz")
    with gzip.open(file) if file.suffix == ".gz" else open(file, "rb") as source, open(target, "wb") as plain:
        shutil.copyfileobj(source, plain)
