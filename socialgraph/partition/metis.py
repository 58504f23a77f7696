"""METIS: parts of equal size with few friendships between them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils.sparse import index2ptr

from socialgraph.partition.communities import Communities, disjoint, library


class Metis(Communities):
    """Cuts a document in ``k`` parts of (almost) the same size so that little weight is cut.

    George Karypis and Vipin Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs", SIAM
    Journal on Scientific Computing 20(1), 1998. Through pymetis: by halves for up to 8 parts, else all parts at once.

    Unlike friend circles, all words with a friend are kept and each has one circle, whether it fits there or not. A
    document of n such words is cut in at most n / 2 parts. METIS takes whole numbers as weights: an edge counts 1 to
    1,000, in proportion to the document's strongest.

    Args:
        k: number of parts, and of circles at most.
        max_size: members of a circle at most; see :class:`Communities`.
        seed: of METIS's random choices.

    Raises:
        OptionError: see :class:`Communities`, or pymetis is missing.
    """

    def __init__(self, k: int = 16, max_size: int = 128, seed: int = 0) -> None:
        super().__init__(k, max_size)
        self.seed = seed

    def communities(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        """Return the parts; see :meth:`Communities.communities`."""
        pymetis = library("pymetis", self)
        parts = min(self.k, num_nodes // 2)
        weight = None
        if edge_weight is not None:
            share = edge_weight.double() / edge_weight.max().clamp(min=1e-30)
            weight = (1000 * share).round().clamp(min=1).long().tolist()
        ptr = index2ptr(edge_index[0], num_nodes)
        graph = pymetis.CSRAdjacency(ptr.tolist(), edge_index[1].tolist())
        options = pymetis.Options(seed=self.seed)
        _, label = pymetis.part_graph(parts, graph, eweights=weight, options=options)
        return disjoint(torch.tensor(label))
