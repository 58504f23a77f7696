"""Graphs for tests of the page of a document."""

from __future__ import annotations

import torch
from torch_geometric.data import Batch

from socialgraph.data import compose, document_graph
from socialgraph.data.graph import connect, gather, weigh
from socialgraph.edges import DynamicDistance, SocialEdges, StaticCentrality, StaticDistance, coin_key
from socialgraph.partition import EdgeCircles, Windows


def social(sparsity=0.8) -> SocialEdges:
    return SocialEdges([StaticDistance(), StaticCentrality(), DynamicDistance()], {"static_distance": 2.0}, sparsity)


def one(length=70, circles=None, sparsity=0.8, passages=16, seed=0):
    """A graph of random words with everything that the page shows, and the edges that drew it."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 200, (length,), generator=generator)
    tfidf = torch.rand(length, generator=generator, dtype=torch.float64)
    query = ids[[length // 3, length // 2]] if length else torch.tensor([7])
    batch = Batch.from_data_list([document_graph(ids, query, coin_key(seed, "q", "d"), "q", "d", tfidf=tfidf)])
    edges = social(sparsity)
    weigh(batch, "dynamic_distance", edges.patterns["dynamic_distance"].weights(batch))
    connect(batch, *edges(batch))
    layout = (batch.edge_index, batch.batch, 1, batch.edge_weight)
    gather(batch, *compose(Windows(passages), circles or EdgeCircles(k=4, max_size=12), *layout))
    return batch[0], edges
