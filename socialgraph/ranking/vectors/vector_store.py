"""Stored vectors: what BERT said of a collection's documents, read from the disk as far as it is asked for.

A store is a folder:

| file | holds |
|---|---|
| tokens.npy | vectors of all tokens, one document after the other, ``[T, D]`` float16 or float32 |
| cls.npy | vectors of the passages' [CLS], ``[C, F]`` float32; F is 0 where the model has none |
| passage_ptr.npy | bounds of the passages among the tokens, ``[C + 1]`` int64 |
| document_ptr.npy | bounds of the documents among the passages, ``[B + 1]`` int64 |
| store.json | ids of the documents; class, config and sha256 of the weights of the model; how documents were cut |
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import cumsum

from socialgraph.data.builder import GraphBuilder
from socialgraph.errors import CheckpointError, first_line
from socialgraph.nn.bi_encoder import BiEncoder, PassageVectors
from socialgraph.ranking.identity import differences, identity_of

#: changes when the files do
VERSION = 1
#: names of the files, in this order wherever they stand in a list
FILES = ("tokens", "cls", "passage_ptr", "document_ptr")


class VectorStore:
    """The stored vectors of a collection. Only rows that are asked for are read from the disk.

    Args:
        folder: that :func:`encode_collection` wrote.

    Raises:
        CheckpointError: the folder holds no whole store.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.about: dict[str, Any] = json.loads((self.folder / "store.json").read_text(encoding="utf-8"))
            if self.about["version"] != VERSION:
                raise ValueError(f"version {self.about['version']}, this program reads {VERSION}")
            self.token, self.cls, self.passage_ptr, self.document_ptr = (
                _mapped(self.folder / f"{name}.npy") for name in FILES
            )
            self.documents = {document: place for place, document in enumerate(self.about["documents"])}
            ends = (int(self.passage_ptr[-1]), int(self.document_ptr[-1]), self.document_ptr.numel() - 1)
            sizes = (len(self.token), len(self.cls), len(self.documents))
            if ends != sizes or self.passage_ptr.numel() != len(self.cls) + 1:
                raise ValueError(f"{sizes} tokens, passages and documents where {ends} are expected")
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise CheckpointError(f"{self.folder}: not a whole store of vectors ({first_line(error)})") from error

    def check(self, model: BiEncoder, builder: GraphBuilder) -> None:
        """Refuse a model or a builder that is not the one of the store.

        Raises:
            CheckpointError: it says what differs.
        """
        mine = {**identity_of(model), **cutting(builder)}
        if changes := differences({name: self.about.get(name) for name in mine}, mine):
            raise CheckpointError(
                f"{self.folder}: the store is of other work: {'; '.join(changes)}; encode the collection again"
            )

    def passages(self, document_ids: Sequence[str], device: torch.device | str = "cpu") -> PassageVectors:
        """Return the vectors of some documents' passages; of their tokens only where they lie.

        Args:
            document_ids: of B documents.
            device: where all but the tokens' vectors go.
        """
        place = torch.tensor([self.documents[document] for document in document_ids], dtype=torch.long)
        size = self.document_ptr[place + 1] - self.document_ptr[place]
        ptr = cumsum(size)
        document = torch.repeat_interleave(size)
        passage = torch.arange(document.numel()) + (self.document_ptr[place] - ptr[:-1])[document]
        start = self.passage_ptr[passage]
        return PassageVectors(
            token=self.token,
            start=start.to(device),
            size=(self.passage_ptr[passage + 1] - start).to(device),
            cls=self.cls[passage].to(device),
            document=document.to(device),
            document_ptr=ptr.to(device),
        )

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, {len(self)} documents, {len(self.token)} tokens)"


def cutting(builder: GraphBuilder) -> dict[str, Any]:
    """Return how documents are cut into passages."""
    return {"passages": repr(builder.passages), "document_length": builder.tokens.max_document_length}


def _mapped(path: Path) -> Tensor:
    """Return a file of numbers as a tensor whose rows are read when they are asked for."""
    return torch.from_numpy(np.load(path, mmap_mode="c", allow_pickle=False))
