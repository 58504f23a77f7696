"""K-core: the words that keep most friends when the lonely leave first."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from socialgraph.partition.communities import Communities, friends_of
from socialgraph.partition.ties import pair_hash


class KCore(Communities):
    """Dense cores, one after the other; cores share no edge, but may share nodes.

    The c-core of a graph is its largest part in which everybody has c friends or more. k times: the innermost core (the
    highest c that there is), or one connected piece of it, is a circle, and the edges inside leave the graph. A core is
    found by peeling: again and again the node with fewest friends left leaves (of equals, the one whose hash is
    highest; it is a function of the node and of the number of edges left). Where the core has more than
    ``max_size`` members, peeling goes on until so many are left.

    Stephen B. Seidman, "Network structure and minimum degree", Social Networks 5(3), 1983 (cores); David W. Matula and
    Leland L. Beck, "Smallest-last ordering and clustering and graph coloring algorithms", Journal of the ACM 30(3),
    1983 (peeling); Yuichi Asahiro, Kazuo Iwama, Hisao Tamaki and Takeshi Tokuyama, "Greedily finding a dense subgraph",
    Journal of Algorithms 34(2), 2000 (peeling on to a size). Different here: taking edges out between two cores.

    Like edge-level friend circles, circles overlap; unlike them nobody stands at the centre from the start. Weights are
    not looked at. (Clique percolation, the other well-known way to overlapping communities, lists all cliques: there
    are far too many in 2,048 words at the paper's sparsity.)

    Peeling is a loop over the words in Python: about half a second for 16 circles of a document of 2,048 words.

    Args:
        k: number of circles of a document at most.
        max_size: members of a circle at most.

    Raises:
        OptionError: see :class:`Communities`.
    """

    def communities(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        """Return the cores; see :meth:`Communities.communities`."""
        row, column = edge_index.numpy()
        nodes = [torch.empty(0, dtype=torch.long)]
        names = [torch.empty(0, dtype=torch.long)]
        while row.size and len(nodes) <= self.k:
            core = innermost_core(row, column, num_nodes)[-self.max_size :]
            names.append(torch.full((core.size,), len(nodes)))
            nodes.append(torch.from_numpy(core))
            inside = np.zeros(num_nodes, dtype=bool)
            inside[core] = True
            left = ~(inside[row] & inside[column])
            row, column = row[left], column[left]
        return torch.stack([torch.cat(nodes), torch.cat(names)])


def innermost_core(row: np.ndarray, column: np.ndarray, num_nodes: int) -> np.ndarray:
    """Return one connected piece of the innermost core, in the order in which its nodes are peeled.

    Args:
        row: one end of each edge in both directions, sorted, ``[E]``.
        column: the other end.
        num_nodes: number of nodes.
    """
    degrees, friends = friends_of(row, column, num_nodes)
    # Degree and hash in one whole number. The lower node as a tie-break would pull cores to the start of the document;
    # the same hashes in every document would pull them to the same places.
    tie = pair_hash(torch.tensor(row.size), torch.arange(num_nodes)).numpy()
    behind = np.empty(num_nodes, dtype=np.int64)
    behind[np.argsort(tie, kind="stable")] = np.arange(num_nodes - 1, -1, -1)
    rank = degrees * num_nodes + behind
    gone = np.iinfo(rank.dtype).max // 2  # stays far above all others, whatever is subtracted
    order = np.empty(num_nodes, dtype=np.int64)
    highest, start = -1, 0
    for turn in range(num_nodes):
        node = rank.argmin()
        degree = rank[node] // num_nodes
        if degree > highest:
            highest, start = degree, turn
        order[turn] = node
        rank[node] = gone
        rank[friends[node]] -= num_nodes
    core = order[start:]
    inside = np.zeros(num_nodes, dtype=bool)
    inside[core] = True
    among = inside[row] & inside[column]
    graph = csr_array((among[among], (row[among], column[among])), shape=(num_nodes, num_nodes))
    piece = connected_components(graph, directed=False)[1]
    return core[piece[core] == piece[core[-1]]]
