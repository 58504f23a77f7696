"""Longformer's edges."""

from __future__ import annotations

from socialgraph.edges.hubs import QueryHubs
from socialgraph.edges.sliding_window import SlidingWindow
from socialgraph.edges.sparse import SparseEdges


class LongformerEdges(SparseEdges):
    """A sliding window, and with ``query`` global attention for the query: "Longformer" and "LongformerGlobal".

    Beltagy, Peters and Cohan, "Longformer: The Long-Document Transformer", arXiv:2004.05150, 2020. Taken from it: the
    sliding window, and global attention that a task chooses, here as hubs. Different here: every layer has the same
    window and no window is dilated; without ``query`` nobody is a hub, [CLS] neither.

    Args:
        window: tokens of the window, half of them on each side.
        query: [CLS], the query and its [SEP] hear everybody and are heard by everybody.

    Raises:
        OptionError: window < 2.
    """

    def __init__(self, window: int = 128, query: bool = False) -> None:
        super().__init__([SlidingWindow(window), *([QueryHubs()] if query else [])])
