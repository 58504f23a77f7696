"""What a system's circles look like, and what building its graphs costs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from omegaconf import DictConfig
from torch_geometric.data import Batch
from tqdm import tqdm

from lab.plan import Run
from lab.recipe import Recipe
from lab.task import task_of
from socialgraph.data import Cache, GraphBuilder, Split
from socialgraph.data.batches import batches
from socialgraph.data.collection import hash_fraction
from socialgraph.edges import SocialEdges
from socialgraph.inspect.describe import describe

#: a query's id and text, and a candidate's id
Pair = tuple[str, str, str]


def describe_graphs(config: DictConfig, builder: GraphBuilder, split: Split, amount: int) -> dict[str, Any]:
    """Return statistics of some candidates' graphs, a value for each, and the seconds for building one."""
    if builder.joint:  # no circles
        return {"statistics": {}, "graph_seconds_per_document": None}
    pairs = sampled_pairs(split, amount)
    seconds = graph_seconds(builder, pairs, config.trainer.token_budget)
    builder.keep_edges = True  # whoever looks needs them
    edges = builder.edges if isinstance(builder.edges, SocialEdges) else None
    described = [
        describe(builder([pair])[0], edges=edges)
        for pair in tqdm(pairs, desc="describing", unit="doc", leave=False)
    ]  # fmt: skip
    names = dict.fromkeys(name for values in described for name in values)
    statistics = {name: [_defined(values.get(name)) for values in described] for name in names}
    return {"statistics": statistics, "graph_seconds_per_document": seconds}


def try_graph(run: Run) -> None:
    """Build one graph of a run that is not finished."""
    recipe = Recipe(run.config)
    if run.finished() is None and not recipe.is_first_stage:
        task = task_of(run.config)
        recipe.builder(task)(sampled_pairs(task.test, 1))


def sampled_pairs(split: Split, amount: int) -> list[Pair]:
    """Return some candidates of a split, those with the lowest hash, the same for all systems."""
    return sorted(pairs_of(split), key=lambda pair: hash_fraction(f"{pair[0]} {pair[2]}"))[:amount]


def pairs_of(split: Split) -> list[Pair]:
    """Return each query of a split with each of its candidates."""
    return [(query, split.queries[query], d) for query, scores in (split.candidates or {}).items() for d in scores]


def graph_seconds(builder: GraphBuilder, pairs: Sequence[Pair], token_budget: int) -> float:
    """Return the seconds for each graph, in batches as in re-ranking, nothing known of the pairs before."""
    cache, builder.cache = builder.cache, Cache()
    spent: dict[str, float] = {}
    for part in in_batches(builder, pairs, token_budget):
        with timed(spent, "graph"):
            builder(part)
    builder.cache = cache
    return spent.get("graph", 0.0) / max(1, len(pairs))


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


def _defined(value: float | None) -> float | None:
    """Return None for what is not defined: JSON has no NaN."""
    return None if value is None or not math.isfinite(value) else float(value)
