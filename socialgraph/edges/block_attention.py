"""Rules between blocks of consecutive tokens: whole blocks hear whole blocks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges.draws import HASH_RANGE, draw_key, node_hashes, pair_hash
from socialgraph.edges.hubs import Hubs
from socialgraph.edges.layout import documents, positions
from socialgraph.edges.sparse import Hears, Rule
from socialgraph.errors import OptionError


def blocks(graph: Data, size: int) -> tuple[Tensor, Tensor]:
    """Return each node's block within its document, ``[N]``, and the last block of each document, ``[B]``."""
    batch, ptr = documents(graph)
    last = torch.div(ptr.diff() - 1, size, rounding_mode="floor").clamp(min=0)
    return positions(batch, ptr) // size, last


def check_block(size: int) -> int:
    """Return the size of a block.

    Raises:
        OptionError: it is below 1.
    """
    if size < 1:
        raise OptionError(f"the block size must be at least 1, got {size}")
    return size


class BlockWindow(Rule):
    """A block hears itself and the two beside it.

    Args:
        block: tokens of a block; the last one of a document may be shorter.

    Raises:
        OptionError: block < 1.
    """

    def __init__(self, block: int = 64) -> None:
        super().__init__()
        self.block = check_block(block)

    def forward(self, graph: Data) -> Hears:
        """Return whose blocks are neighbours or the same."""
        block, _ = blocks(graph, self.block)

        def hears(i: Tensor, j: Tensor) -> Tensor:
            return (block[i] - block[j]).abs_() <= 1

        return hears


class BlockHubs(Hubs):
    """All nodes of a document's first and of its last block are hubs.

    Args:
        block: tokens of a block.

    Raises:
        OptionError: block < 1.
    """

    def __init__(self, block: int = 64) -> None:
        super().__init__()
        self.block = check_block(block)

    def hubs(self, graph: Data) -> Tensor:
        """Return the nodes of the first and the last blocks."""
        batch, _ = documents(graph)
        block, last = blocks(graph, self.block)
        return (block == 0) | (block == last[batch])


class RandomBlocks(Rule):
    """A block hears a few random blocks, neither its neighbours nor a first or last block. The others need not hear it.

    Which ones is a hash of (seed, ``draw_key`` of the document, listening block, heard block): the smallest hashes win,
    ties go to the lower block. So they are the same in any batch and on any device.

    Args:
        block: tokens of a block.
        amount: random blocks that each block hears, or all there are.
        seed: of the choice.

    Raises:
        OptionError: block < 1 or amount < 0.
    """

    def __init__(self, block: int = 64, amount: int = 3, seed: int = 0) -> None:
        super().__init__()
        if amount < 0:
            raise OptionError(f"the amount of random blocks must be at least 0, got {amount}")
        self.block = check_block(block)
        self.amount = amount
        self.seed = seed
        self.key = draw_key(seed, torch.tensor([]), torch.tensor([]))

    def forward(self, graph: Data) -> Hears:
        """Return whose blocks drew whose."""
        batch, _ = documents(graph)
        block, last = blocks(graph, self.block)
        amount = int(last.max()) + 1 if last.numel() else 0
        number = torch.arange(amount, device=last.device)
        key = graph.draw_key ^ self.key
        listens, heard = node_hashes(key[:, None], number)
        coin = pair_hash(listens[:, :, None], heard[:, None, :])  # [B, blocks, blocks]
        near = (number[:, None] - number).abs() <= 1
        hub = (number == 0) | (number >= last[:, None])  # and what lies behind the end
        coin = coin.masked_fill(near | hub[:, None, :], HASH_RANGE)
        best, place = coin.sort(stable=True)
        drawn = torch.zeros_like(coin, dtype=torch.bool)
        drawn.scatter_(2, place[..., : self.amount], best[..., : self.amount] < HASH_RANGE)
        row = (batch * amount + block) * amount  # where a listener's row begins in the flat table
        table = drawn.flatten()

        def hears(i: Tensor, j: Tensor) -> Tensor:
            return table[row[i] + block[j]]

        return hears
