"""Hubs: a few hear everybody and are heard by everybody."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.backbone import load_tokenizer
from socialgraph.edges.layout import documents
from socialgraph.edges.sparse import Hears, Rule


class Hubs(Rule):
    """Base of rules by which some nodes are hubs: :meth:`hubs` says which."""

    def forward(self, graph: Data) -> Hears:
        """Return whose pair has a hub in it."""
        hub = self.hubs(graph)

        def hears(i: Tensor, j: Tensor) -> Tensor:
            return hub[i] | hub[j]

        return hears


class QueryHubs(Hubs):
    """[CLS], the query and the [SEP] after it are hubs."""

    def hubs(self, graph: Data) -> Tensor:
        """Return where ``graph.segment`` is 0."""
        segment: Tensor = graph.segment
        return segment == 0


class SentenceHubs(Hubs):
    """The first word piece of every sentence of the document is a hub.

    A sentence begins with the document, and after ``.``, ``?`` or ``!``; further such marks (an ellipsis) begin none.

    Args:
        backbone: whose word pieces the marks are, see :func:`socialgraph.backbone.load_tokenizer`.

    Raises:
        CheckpointError: the backbone has no tokenizer.
    """

    marks: Tensor

    def __init__(self, backbone: str = "minilm") -> None:
        super().__init__()
        self.backbone = backbone
        tokenizer = load_tokenizer(backbone)
        known = set(tokenizer.convert_tokens_to_ids([".", "?", "!"])) - {tokenizer.unk_token_id}
        self.register_buffer("marks", torch.tensor(sorted(known), dtype=torch.long), persistent=False)

    def hubs(self, graph: Data) -> Tensor:
        """Return the sentences' beginnings, from ``input_ids`` and ``segment``; the last [SEP] is none."""
        batch, ptr = documents(graph)
        mark = torch.isin(graph.input_ids, self.marks)
        # a document's first node is its [CLS], so nobody asks for the node before the first
        begins = mark.roll(1) | (graph.segment.roll(1) == 0)
        node = torch.arange(batch.numel(), device=batch.device)
        return (graph.segment == 1) & begins & ~mark & (node < ptr[batch + 1] - 1)
