"""Hard graphs and small documents for tests, built by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data


class Graph(NamedTuple):
    """An undirected graph without loops: both directions of each edge, sorted by (row, col)."""

    edge_index: Tensor  # [2, E] int64
    num_nodes: int
    edge_weight: Tensor  # [E] float32, the same in both directions

    def dense(self) -> tuple[np.ndarray, np.ndarray]:
        """The adjacency matrix [n, n] of booleans and the matrix of weights [n, n]."""
        adjacency = np.zeros((self.num_nodes, self.num_nodes), dtype=bool)
        weight = np.zeros((self.num_nodes, self.num_nodes))
        row, col = self.edge_index.numpy()
        adjacency[row, col] = True
        weight[row, col] = self.edge_weight.numpy()
        return adjacency, weight


def from_dense(adjacency: np.ndarray, weight: np.ndarray) -> Graph:
    """The graph of a symmetric matrix; only its upper triangle is read."""
    upper = np.triu(adjacency, 1)
    strength = np.triu(weight, 1)
    row, col = (upper | upper.T).nonzero()  # numpy lists them by row, then by column
    values = (strength + strength.T)[row, col]
    return Graph(torch.from_numpy(np.stack([row, col])), len(adjacency), torch.from_numpy(values).float())


def from_pairs(num_nodes: int, pairs: Iterable[tuple[int, int]], seed: int = 0) -> Graph:
    """The graph with these edges (each given once, any order) and random weights in (0, 1]."""
    adjacency = np.zeros((num_nodes, num_nodes), dtype=bool)
    for i, j in pairs:
        adjacency[min(i, j), max(i, j)] = True
    return from_dense(adjacency, weights("real", num_nodes, np.random.default_rng(seed)))


def weights(kind: str, num_nodes: int, rng: np.random.Generator) -> np.ndarray:
    """Random weights [n, n] in (0, 1] (but `any`).

    `real`: all different. `equal`: all one. `levels`: three values, so ties everywhere. `close`: neighbouring
    float32 numbers, which any rounding would make equal. `any`: finite numbers of both signs and many sizes.
    """
    shape = (num_nodes, num_nodes)
    if kind == "real":
        return 1 - rng.random(shape)
    if kind == "equal":
        return np.ones(shape)
    if kind == "levels":
        return rng.integers(1, 4, shape) / 4
    if kind == "close":
        return 0.75 + rng.integers(0, 4, shape) * 2.0**-24
    if kind == "any":
        return rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
    raise ValueError(kind)


def random_graph(num_nodes: int, density: float, seed: int | Sequence[int], kind: str = "real") -> Graph:
    """Every pair is an edge with probability `density`."""
    rng = np.random.default_rng(seed)
    return from_dense(rng.random((num_nodes, num_nodes)) < density, weights(kind, num_nodes, rng))


def clique(nodes: Iterable[int]) -> list[tuple[int, int]]:
    """All pairs of these nodes."""
    nodes = list(nodes)
    return [(i, j) for i in nodes for j in nodes if i < j]


def empty() -> Graph:
    """No node at all: an empty document."""
    return from_pairs(0, [])


HARD: dict[str, Graph] = {
    "empty": empty(),
    "one node": from_pairs(1, []),
    "no edges": from_pairs(5, []),
    "one edge": from_pairs(2, [(0, 1)]),
    "one edge among strangers": from_pairs(6, [(2, 5)]),
    "complete": from_pairs(7, clique(range(7))),
    "complete, larger than a circle": from_pairs(20, clique(range(20))),
    "star": from_pairs(9, [(0, i) for i in range(1, 9)]),
    "star, last node in the middle": from_pairs(9, [(8, i) for i in range(8)]),
    "star, larger than a circle": from_pairs(200, [(100, i) for i in range(200) if i != 100]),
    "two stars": from_pairs(12, [(5, i) for i in range(5)] + [(11, i) for i in range(6, 11)]),
    "two stars whose centres are friends": from_pairs(
        12, [(5, i) for i in range(5)] + [(11, i) for i in range(6, 11)] + [(5, 11)]
    ),
    "two stars that share their leaves": from_pairs(8, [(c, i) for c in (0, 7) for i in range(1, 7)]),
    "path": from_pairs(10, [(i, i + 1) for i in range(9)]),
    "ring": from_pairs(9, [(i, (i + 1) % 9) for i in range(9)]),
    "two equal cliques": from_pairs(10, clique(range(5)) + clique(range(5, 10))),
    "two equal cliques, interleaved": from_pairs(10, clique(range(0, 10, 2)) + clique(range(1, 10, 2))),
    "two cliques that share a node": from_pairs(9, clique(range(5)) + clique(range(4, 9))),
    "windmill": from_pairs(9, [(0, i) for i in range(1, 9)] + [(i, i + 1) for i in range(1, 9, 2)]),
    "bipartite": from_pairs(8, [(i, j) for i in range(4) for j in range(4, 8)]),
    "matching": from_pairs(40, [(i, i + 20) for i in range(20)]),
    "random, sparse": random_graph(60, 0.03, 1),
    "random, as in the paper": random_graph(150, 0.07, 2),
    "random, dense": random_graph(60, 0.6, 3),
    "random, with ties": random_graph(60, 0.3, 4, "levels"),
}


def collate(graphs: Sequence[Graph]) -> tuple[Tensor, Tensor, int, Tensor]:
    """Many graphs as one: (edge_index, batch, batch_size, edge_weight), node ids counted on."""
    sizes = torch.tensor([graph.num_nodes for graph in graphs], dtype=torch.int64)
    starts = torch.cumsum(sizes, 0) - sizes
    edge_index = [graph.edge_index + start for graph, start in zip(graphs, starts, strict=True)]
    return (
        torch.cat([torch.zeros(2, 0, dtype=torch.int64), *edge_index], 1),
        torch.repeat_interleave(torch.arange(len(graphs)), sizes),
        len(graphs),
        torch.cat([torch.zeros(0), *(graph.edge_weight for graph in graphs)]),
    )


def document(
    input_ids: Sequence[int],
    query_ids: Sequence[int] = (),
    tfidf: Sequence[float] | None = None,
    draw_key: int = 0,
) -> Data:
    """A (query, document) pair as patterns and sampler read it; tf-idf is 1 everywhere if not given."""
    return Data(
        input_ids=torch.tensor(list(input_ids), dtype=torch.int64),
        tfidf=torch.tensor([1.0] * len(input_ids) if tfidf is None else list(tfidf), dtype=torch.float64),
        query_ids=torch.tensor(list(query_ids), dtype=torch.int64),
        query_length=torch.tensor([len(query_ids)]),
        draw_key=torch.tensor([draw_key], dtype=torch.int64),
        num_nodes=len(input_ids),
    )


def random_document(length: int, seed: int, vocabulary: int = 40, query_length: int = 4, draw_key: int = 0) -> Data:
    """Random words, a random query that matches some of them, and tf-idf weights as skewed as real ones."""
    rng = np.random.default_rng(seed)
    words = rng.integers(10, 10 + vocabulary, length).tolist()
    query = rng.integers(10, 10 + vocabulary, query_length).tolist()
    return document(words, query, rng.gamma(1.5, 2.0, length).tolist(), draw_key)
