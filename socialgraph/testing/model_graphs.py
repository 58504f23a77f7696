"""Hard pairs of query and document, with circles or along edges: what models are checked on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.data.circles import compose
from socialgraph.data.graph import DocumentGraph, connect, document_graph, gather, rate, weigh
from socialgraph.edges import SocialEdges, StaticCentrality, StaticDistance
from socialgraph.edges.longformer import LongformerEdges
from socialgraph.partition import EdgeCircles, Windows

#: words of the made-up pairs, and what frames them in a joint graph: every vocabulary has so many word pieces
WORDS = range(10, 100)
CLS, SEP = 2, 3
#: the batch that holds all documents
TOGETHER = "batch of unequal documents"


class Pairs:
    """Draws pairs as a :class:`~socialgraph.data.GraphBuilder` does, of word pieces from 10 to 99.

    Args:
        joint: the query is part of the graph, which has edges and no circles.
        relevance: circles have a ``circle_score``.
    """

    def __init__(self, joint: bool = False, relevance: bool = True) -> None:
        self.joint = joint
        self.relevance = relevance
        self.draw = torch.Generator().manual_seed(0)

    def some(self, length: int) -> list[int]:
        """Return so many words at random."""
        return torch.randint(WORDS.start, WORDS.stop, (length,), generator=self.draw).tolist()

    def pair(
        self, words: Sequence[int], query: Sequence[int], windows: bool = True, friends: bool = True
    ) -> DocumentGraph:
        """Return the graph of a document and a query.

        Args:
            words: of the document.
            query: words of the query.
            windows: whether it has passages, of 16 words.
            friends: whether it has friend circles.
        """
        if self.joint:
            return self._joint(list(words), list(query))
        graph = self._batch(torch.tensor(words, dtype=torch.long), torch.tensor(query), None)
        edge_index, edge_weight = SocialEdges([StaticDistance(), StaticCentrality()], sparsity=0.8)(graph)
        passages, circles = Windows(16) if windows else None, EdgeCircles(3, 12) if friends else None
        gather(graph, *compose(passages, circles, edge_index, graph.batch, 1, edge_weight))
        if self.relevance:
            rate(graph, torch.rand(graph.leader_index.numel(), generator=self.draw))
        return graph[0]

    def _joint(self, words: list[int], query: list[int]) -> DocumentGraph:
        nodes = torch.tensor([CLS, *query, SEP, *words, SEP])
        segment = (torch.arange(len(nodes)) > len(query) + 1).long()
        graph, edges = self._batch(nodes, torch.tensor(query), segment), LongformerEdges(window=8, query=True)
        weigh(graph, "hub_mask", edges.hubs(graph))
        connect(graph, *edges(graph))
        return graph[0]

    def _batch(self, words: Tensor, query: Tensor, segment: Tensor | None) -> Batch:
        """Return one graph, without edges and circles yet, as a batch."""
        tfidf = -torch.rand(len(words), generator=self.draw, dtype=torch.float64).log()
        more = {} if segment is None else {"segment": segment}
        return Batch.from_data_list([document_graph(words, query, int(words.sum()), "q", "d", tfidf=tfidf, **more)])


def hard_pairs(device: torch.device, joint: bool = False, relevance: bool = True) -> dict[str, Batch]:
    """Return the batches, by name, that the laws of a model's answers are tried on; most hold one document.

    Args:
        device: where they lie.
        joint: see :class:`Pairs`.
        relevance: see :class:`Pairs`.
    """
    make = Pairs(joint, relevance)
    query = [10, 11, 12]
    graphs = {
        "some words": make.pair([*make.some(20), 11, *make.some(15)], query),
        "empty": make.pair([], query),
        "one word": make.pair([60], [10]),
        "one word, repeated": make.pair([25] * 12, [10, 25]),
        "nothing but the query's word": make.pair([10] * 15, [10]),
        "no word of the query": make.pair([word for word in make.some(40) if word > 15], query),
    }
    if not joint:
        graphs["without circles"] = make.pair(make.some(20), query, windows=False, friends=False)
        graphs["passages alone"] = make.pair(make.some(40), query, friends=False)
        graphs["friend circles alone"] = make.pair(make.some(40), query, windows=False)
    graphs["long"] = make.pair(make.some(70), [10, 20, 30, 40])
    one = list(graphs.values())
    sets = {name: [graph] for name, graph in graphs.items()}
    sets["two empty documents"] = [one[1], one[1]]
    sets[TOGETHER] = [one[1], *one[5:], one[1], *one[:5], one[1]]
    return {name: Batch.from_data_list(some).to(device) for name, some in sets.items()}


def two_pairs(device: torch.device, joint: bool = False, relevance: bool = True) -> dict[str, Batch]:
    """Return two documents of one query, which have other words: what a model must be able to tell apart."""
    make = Pairs(joint, relevance)
    graphs = [make.pair(make.some(length), [10, 11]) for length in (20, 24)]
    return {"two documents": Batch.from_data_list(graphs).to(device)}
