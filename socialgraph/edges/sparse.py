"""Edges by rule: which node attends to which in Longformer, QDS-Transformer and BigBird."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges.edge_sampler import EdgeSampler
from socialgraph.edges.layout import documents
from socialgraph.edges.rules import (
    AttendsTo,
    BlockHubs,
    BlockWindow,
    QueryHubs,
    RandomBlocks,
    Rule,
    SentenceHubs,
    SlidingWindow,
)
from socialgraph.errors import OptionError


class SparseEdges(EdgeSampler):
    """The union of rules over joint graphs, whose nodes are ``[CLS] query [SEP] document [SEP]``.

    Args:
        rules: the rules; one of them is enough for an edge.

    Raises:
        OptionError: no rule.
    """

    #: pairs looked at at once
    block_size = 1 << 20

    def __init__(self, rules: Iterable[Rule]) -> None:
        super().__init__()
        self.rules = torch.nn.ModuleList(rules)
        if not len(self.rules):
            raise OptionError("sparse edges need at least one rule, got none")

    @torch.no_grad()
    def forward(self, graph: Data) -> tuple[Tensor, Tensor]:
        """Return the edges of a joint graph or of a batch of them.

        Args:
            graph: with ``input_ids``, ``segment`` and what the rules need.

        Returns:
            ``edge_index [2, E]`` from who is attended to (row 0) to who attends (row 1), without self-loops, sorted by
            row and column; and ``edge_weight [E]``, all 1.
        """
        batch, ptr = documents(graph)
        length = ptr.diff()[batch]
        rules: list[AttendsTo] = [rule(graph) for rule in self.rules]
        edges = [torch.empty(2, 0, dtype=torch.long, device=ptr.device)]
        rows = max(1, self.block_size // max(1, int(length.max()) if length.numel() else 0))
        for first in range(0, batch.numel(), rows):
            source = torch.arange(first, min(first + rows, batch.numel()), device=ptr.device)[:, None]
            place = torch.arange(int(length[source].max()), device=ptr.device)
            # places behind the end of a document are pairs with oneself, which no edge joins
            target = torch.where(place < length[source], ptr[batch[source]] + place, source)
            pair = rules[0](target, source)
            for rule in rules[1:]:
                pair = pair | rule(target, source)
            row, column = (pair & (target != source)).nonzero(as_tuple=True)
            edges.append(torch.stack([source[row, 0], target[row, column]]))
        edge_index = torch.cat(edges, 1)
        return edge_index, torch.ones(edge_index.size(1), device=ptr.device)

    def hubs(self, graph: Data) -> Tensor:
        """Return the nodes that are a hub by some rule, ``[N]`` bool."""
        return torch.stack([cast(Rule, rule).hubs(graph) for rule in self.rules]).any(0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.rules))})"


class LongformerEdges(SparseEdges):
    """A sliding window, and with ``query`` global attention for the query: "Longformer" and "LongformerGlobal".

    Beltagy, Peters and Cohan, "Longformer: The Long-Document Transformer", arXiv:2004.05150, 2020. Taken from it: the
    sliding window, and global attention that a task chooses, here as hubs. Different here: every layer has the same
    window and no window is dilated; without ``query`` nobody is a hub, [CLS] neither.

    Args:
        window: tokens of the window, half of them on each side.
        query: [CLS], the query and its [SEP] attend to everybody, and everybody to them.

    Raises:
        OptionError: window < 2.
    """

    def __init__(self, window: int = 128, query: bool = False) -> None:
        super().__init__([SlidingWindow(window), *([QueryHubs()] if query else [])])


class QDSEdges(SparseEdges):
    """A sliding window, with the query and the beginnings of the sentences as hubs.

    Jiang, Xiong, Lee and Wang, "Long Document Ranking with Query-Directed Sparse Transformer", Findings of EMNLP 2020.
    Taken from it: local, sentence and query attention together, hubs in both directions as in its released code.
    Different here: no token is put before a sentence, its first word piece is the hub; sentences are cut at marks, not
    by a trained splitter.

    Args:
        window: tokens of the window, half of them on each side.
        backbone: see :class:`~socialgraph.edges.rules.SentenceHubs`.

    Raises:
        OptionError: window < 2.
        CheckpointError: the backbone has no tokenizer.
    """

    def __init__(self, window: int = 128, backbone: str = "minilm") -> None:
        super().__init__([SlidingWindow(window), QueryHubs(), SentenceHubs(backbone)])


class BigBirdEdges(SparseEdges):
    """Neighbouring blocks, the first and the last block as hubs, and random blocks.

    Zaheer et al., "Big Bird: Transformers for Longer Sequences", NeurIPS 2020. Taken from it: the three parts, in
    blocks, with hubs among the tokens there are (its internal construction, ITC). Different here: a document has one
    draw of random blocks, by hash, for all layers and heads and all epochs.

    Args:
        block: tokens of a block.
        random: random blocks that each block attends to.
        seed: of the random blocks.

    Raises:
        OptionError: block < 1 or random < 0.
    """

    def __init__(self, block: int = 64, random: int = 3, seed: int = 0) -> None:
        super().__init__([BlockWindow(block), BlockHubs(block), RandomBlocks(block, random, seed)])
