"""Small made-up documents with their edges, each hard in its own way: what the checks are tried on.

They are as documents are: equal words have equal tf-idf, which follows from the document frequencies of a collection.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from functools import cache

import torch
from torch.nn import functional as F
from torch_geometric.data import Batch
from torch_geometric.utils import to_undirected

from socialgraph.data.circles import compose
from socialgraph.data.graph import DocumentGraph, connect, document_graph, gather, rate, weigh
from socialgraph.data.statistics import TermStatistics
from socialgraph.edges import LongformerEdges, draw_key
from socialgraph.partition import EdgeCircles, Windows

#: the query's word pieces; those of documents lie between 5 and 99, so every vocabulary has them
QUERY = (10, 11, 12)
#: a word that no document says, and one that all documents of the collection say: its tf-idf is 0
UNSAID, COMMON = 6, 5
#: what frames the query and the document in a joint graph
CLS, SEP = 2, 3
#: the batch that holds all documents
TOGETHER = "batch of unequal documents"


@cache
def collection_statistics() -> TermStatistics:
    """Return what a small made-up collection says of the word pieces: some are common, some stand together."""
    draw = torch.Generator().manual_seed(1)
    texts = [torch.cat([torch.tensor([COMMON]), words(15, draw)]) for _ in range(20)]
    counted = TermStatistics.count(texts, vocab_size=100)
    return TermStatistics(counted.document_frequency, counted.size, lambda: texts)


def words(length: int, draw: torch.Generator, first: int = QUERY[0]) -> torch.Tensor:
    """Return so many word pieces, from ``first`` on: few are frequent, most are rare."""
    return first + (torch.rand(length, generator=draw) ** 2 * (100 - first)).long()


def document(
    input_ids: Sequence[int] | torch.Tensor, pairs: Iterable[tuple[int, int]] = (), equal: bool = False
) -> DocumentGraph:
    """Return a document with friendships between these pairs of places, of random weights in (0, 1] or equal ones."""
    size, query = len(input_ids), torch.tensor(QUERY)
    ids = torch.as_tensor(input_ids, dtype=torch.long)
    pair = torch.tensor(list(pairs), dtype=torch.long).reshape(-1, 2).T
    weight = 1.0 - torch.rand(pair.size(1), generator=torch.Generator().manual_seed(size))
    weight = torch.full_like(weight, 0.5) if equal else weight
    graph = document_graph(ids, query, draw_key(0, query, ids), tfidf=collection_statistics().tfidf(ids))
    graph.edge_index, graph.edge_weight = to_undirected(pair, weight, num_nodes=size)
    graph.first_stage_score = torch.tensor([math.nan if size % 3 == 1 else size / 2], dtype=torch.float64)
    return graph


def together(graphs: Iterable[DocumentGraph], device: torch.device | str = "cpu") -> Batch:
    """Return documents as a batch, with statistics of its own."""
    batch = Batch.from_data_list(list(graphs)).to(device)
    batch.statistics = copy.deepcopy(collection_statistics())
    return batch


def hard_graphs(device: torch.device | str = "cpu") -> dict[str, Batch]:
    """Return the batches by name, simple ones first; most hold one document."""
    draw = torch.Generator().manual_seed(0)

    def clique(nodes: Iterable[int]) -> list[tuple[int, int]]:
        return [(int(i), int(j)) for i, j in torch.combinations(torch.tensor(list(nodes)))]

    def chance(size: int, density: float) -> list[tuple[int, int]]:
        return [(i, j) for i, j in clique(range(size)) if float(torch.rand(1, generator=draw)) < density]

    graphs = {
        "empty": document([]),
        "one word": document([10]),
        "no edges": document([30, 11, 40, 30, 50]),
        "one edge": document([20, 10], [(0, 1)]),
        "one edge among strangers": document(words(6, draw), [(2, 5)]),
        "path, one word repeated": document([COMMON] * 10, [(i, i + 1) for i in range(9)]),
        "star, nothing but the query's word": document([10] * 9, [(i, 8) for i in range(8)]),
        "complete, equal weights": document([20, 30, 20, 40, 10, 11, 12], clique(range(7)), equal=True),
        "two cliques that share a node": document(words(9, draw), clique(range(5)) + clique(range(4, 9))),
        "pairs, no word of the query": document(words(40, draw, first=20), [(i, i + 20) for i in range(20)]),
        "large star": document(words(60, draw), [(min(i, 30), max(i, 30)) for i in range(60) if i != 30]),
        "random": document(words(50, draw), chance(50, 0.1)),
        "random, equal weights": document(words(40, draw), chance(40, 0.3), equal=True),
    }
    one = list(graphs.values())
    batches = {name: [graph] for name, graph in graphs.items()}
    batches["two empty documents"] = [one[0], one[0]]
    batches[TOGETHER] = [one[0], *one[7:], one[0], *one[6:0:-1], one[0]]
    return {name: together(batch, device) for name, batch in batches.items()}


def without_match(graph: Batch) -> Batch:
    """Return the same documents for a query that none of them answers, and no first stage has seen."""
    graph = graph.clone()
    graph.query_ids = torch.full_like(graph.query_ids, UNSAID)
    del graph.first_stage_score
    return graph


def equal_friends(size: int, device: torch.device | str = "cpu") -> Batch:
    """Return eight documents of ``size`` words, nine in ten of whose pairs are friends, with equal weights."""
    draw = torch.Generator().manual_seed(0)
    pairs = [(torch.rand(size, size, generator=draw) < 0.9).triu(1).nonzero().tolist() for _ in range(8)]
    return together([document(words(size, draw), some, equal=True) for some in pairs], device)


def with_circles(graph: Batch, passages: bool = True, circles: bool = True, relevance: bool = True) -> Batch:
    """Return documents with passages of 16 words and friend circles, as models of circles read them.

    Args:
        graph: the documents.
        passages: whether they have passages.
        circles: whether they have friend circles.
        relevance: whether circles have a ``circle_score``.
    """
    graph = together(graph.to_data_list(), graph.batch.device)  # copies share the bounds of their parts
    layout = graph.edge_index, graph.batch, graph.num_graphs, graph.edge_weight
    gather(graph, *compose(Windows(16) if passages else None, EdgeCircles(3, 12) if circles else None, *layout))
    if relevance:
        score = torch.rand(graph.leader_index.numel(), generator=torch.Generator().manual_seed(0))
        rate(graph, score.to(graph.batch.device))
    del graph.edge_index, graph.edge_weight
    return graph


def joint(graph: DocumentGraph) -> DocumentGraph:
    """Return a document whose query is part of the graph, with Longformer's edges, as models of edges read it."""
    query = graph.query_ids.tolist()
    ids = torch.tensor([CLS, *query, SEP, *graph.input_ids.tolist(), SEP])
    segment = (torch.arange(len(ids)) > len(query) + 1).long()
    tfidf = F.pad(graph.tfidf, (len(query) + 2, 1))
    batch = together([document_graph(ids, graph.query_ids, int(graph.draw_key), tfidf=tfidf, segment=segment)])
    edges = LongformerEdges(window=8, query=True)
    weigh(batch, "hub_mask", edges.hubs(batch))
    connect(batch, *edges(batch))
    return batch[0]
