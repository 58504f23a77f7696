"""Scores of sequences, kept by what they are made of: a second strategy costs only the circles that are new."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import cumsum, index_to_mask, scatter

from socialgraph.data.files import atomic_write
from socialgraph.data.graph import circle_document, circle_size
from socialgraph.nn.selection import select
from socialgraph.partition.ties import mix

Reader = Callable[[Data], Tensor]
"""Graph with circles -> the score of each circle for its document's query, ``[C]``."""


class KeptScores:
    """A reader whose scores are kept in a file, by the word pieces of query and circle.

    A score is found by 64 bits of them: among a million sequences, two share theirs with a chance of 3 in 10^8.

    Args:
        file: where they are kept; one that cannot be read is begun anew.
        reader: scores the circles that are new.
    """

    def __init__(self, file: Path, reader: Reader) -> None:
        self.file, self.reader = file, reader
        self.new = 0  # sequences that were read
        self.key, self.score = torch.empty(0, dtype=torch.long), torch.empty(0)
        try:
            kept = load_file(file)
            if kept["key"].shape == kept["score"].shape:
                self.key, self.score = kept["key"], kept["score"]
        except (OSError, SafetensorError, KeyError):
            pass

    def __call__(self, graph: Data) -> Tensor:
        """Return the score of each circle, ``[C]`` float32 on the CPU."""
        key = content(graph).cpu()
        place = torch.searchsorted(self.key, key)
        known = place < self.key.numel()
        known[known.clone()] = self.key[place[known]] == key[known]
        if not bool(known.all()):
            unknown = (~known).nonzero().flatten()
            _, first = np.unique(key[unknown].numpy(), return_index=True)  # of equal circles one is read
            keep = index_to_mask(unknown[first], key.numel())
            read = self.reader(select(graph, keep.to(graph.batch.device))).float().cpu()
            self.new += read.numel()
            self.key, order = torch.sort(torch.cat([self.key, key[keep]]))
            self.score = torch.cat([self.score, read])[order]
        return self.score[torch.searchsorted(self.key, key)]

    def save(self) -> None:
        """Write what is kept."""
        with atomic_write(self.file, "wb") as file:
            file.write(save({"key": self.key, "score": self.score}))


def content(graph: Data) -> Tensor:
    """Return a number for each circle that says which word pieces it and its query have, in which order: ``[C]``."""
    query, circle = graph.query_length, circle_size(graph)
    asked = _sums(graph.query_ids, query)
    said = _sums(graph.input_ids[graph.circle_index[0]], circle)
    return mix(mix(said) + mix(asked[circle_document(graph)] + 1))


def _sums(ids: Tensor, size: Tensor) -> Tensor:
    """Return a number for each of several lists of word pieces, one behind the other. Whole numbers, any order."""
    owner = torch.repeat_interleave(size)
    place = torch.arange(owner.numel(), device=ids.device) - cumsum(size)[owner]
    return scatter(mix(mix(ids.long() + 1) + place), owner, dim_size=size.numel(), reduce="sum")
