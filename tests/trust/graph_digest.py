"""Fixed documents, and what every machine must make of them: run it and compare.

``python tests/trust/graph_digest.py`` prints a digest of every weight, edge and circle as JSON; ``graph_digest.json``
beside it is what must come out. An argument is a device, or "libraries" to add the circles that libraries find.

The texts are whole numbers from a hash, so that neither a tokenizer nor a generator has a say. Dynamic centrality gets
weights of the same kind, as its own come out of a BERT.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from socialgraph.data.graph import document_graph
from socialgraph.data.statistics import TermStatistics
from socialgraph.edges import (
    Centrality,
    DynamicDistance,
    Kleinberg,
    Nearby,
    Pattern,
    QueryToAll,
    SocialEdges,
    StaticCentrality,
    StaticDistance,
    Uniform,
    WattsStrogatz,
    draw_key,
)
from socialgraph.partition import (
    Blocks,
    EdgeCircles,
    KCore,
    LabelPropagation,
    NodeCircles,
    Partition,
    RandomCircles,
    Whole,
    Windows,
    partition_resolver,
)

GOLDEN = Path(__file__).with_suffix(".json")
VOCABULARY = 1000
#: (tokens of the document, different words in it, words of the query, whether the query's words are in the document)
DOCUMENTS = (
    (0, 1, 2, True), (1, 1, 1, True), (2, 2, 1, True), (3, 1, 1, True), (3, 3, 2, False), (5, 2, 1, True),
    (17, 9, 3, True), (40, 1, 1, True), (64, 30, 4, True), (65, 30, 4, False), (128, 50, 5, True), (129, 2, 1, True),
    (257, 90, 3, True), (700, 200, 6, True), (1024, 300, 2, True), (1500, 900, 4, True), (3000, 700, 5, True),
)  # fmt: skip


#: the mixtures whose circles are gathered, of all documents (of uniform edges all friends are ties); of the others,
#: documents below 1,000 tokens are drawn
CIRCLES_OF = ("the four patterns", "the three exact patterns", "uniform")
#: partitions by name with the library that each needs
LIBRARIES = {"metis": "pymetis", "louvain": "igraph", "leiden": "igraph", "spectral": "sklearn"}
Digests = dict[str, str]


class Given(Centrality):
    """Dynamic centrality with the weights that the graph has."""

    name = "dynamic_centrality"


def numbers(name: str, amount: int, below: int) -> Tensor:
    """Return whole numbers that look random, ``[amount]``."""
    bits = hashlib.shake_128(name.encode()).digest(4 * amount)
    return torch.tensor([int.from_bytes(bits[4 * i : 4 * i + 4], "little") % below for i in range(amount)]).long()


def statistics() -> TermStatistics:
    """Return document frequencies as skewed as real ones: many words in few documents."""
    return TermStatistics(1 + 40_000 // (1 + numbers("df", VOCABULARY, 20_000)), 100_000)


def documents() -> list[Data]:
    """Return the graphs of :data:`DOCUMENTS`, with all weights but dynamic distance's, without edges."""
    graphs, known = [], statistics()
    for number, (length, words, asked, present) in enumerate(DOCUMENTS):
        name = f"document {number}"
        ids = 10 + numbers(name, length, words)
        query = 10 + numbers(f"query {number}", asked, words) if present else torch.arange(1, 1 + asked)
        given = (1 + numbers(f"weights {number}", length, 1 << 20)).float() * 2.0**-20
        weights = {"tfidf": known.tfidf(ids), "dynamic_centrality": given}
        graphs.append(document_graph(ids, query, draw_key(7, query, ids), **weights))
    return graphs


def mixtures() -> dict[str, SocialEdges]:
    """Return the edges to draw by name: the paper's patterns, mixed and alone, and the others on the shelf."""
    social: list[Pattern] = [StaticDistance(), StaticCentrality(), DynamicDistance(), Given()]
    released = {"static_distance": 0.3, "static_centrality": 0.2, "dynamic_distance": 0.3, "dynamic_centrality": 0.2}
    return {
        "the four patterns": SocialEdges(social),
        "the four patterns, released weights": SocialEdges(social, released),
        "the four patterns, clipped": SocialEdges(social, sparsity=0.3),
        "the three exact patterns": SocialEdges(social[:3]),
        "static distance": SocialEdges(social[:1]),
        "static distance, p = 7": SocialEdges([StaticDistance(7.0)], sparsity=0.8),
        "static centrality": SocialEdges(social[1:2]),
        "dynamic distance": SocialEdges(social[2:3]),
        "dynamic distance, p = 3": SocialEdges([DynamicDistance(3.0)], sparsity=0.99),
        "given centrality": SocialEdges(social[3:]),
        "uniform": SocialEdges([Uniform()]),
        "Kleinberg": SocialEdges([Kleinberg()]),
        "Kleinberg, r = 1.3": SocialEdges([Kleinberg(1.3)]),
        "Watts and Strogatz": SocialEdges([WattsStrogatz(16), DynamicDistance()]),
        "nearby": SocialEdges([Nearby(30), StaticCentrality()]),
        "query to all": SocialEdges([QueryToAll(), Kleinberg()]),
        "two kernels": SocialEdges([StaticDistance(), Kleinberg(), StaticCentrality()]),
    }


