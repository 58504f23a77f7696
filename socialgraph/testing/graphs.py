"""Hard graphs: what partitions are checked on."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from socialgraph.testing.documents import document, some_statistics


class Graph(NamedTuple):
    """What a partition is given: one document or a batch of them."""

    name: str
    edge_index: Tensor
    batch: Tensor
    batch_size: int
    edge_weight: Tensor | None
    query: tuple[int, ...] = (13, 17)  # word pieces: the fourth word of every ten, and the eighth
    words: Data | None = None  # of real documents; None: made up
    first_stage: bool = True  # whether there are scores of a first stage

    def data(self) -> Data:
        """Return the documents' words, query and weights, the same for a document alone and in a batch."""
        if self.words is not None:
            return self.words
        sizes = torch.bincount(self.batch, minlength=self.batch_size).tolist()
        made = [
            document([10 + i % 10 for i in range(size)], list(self.query), [float(1 + i % 7) for i in range(size)])
            for size in sizes
        ]
        for size, one in zip(sizes, made, strict=True) if self.first_stage else ():
            score = math.nan if size % 3 == 1 else size / 2  # some are no candidates
            one.first_stage_score = torch.tensor([score], dtype=torch.float64)
        together = Batch.from_data_list(made).to(self.batch.device)
        together.statistics = copy.deepcopy(some_statistics())  # a partition may write into them
        return together

    def documents(self) -> list[Graph]:
        """Return each document as a graph of its own."""
        graphs = []
        for number in range(self.batch_size):
            node = (self.batch == number).nonzero().flatten()
            edge = self.batch[self.edge_index[0]] == number
            edges = self.edge_index[:, edge] - (int(node[0]) if node.numel() else 0)
            weight = None if self.edge_weight is None else self.edge_weight[edge]
            alone = torch.zeros_like(node)
            name = f"{self.name}, document {number} alone"
            graphs.append(Graph(name, edges, alone, 1, weight, self.query, first_stage=self.first_stage))
        return graphs

    def to(self, device: torch.device) -> Graph:
        """Return a copy of the graph on a device."""
        weight = None if self.edge_weight is None else self.edge_weight.to(device, copy=True)
        edge_index, batch = (x.to(device, copy=True) for x in (self.edge_index, self.batch))
        return self._replace(edge_index=edge_index, batch=batch, edge_weight=weight)


def one_document(name: str, size: int, pairs: Iterable[tuple[int, int]], equal: bool = False) -> Graph:
    """Return the graph of these pairs (i < j), with random weights in (0, 1] or equal ones."""
    pair = torch.tensor(sorted(set(pairs)), dtype=torch.long).reshape(-1, 2).T
    weight = 1.0 - torch.rand(pair.size(1), generator=torch.Generator().manual_seed(size))
    weight = torch.full_like(weight, 0.5) if equal else weight
    edge_index = torch.cat([pair, pair.flip(0)], 1)
    order = torch.argsort(edge_index[0] * size + edge_index[1])
    return Graph(name, edge_index[:, order], torch.zeros(size, dtype=torch.long), 1, weight.repeat(2)[order])


def join(name: str, graphs: Sequence[Graph]) -> Graph:
    """Return documents as one batch."""
    device = graphs[0].batch.device
    sizes = torch.tensor([graph.batch.numel() for graph in graphs], device=device)
    starts = sizes.cumsum(0) - sizes
    edge_index = torch.cat([graph.edge_index + start for graph, start in zip(graphs, starts, strict=True)], 1)
    weight = torch.cat([torch.empty(0, device=device) if g.edge_weight is None else g.edge_weight for g in graphs])
    batch, query, first_stage = torch.repeat_interleave(sizes), graphs[0].query, graphs[0].first_stage
    return Graph(name, edge_index, batch, len(graphs), weight, query, first_stage=first_stage)


def hard_graphs(device: torch.device) -> list[Graph]:
    """Return the graphs that partitions are checked on."""

    def clique(nodes: Iterable[int]) -> list[tuple[int, int]]:
        nodes = list(nodes)
        return [(i, j) for i in nodes for j in nodes if i < j]

    def chance(size: int, density: float) -> list[tuple[int, int]]:
        hit = torch.rand(size, size, generator=torch.Generator().manual_seed(size)) < density
        return [(i, j) for i, j in hit.triu(1).nonzero().tolist()]

    empty = one_document("empty", 0, [])
    graphs = [
        empty,
        one_document("one node", 1, []),
        one_document("no edges", 5, []),
        one_document("one edge", 2, [(0, 1)]),
        one_document("one edge among strangers", 6, [(2, 5)]),
        one_document("path", 10, [(i, i + 1) for i in range(9)]),
        one_document("star", 9, [(i, 8) for i in range(8)]),
        one_document("star of 150", 150, [(min(i, 70), max(i, 70)) for i in range(150) if i != 70]),
        one_document("complete", 7, clique(range(7)), equal=True),
        one_document("two cliques", 10, clique(range(5)) + clique(range(5, 10))),
        one_document("two cliques, interleaved", 10, clique(range(0, 10, 2)) + clique(range(1, 10, 2)), equal=True),
        one_document("two cliques that share a node", 9, clique(range(5)) + clique(range(4, 9))),
        one_document("pairs", 40, [(i, i + 20) for i in range(20)]),
        one_document("random, sparse", 60, chance(60, 0.03)),
        one_document("random", 120, chance(120, 0.07)),
        one_document("random, dense", 50, chance(50, 0.6)),
        one_document("random, equal weights", 55, chance(55, 0.2), equal=True),
    ]
    batches = [
        join("batch of two empty documents", [empty, empty]),
        join("batch of unequal documents", [*graphs[:9], empty, *graphs[:8:-1], empty]),
    ]
    return [graph.to(device) for graph in graphs + batches]


def equal_friends(max_size: int, device: torch.device) -> Graph:
    """Return 40 documents whose pairs are friends by chance, with equal weights: more friends than fit in a circle."""
    draw = torch.Generator().manual_seed(0)
    graphs = []
    for size in range(40, 80) if max_size < 32 else range(160, 200):
        hit = torch.rand(size, size, generator=draw).triu(1) > 0.1
        edge_index = (hit | hit.T).nonzero().T
        weight = torch.full((edge_index.size(1),), 0.5)
        graphs.append(Graph("", edge_index, torch.zeros(size, dtype=torch.long), 1, weight))
    return join("random friends of equal weight", graphs).to(device)
