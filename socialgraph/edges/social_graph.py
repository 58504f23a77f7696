"""A social graph whose edges are drawn where somebody looks."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch_geometric.data import Data

from socialgraph.edges.affinity import Affinity, LowRank
from socialgraph.edges.exact_rows import ExactRows, by_device
from socialgraph.edges.filtered_rows import FilteredRows
from socialgraph.edges.pairs import Pairs

#: bytes of the matrices that are drawn together: as much as fits in a processor's caches, or so much that a GPU
#: computes longer than it takes to tell it what
GROUP_BYTES = {"cpu": 1 << 25, "other": 1 << 30}
#: documents that are drawn together where rows are drawn one by one
ROWS_TOGETHER = 8


class SocialGraph(Pairs):
    """The social graph of a document or of a batch of them, which nobody stores.

    A coin is a function of names and places (:mod:`socialgraph.edges.coins`), so any row can be drawn without the
    others, and drawn again. :meth:`edges` draws all of them.

    Args:
        probability: P / mu of each pair, not yet clipped at 1.
        coin_key: one for each document, ``[B]``.
        compile: draw whole documents by one fused kernel; None: where the graph lies on a GPU. See
            :class:`SocialEdges`.
        dense_up_to: documents of at most so many tokens are drawn as a whole, see :attr:`ExactRows.as_matrix`.
        graph: the document or the batch, for partitions that look at words.
    """

    def __init__(
        self, probability: Affinity, coin_key: Tensor, compile: bool | None = False, dense_up_to: int = 4096,
        graph: Data | None = None,
    ) -> None:  # fmt: skip
        super().__init__(probability, coin_key)
        self.graph = graph
        self.fuse = self.ptr.is_cuda if compile is None else compile
        self.dense_up_to = dense_up_to

    def groups(self) -> Iterator[ExactRows]:
        """Walk over the documents that may have edges, in groups of similar length: at most twice the shortest."""
        room = by_device(GROUP_BYTES, self.ptr.device)
        length = self.ptr.diff()
        octave = torch.frexp((length - 1).clamp(min=0).double()).exponent
        for number in torch.unique(octave).tolist():
            document = (octave == number).nonzero().flatten()
            if number > 0:  # two tokens or more
                longest = int(length[document].max())
                as_matrix = longest <= self.dense_up_to
                amount = max(1, room // (longest + 1) ** 2) if as_matrix else ROWS_TOGETHER
                for part in torch.split(document, amount):
                    if isinstance(self.probability, LowRank):
                        yield FilteredRows(self, self.probability, part, as_matrix, self.fuse)
                    else:
                        yield ExactRows(self, part, as_matrix)

    def edges(self) -> tuple[Tensor, Tensor]:
        """Return all edges: ``edge_index [2, E]``, sorted by row and column, and ``edge_weight [E]``."""
        none = torch.empty(0, dtype=torch.long, device=self.ptr.device)
        rows, columns, groups = [none], [none], 0
        for group in self.groups():
            groups += 1
            for document, place, friends in group.every_row():
                row, column = friends.nonzero(as_tuple=True)
                rows.append(group.node[document[row], place[row]])
                columns.append(group.node[document[row], column])
        edge_index = torch.stack([torch.cat(rows), torch.cat(columns)])
        if groups > 1:
            edge_index = edge_index[:, torch.argsort(edge_index[0], stable=True)]
        return edge_index, self.weight(edge_index[0], edge_index[1])