def partitions() -> dict[str, Partition]:
    """Return the partitions that need no library."""
    return {
        "edge": EdgeCircles(),
        "node": NodeCircles(),
        "first": EdgeCircles(keep="first"),
        "random": RandomCircles(NodeCircles(k=8)),
        "windows": Windows(128),
        "blocks": Blocks(),
        "whole": Whole(),
        "k-core": KCore(k=2),
        "label-propagation": LabelPropagation(),
    }


def digest(tensors: Iterable[Tensor]) -> str:
    """Return a hash of the bits, however they are spread over tensors."""
    whole = hashlib.sha256()
    for tensor in tensors:
        columns = tensor.T if tensor.dim() == 2 else tensor  # edges and memberships of one batch after the other
        whole.update(columns.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()[:16]


def compute(device: torch.device | str = "cpu", sizes: Sequence[int] = (len(DOCUMENTS),)) -> Digests:
    """Return the digests by name.

    Args:
        device: where graphs are built.
        sizes: documents of each batch, one after the other.
    """
    parts = list(split(documents(), sizes))
    batches = [Batch.from_data_list(part).to(device) for part in parts]
    short = [Batch.from_data_list(part).to(device) for part in map(below_1000, parts) if part]
    found = {
        "weights: tf-idf": digest([batch.tfidf for batch in batches]),
        "weights: static distance": digest([StaticDistance().kernel(3000, torch.device(device))]),
        "weights: dynamic distance": digest([DynamicDistance().weights(batch) for batch in batches]),
    }
    for name, edges in mixtures().items():
        drawn = [Drawn(edges, batch) for batch in (batches if name in CIRCLES_OF else short)]
        found[f"{name}: edges"] = digest([graph.local(graph.edge_index) for graph in drawn])
        found[f"{name}: probabilities"] = digest([graph.edge_weight for graph in drawn])
        found[f"{name}: expected degrees"] = digest([graph.sampled.expected for graph in drawn])
        if name in CIRCLES_OF:
            for kind, partition in partitions().items():
                circles = [graph.circles(partition) for graph in drawn]
                found[f"{name}: {kind} circles"] = digest([index for index, _ in circles])
                found[f"{name}: {kind} leaders"] = digest([leader for _, leader in circles])
    return found


class Drawn:
    """A batch with its edges."""

    def __init__(self, edges: SocialEdges, batch: Batch) -> None:
        self.batch = batch
        self.sampled = edges.sampled(batch)
        self.edge_index, self.edge_weight = self.sampled.edges()

    def local(self, node: Tensor) -> Tensor:
        """Return places in the document for node ids."""
        return node - self.batch.ptr[self.batch.batch[node]]

    def circles(self, partition: Partition) -> tuple[Tensor, Tensor]:
        """Return members and circles, counted within their document, ``[2, M]``, and leaders ``[C]``."""
        (node, circle), leader = partition.from_sampled(self.sampled)
        home = self.batch.batch[leader]
        first = torch.searchsorted(home, home)
        number = torch.arange(leader.numel(), device=leader.device) - first
        return torch.stack([self.local(node), number[circle]]), self.local(leader)


def split(items: Sequence[Data], sizes: Sequence[int]) -> Iterator[list[Data]]:
    """Yield so many items at a time."""
    ends = list(accumulate(sizes))
    assert ends[-1] == len(items)
    for size, end in zip(sizes, ends, strict=True):
        yield list(items[end - size : end])


def below_1000(graphs: Iterable[Data]) -> list[Data]:
    """Return the documents that have fewer than 1,000 tokens."""
    return [graph for graph in graphs if graph.num_nodes < 1000]


def by_libraries() -> Digests:
    """Return digests of the circles that installed libraries find; other versions of them may find others."""
    edges = mixtures()["the three exact patterns"]
    drawn = Drawn(edges, Batch.from_data_list([graph for graph in documents() if graph.num_nodes < 300]))
    return {
        name: digest(drawn.circles(partition_resolver(name))) for name, needs in LIBRARIES.items() if find_spec(needs)
    }


if __name__ == "__main__":
    print(json.dumps(compute() | by_libraries() if sys.argv[1:] == ["libraries"] else compute(*sys.argv[1:]), indent=1))
