"""Spectral clustering: neighbours in the space of the graph's slowest waves."""

from __future__ import annotations

import warnings

import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from socialgraph.partition.communities import Communities, disjoint, library


class Spectral(Communities):
    """Cuts a document in ``k`` clusters whose normalised cut is small: little weight leaves a cluster for its size.

    Jianbo Shi and Jitendra Malik, "Normalized Cuts and Image Segmentation", IEEE Transactions on Pattern Analysis and
    Machine Intelligence 22(8), 2000 (the cut and its eigenvectors); Anil Damle, Victor Minden and Lexing Ying, "Simple,
    direct and efficient multi-way spectral clustering", Information and Inference 8(1), 2019 (from eigenvectors to
    clusters, without random starts). Through scikit-learn, on sparse edges, with eigenvectors by LOBPCG.

    Unlike friend circles, all words with a friend are kept and each has one circle. A document of n such words is cut
    in at most n / 2 clusters, and where it falls into more pieces than that, some of them share a cluster. Eigenvectors
    are floats: another machine may decide close cases otherwise.

    Args:
        k: number of clusters, and of circles at most.
        max_size: members of a circle at most; see :class:`Communities`.
        seed: of the vectors with which the search for eigenvectors begins.

    Raises:
        OptionError: see :class:`Communities`, or scikit-learn is missing.
    """

    def __init__(self, k: int = 16, max_size: int = 128, seed: int = 0) -> None:
        super().__init__(k, max_size)
        self.seed = seed

    def communities(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        """Return the clusters; see :meth:`Communities.communities`."""
        cluster = library("sklearn.cluster", self, "scikit-learn")
        parts = min(self.k, num_nodes // 2)
        if parts == 1:
            return disjoint(torch.zeros(num_nodes))
        weight = torch.ones(edge_index.size(1)) if edge_weight is None else edge_weight
        affinity = csr_matrix((weight.double().numpy(), edge_index.numpy()), shape=(num_nodes, num_nodes))
        with warnings.catch_warnings():
            # A graph in pieces is nothing unusual here, and eigenvectors need not be exact to tell clusters apart.
            warnings.simplefilter("ignore", UserWarning)
            label = cluster.spectral_clustering(
                affinity, n_clusters=parts, eigen_solver="lobpcg", assign_labels="cluster_qr", random_state=self.seed
            )
        return disjoint(torch.from_numpy(label))
