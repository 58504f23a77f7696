"""Reading order: each token knows the next one."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.backbone import load_tokenizer
from socialgraph.edges.edge_sampler import EdgeSampler
from socialgraph.edges.layout import documents

#: what it costs to cut behind these tokens
PUNCTUATION = {".": 1.0, "?": 1.0, "!": 1.0, ",": 2.0}


class ReadingOrder(EdgeSampler):
    """The text as a chain: i and i + 1 are friends, and punctuation makes their friendship weak.

    The weight of a tie is what it costs to cut it, as decided by the token before it. With
    :class:`~socialgraph.partition.Blocks` this gives the blocks of CogLTX (Ming Ding, Chang Zhou, Hongxia Yang and Jie
    Tang, NeurIPS 2020) and KeyB. Taken from it: the costs. Different here: no cost for line breaks, which a BERT's word
    pieces do not have.

    Args:
        backbone: whose tokenizer, see :func:`socialgraph.backbone.load_tokenizer`.
        costs: weight of the tie behind each of these word pieces; one that the tokenizer does not know is left out.
        otherwise: weight behind any other word piece.

    Raises:
        CheckpointError: the backbone has no tokenizer.
    """

    cost: Tensor

    def __init__(
        self, backbone: str = "minilm", costs: Mapping[str, float] = PUNCTUATION, otherwise: float = 8.0
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.costs = dict(costs)
        self.otherwise = otherwise
        vocabulary = load_tokenizer(backbone).get_vocab()
        cost = torch.full((max(vocabulary.values()) + 1,), otherwise)
        for piece in costs.keys() & vocabulary.keys():
            cost[vocabulary[piece]] = costs[piece]
        self.register_buffer("cost", cost)

    def forward(self, graph: Data) -> tuple[Tensor, Tensor]:
        """Return ``edge_index [2, E]`` and ``edge_weight [E]``: of a document of L tokens, 2 (L - 1) edges."""
        batch, _ = documents(graph)
        node = torch.arange(batch.numel(), device=batch.device)
        left = node[:-1][batch[:-1] == batch[1:]]
        row, col = torch.cat([left, left + 1]), torch.cat([left + 1, left])
        order = torch.argsort(2 * row + (col > row))
        weight = self.cost[graph.input_ids[left]].repeat(2)
        return torch.stack([row, col])[:, order], weight[order]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backbone!r}, costs={self.costs}, otherwise={self.otherwise})"
