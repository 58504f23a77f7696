"""Scores of sequences, kept by what they are made of: a second strategy costs only the circles that are new."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import index_to_mask

from lab.files import read_json, write_json
from socialgraph.data.graph import circle_document, circle_size
from socialgraph.nn.selection import select
from socialgraph.ranking.identity import digest

Reader = Callable[[Data], Tensor]
"""Graph with circles -> the score of each circle for its document's query, ``[C]``."""


class KeptScores:
    """A reader whose scores are kept in a file, by the word pieces of query and circle.

    Args:
        file: where they are kept, JSON; one that cannot be read is begun anew.
        reader: scores the circles that are new.
    """

    def __init__(self, file: Path, reader: Reader) -> None:
        self.file, self.reader = file, reader
        self.new = 0  # sequences that were read
        self.score: dict[str, float] = read_json(file) or {}

    def __call__(self, graph: Data) -> Tensor:
        """Return the score of each circle, ``[C]`` float32 on the CPU."""
        keys = content(graph)
        unknown: dict[str, int] = {}  # of equal circles the first is read
        for place, key in enumerate(keys):
            if key not in self.score:
                unknown.setdefault(key, place)
        if unknown:
            keep = index_to_mask(torch.tensor(list(unknown.values())), len(keys))
            read = self.reader(select(graph, keep.to(graph.batch.device))).tolist()
            self.score.update(zip(unknown, read, strict=True))
            self.new += len(read)
        return torch.tensor([self.score[key] for key in keys])

    def save(self) -> None:
        """Write what is kept."""
        write_json(self.file, self.score)


def content(graph: Data) -> list[str]:
    """Return 64 bits for each circle that say which word pieces it and its query have, in which order.

    Among a million sequences, two share theirs with a chance of 3 in 10^8.
    """
    asked = [ids.tolist() for ids in graph.query_ids.split(graph.query_length.tolist())]
    said = graph.input_ids[graph.circle_index[0]].split(circle_size(graph).tolist())
    document = circle_document(graph).tolist()
    return [digest([asked[d], ids.tolist()])[:16] for d, ids in zip(document, said, strict=True)]
