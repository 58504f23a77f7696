"""Spectral clustering against scikit-learn."""

import warnings

import networkx as nx
import pytest
from circles import circles_of, compact, grouped, ruled, some_graphs
from graphs import Graph

from socialgraph.partition.spectral import Spectral

cluster = pytest.importorskip("sklearn.cluster")


@some_graphs
def test_spectral(graph: Graph) -> None:
    nodes, g = compact(graph)
    parts = min(4, len(nodes) // 2)
    affinity = nx.to_scipy_sparse_array(g, nodelist=range(len(nodes)), format="csr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        label = cluster.SpectralClustering(
            parts, affinity="precomputed", assign_labels="cluster_qr", eigen_solver="lobpcg", random_state=0
        ).fit_predict(affinity)
    assert circles_of(Spectral(4, 9), [graph]) == [ruled(graph, grouped(nodes, label.tolist()), 4, 9)]
