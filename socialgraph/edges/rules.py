"""Rules of attention: which node attends to which, for the edges of sparse transformers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.backbone import load_tokenizer
from socialgraph.described import Described
from socialgraph.edges.draws import HASH_RANGE, draw_key, node_hashes, pair_hash
from socialgraph.edges.layout import documents, positions
from socialgraph.errors import check_whole

#: (node ids i, node ids j) -> whether i attends to j, bool; both ids of a pair are of one document
AttendsTo = Callable[[Tensor, Tensor], Tensor]


class Rule(Described, torch.nn.Module):
    """Base of all rules. A rule is made for a graph first and asked about pairs of nodes then."""

    def forward(self, graph: Data) -> AttendsTo:
        """Return the answer to "does node i attend to node j?" for ids ``i`` and ``j`` that broadcast."""
        raise NotImplementedError

    def hubs(self, graph: Data) -> Tensor:
        """Return the nodes that attend to all and all to them, ``[N]`` bool; most rules have none."""
        return torch.zeros_like(graph.input_ids, dtype=torch.bool)


class SlidingWindow(Rule):
    """i attends to j where |i - j| <= size / 2: half of the window lies on each side.

    Args:
        size: tokens of the window, at least 2; of an odd size the middle token is i itself.

    Raises:
        OptionError: size < 2.
    """

    def __init__(self, size: int = 128) -> None:
        super().__init__()
        check_whole("window", size, 2)
        self.size = size

    def forward(self, graph: Data) -> AttendsTo:
        """Return who is near whom; the nodes of a document are consecutive, so their ids tell."""

        def attends_to(i: Tensor, j: Tensor) -> Tensor:
            return (i - j).abs_() <= self.size // 2

        return attends_to


class Hubs(Rule):
    """Base of rules by which some nodes are hubs: :meth:`hubs` says which."""

    def forward(self, graph: Data) -> AttendsTo:
        """Return whose pair has a hub in it."""
        hub = self.hubs(graph)

        def attends_to(i: Tensor, j: Tensor) -> Tensor:
            return hub[i] | hub[j]

        return attends_to


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


def blocks(graph: Data, size: int) -> tuple[Tensor, Tensor]:
    """Return each node's block within its document, ``[N]``, and the last block of each document, ``[B]``."""
    batch, ptr = documents(graph)
    last = torch.div(ptr.diff() - 1, size, rounding_mode="floor").clamp(min=0)
    return positions(batch, ptr) // size, last


class BlockWindow(Rule):
    """A block attends to itself and the two beside it.

    Args:
        block: tokens of a block; the last one of a document may be shorter.

    Raises:
        OptionError: block < 1.
    """

    def __init__(self, block: int = 64) -> None:
        super().__init__()
        check_whole("block", block, 1)
        self.block = block

    def forward(self, graph: Data) -> AttendsTo:
        """Return whose blocks are neighbours or the same."""
        block, _ = blocks(graph, self.block)

        def attends_to(i: Tensor, j: Tensor) -> Tensor:
            return (block[i] - block[j]).abs_() <= 1

        return attends_to


class BlockHubs(Hubs):
    """All nodes of a document's first and of its last block are hubs.

    Args:
        block: tokens of a block.

    Raises:
        OptionError: block < 1.
    """

    def __init__(self, block: int = 64) -> None:
        super().__init__()
        check_whole("block", block, 1)
        self.block = block

    def hubs(self, graph: Data) -> Tensor:
        """Return the nodes of the first and the last blocks."""
        batch, _ = documents(graph)
        block, last = blocks(graph, self.block)
        return (block == 0) | (block == last[batch])


class RandomBlocks(Rule):
    """A block attends to a few random blocks, neither its neighbours nor a first or last block; they need not to it.

    Which ones is a hash of (seed, ``draw_key`` of the document, both blocks): the smallest hashes win,
    ties go to the lower block. So they are the same in any batch and on any device.

    Args:
        block: tokens of a block.
        amount: random blocks that each block attends to, or all there are.
        seed: of the choice.

    Raises:
        OptionError: block < 1 or amount < 0.
    """

    def __init__(self, block: int = 64, amount: int = 3, seed: int = 0) -> None:
        super().__init__()
        check_whole("random", amount, 0)
        check_whole("block", block, 1)
        self.block = block
        self.amount = amount
        self.seed = seed
        self.key = draw_key(seed, torch.tensor([]), torch.tensor([]))

    def forward(self, graph: Data) -> AttendsTo:
        """Return whose blocks drew whose."""
        batch, _ = documents(graph)
        block, last = blocks(graph, self.block)
        amount = int(last.max()) + 1 if last.numel() else 0
        number = torch.arange(amount, device=last.device)
        key = graph.draw_key ^ self.key
        lower, higher = node_hashes(key[:, None], number)
        hashed = pair_hash(lower[:, :, None], higher[:, None, :])  # [B, blocks, blocks]
        near = (number[:, None] - number).abs() <= 1
        hub = (number == 0) | (number >= last[:, None])  # and what lies behind the end
        hashed = hashed.masked_fill(near | hub[:, None, :], HASH_RANGE)
        best, place = hashed.sort(stable=True)
        drawn = torch.zeros_like(hashed, dtype=torch.bool)
        drawn.scatter_(2, place[..., : self.amount], best[..., : self.amount] < HASH_RANGE)
        row = (batch * amount + block) * amount  # where a listener's row begins in the flat table
        table = drawn.flatten()

        def attends_to(i: Tensor, j: Tensor) -> Tensor:
            return table[row[i] + block[j]]

        return attends_to
