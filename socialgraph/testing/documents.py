"""Hard documents: what patterns, and graphs drawn from them, are checked on."""

from __future__ import annotations

from functools import cache

import torch
from torch_geometric.data import Batch, Data

from socialgraph.data.statistics import TermStatistics


def document(words: list[int], query: list[int], tfidf: list[float]) -> Data:
    """Return a pair as patterns see it: what a :class:`socialgraph.data.DocumentGraph` has."""
    return Data(
        input_ids=torch.tensor(words, dtype=torch.long),
        query_ids=torch.tensor(query, dtype=torch.long),
        query_length=torch.tensor([len(query)]),
        tfidf=torch.tensor(tfidf, dtype=torch.float32),
        draw_key=torch.tensor([sum(words) + 1]),
        num_nodes=len(words),
    )


def hard_documents(device: torch.device) -> dict[str, Data]:
    """Return the documents, and batches of them, that patterns are checked on."""
    generator = torch.Generator().manual_seed(0)

    def random(length: int, query: list[int], vocabulary: int = 90) -> Data:
        words = 10 + torch.randint(vocabulary, (length,), generator=generator)
        weights = -torch.rand(length, generator=generator).log() * 3.0  # many small, few large
        return document(words.tolist(), query, weights.tolist())

    graphs = {
        "empty": document([], [20], []),
        "one word": document([20], [20], [1.5]),
        "two words": document([20, 30], [30], [2.0, 0.5]),
        "one word, repeated": document([25] * 12, [40], [1.0] * 12),
        "nothing but the query's word": document([40] * 15, [40], [2.0] * 15),
        "no word of the query": random(40, [5]),
        "no weight": document(list(range(30, 60)), [33, 34], [0.0] * 30),
        "few words": random(7, [20, 21, 20]),
        "some words": random(90, [20, 21, 22], vocabulary=30),
        "long": random(200, [20, 30, 40, 50]),
    }
    graphs["two empty documents"] = Batch.from_data_list([graphs["empty"], graphs["empty"]])
    some = list(graphs.values())
    graphs["batch of unequal documents"] = Batch.from_data_list([*some[:6], some[0], *some[9:5:-1], some[0]])
    for graph in graphs.values():
        graph.statistics = some_statistics()  # after batching, as the builder does
    return {name: graph.to(device) for name, graph in graphs.items()}


def statistics_changed(after: TermStatistics, before: TermStatistics) -> str | None:
    """Return what somebody has written into a collection's statistics, which all graphs share, in words, or nothing."""
    for name in ("document_frequency", "idf"):
        if not torch.equal(getattr(after, name), getattr(before, name)):
            return f"graph.statistics.{name} is another after the call"
    return None


@cache
def some_statistics() -> TermStatistics:
    """Return what a small made-up collection says of the word pieces 5 to 99: some are common, some stand together."""
    generator = torch.Generator().manual_seed(1)
    texts = [5 + (torch.rand(60, generator=generator) ** 2 * 95).long() for _ in range(20)]
    counted = TermStatistics.count(texts, vocab_size=100)
    return TermStatistics(counted.document_frequency, counted.size, lambda: texts)
