"""BigBird's edges."""

from __future__ import annotations

from socialgraph.edges.block_attention import BlockHubs, BlockWindow, RandomBlocks
from socialgraph.edges.sparse import SparseEdges


class BigBirdEdges(SparseEdges):
    """Neighbouring blocks, the first and the last block as hubs, and random blocks.

    Zaheer et al., "Big Bird: Transformers for Longer Sequences", NeurIPS 2020. Taken from it: the three parts, in
    blocks, with hubs among the tokens there are (its internal construction, ITC). Different here: a document has one
    draw of random blocks, by hash, for all layers and heads and all epochs.

    Args:
        block: tokens of a block.
        random: random blocks that each block hears.
        seed: of the random blocks.

    Raises:
        OptionError: block < 1 or random < 0.
    """

    def __init__(self, block: int = 64, random: int = 3, seed: int = 0) -> None:
        super().__init__([BlockWindow(block), BlockHubs(block), RandomBlocks(block, random, seed)])
