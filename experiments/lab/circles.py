"""What a system's circles look like, and what building its graphs costs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch_geometric.data import Batch
from tqdm import tqdm

from socialgraph.data import GraphBuilder, Split
from socialgraph.data.batches import batches

#: a query's id and text, and a candidate's id
Pair = tuple[str, str, str]


def pairs_of(split: Split) -> list[Pair]:
    """Return each query of a split with each of its candidates."""
    return [(query, split.queries[query], d) for query, scores in (split.candidates or {}).items() for d in scores]


def in_batches(builder: GraphBuilder, pairs: Sequence[Pair], token_budget: int) -> Iterator[list[Pair]]:
    """Return all pairs, the longest documents first, as many at once as the budget of word pieces allows."""
    documents = [document for _, _, document in pairs]
    length = dict(zip(documents, builder.tokens.lengths(documents, builder.documents), strict=True))
    ordered = sorted(pairs, key=lambda pair: -length[pair[2]])
    return batches(ordered, lambda pair: length[pair[2]], token_budget)


def drawn(
    builder: GraphBuilder, pairs: Sequence[Pair], token_budget: int, title: str, spent: dict[str, float]
) -> Iterator[tuple[list[Pair], Batch]]:
    """Yield all pairs and their graphs, batch by batch; ``spent["graph"]`` grows by the seconds of edges and circles.

    What BERT reads for the edges is not in these seconds.
    """
    with tqdm(total=len(pairs), desc=title, unit="doc", leave=False, disable=None) as bar:
        for batch in in_batches(builder, pairs, token_budget):
            weighed = builder.weighed(builder.read(batch))
            with timed(spent, "graph"):
                graph = builder.draw(weighed)
            yield batch, graph
            bar.update(len(batch))


@contextmanager
def timed(spent: dict[str, float], name: str) -> Iterator[None]:
    """Add the seconds of a block, the GPU's work included, to those of a name."""
    began = time.perf_counter()
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    spent[name] = spent.get(name, 0.0) + time.perf_counter() - began
