"""KeyB: only the blocks that matter for the query are read."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from socialgraph.data.graph import circle_document, circle_score, circle_size
from socialgraph.errors import check_choice
from socialgraph.nn.hub_ranker import evaluating
from socialgraph.nn.maxp import VanillaBERT
from socialgraph.nn.parade import PARADE
from socialgraph.nn.selection import fitting, join, select, truncate

SELECTS = ("bm25", "bert")


class KeyB(VanillaBERT):
    """The best blocks for the query, joined in the order of the text, read by BERT as one passage.

    Minghan Li and Eric Gaussier, "KeyBLD: Selecting Key Blocks with Local Pre-ranking for Long Document Information
    Retrieval", SIGIR 2021, and with Diana Nicoleta Popa, Johan Chagnon and Yagmur Gizem Cinar, "The Power of Selecting
    Key Blocks with Local Pre-ranking for Long Document Information Retrieval", TOIS 2023, where BERT itself selects
    (BinB). Taken from it: blocks (:class:`~socialgraph.partition.Blocks`), the two ways to select them, their order.
    The circles of the graph are the blocks. They are taken from the best on; the first that does not fit is cut, as in
    the authors' code, and ends it. Decided here, where they leave it open: no [SEP] stands between blocks.

    Args:
        select: "bm25": the graph's ``circle_score`` selects; "bert": the model's own BERT and linear layer score every
            block, without gradient and without dropout.
        length: tokens of ``[CLS] query [SEP] blocks [SEP]`` at most, see :class:`VanillaBERT`.
        bert: arguments of :class:`~socialgraph.nn.BertRanker`.

    Raises:
        OptionError: an unknown way to select, or a length that leaves no room for text.
    """

    def __init__(self, select: str = "bm25", length: int = 512, **bert: Any) -> None:
        super().__init__(length, **bert)
        check_choice("select", select, SELECTS)
        self.select = select

    def scores(self, graph: Data) -> Tensor:
        """Return the score of each document, ``[B]``; without a block it is the linear layer's bias.

        Args:
            graph: with the attributes that :func:`~socialgraph.nn.circle_sequences` names, and with ``circle_score`` if
                that selects.

        Raises:
            InputError: the graph has no ``circle_score``, or a query leaves no room for text.
        """
        value = circle_score(graph) if self.select == "bm25" else self.glance(graph)
        read = fitting(value, circle_size(graph), circle_document(graph), self.room(graph))
        chosen = select(graph, read > 0)
        return super().scores(join(truncate(chosen, read[read > 0])))

    def glance(self, graph: Data) -> Tensor:
        """Return what BERT as it is now thinks of each block, ``[C]``: no gradient, no dropout."""
        with evaluating(self):
            return self.circle_scores(graph)


class KeyBPARADE(PARADE):
    """PARADE over the best passages for the query: KeyB(PARADE5) with five.

    Minghan Li and Eric Gaussier, see :class:`KeyB`. Taken from it: the number of passages, and BM25, which selects them
    (the graph's ``circle_score``). The passages stay in the order of the text.

    Args:
        passages: how many passages of each document are read.
        readout: see :class:`~socialgraph.nn.PARADE`.
        bert: arguments of :class:`~socialgraph.nn.BertRanker`.

    Raises:
        OptionError: an option out of its range.
    """

    def __init__(self, passages: int = 5, readout: str = "transformer", **bert: Any) -> None:
        super().__init__(readout, passages, **bert)
