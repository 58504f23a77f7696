"""QDS-Transformer's edges."""

from __future__ import annotations

from socialgraph.edges.hubs import QueryHubs, SentenceHubs
from socialgraph.edges.sliding_window import SlidingWindow
from socialgraph.edges.sparse import SparseEdges


class QDSEdges(SparseEdges):
    """A sliding window, with the query and the beginnings of the sentences as hubs.

    Jiang, Xiong, Lee and Wang, "Long Document Ranking with Query-Directed Sparse Transformer", Findings of EMNLP 2020.
    Taken from it: local, sentence and query attention together, hubs in both directions as in its released code.
    Different here: no token is put before a sentence, its first word piece is the hub; sentences are cut at marks, not
    by a trained splitter.

    Args:
        window: tokens of the window, half of them on each side.
        backbone: see :class:`~socialgraph.edges.hubs.SentenceHubs`.

    Raises:
        OptionError: window < 2.
        CheckpointError: the backbone has no tokenizer.
    """

    def __init__(self, window: int = 128, backbone: str = "minilm") -> None:
        super().__init__([SlidingWindow(window), QueryHubs(), SentenceHubs(backbone)])
