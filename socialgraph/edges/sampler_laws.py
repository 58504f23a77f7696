"""What the edges of every sampler obey: checked on each batch, where the sampler is the user's own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edge_laws import broken, in_words
from socialgraph.edges.edge_sampler import EdgeSampler
from socialgraph.edges.layout import document_name, documents
from socialgraph.errors import LawError, blaming


def checked_edges(sampler: EdgeSampler, graph: Data, both_ways: bool) -> tuple[Tensor, Tensor]:
    """Return the edges that a sampler draws, if they obey the laws; in O(E log E).

    Args:
        sampler: is asked, and named in errors.
        graph: a document graph, or a batch of them.
        both_ways: whether every edge must be there in both directions, as partitions rely on.

    Raises:
        LawError: a law is broken, or the sampler raises something; the message names the class, the law and, where one
            is known, the document.
    """
    batch, _ = documents(graph)
    with blaming(sampler, "the batch"):  # a tensor too large for memory raises where one looks at it
        answer: Any = sampler(graph)
        offence = _form(answer, batch)
        if offence:
            raise LawError(sampler, "it answers with edges and weights", "the batch", offence)
        edge_index, edge_weight = answer
        for law, wrong in broken(edge_index, edge_weight, batch, both_ways):
            if bool(wrong.any()):
                number = int(wrong.nonzero()[0, 0])
                row = int(edge_index[0, number])
                where = document_name(graph, int(batch[row])) if 0 <= row < batch.numel() else "the batch"
                raise LawError(sampler, law, where, in_words(number, edge_index, edge_weight))
    return edge_index, edge_weight


def _form(answer: Any, batch: Tensor) -> str | None:
    """Return what is wrong with the kind and shape of an answer, in words."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        return f"forward must return (edge_index, edge_weight), got {type(answer).__name__}"
    for name, x, kind, shape in (
        ("edge_index", answer[0], torch.int64, "[2, E]"), ("edge_weight", answer[1], torch.float32, "[E]"),
    ):  # fmt: skip
        if not isinstance(x, Tensor):
            return f"{name} must be a tensor, got {type(x).__name__}"
        if x.layout != torch.strided or x.is_nested:
            return f"{name} must be dense, got {'nested' if x.is_nested else x.layout}"
        if x.dtype != kind or x.device != batch.device:
            return f"{name} must be {kind} on {batch.device}, got {x.dtype} on {x.device}"
        if x.dim() != len(shape.split(",")) or (x.dim() == 2 and x.size(0) != 2):
            return f"{name} must have the shape {shape}, got {list(x.shape)}"
    edges, weights = answer[0].size(1), answer[1].numel()
    return None if edges == weights else f"there are {edges} edges and {weights} weights"
