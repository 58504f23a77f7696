"""Re-ranking of candidate lists."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import DataLoader
from torch_geometric.data import Batch
from tqdm import tqdm

from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import Queries, Run, check_candidates, first_ids, ranked
from socialgraph.errors import OptionError


@torch.inference_mode()
def rerank(
    model: torch.nn.Module,
    builder: GraphBuilder,
    queries: Queries,
    candidates: Run,
    token_budget: int = 16_384,
    bf16: bool = False,
    progress: bool = True,
    workers: int = 0,
) -> Run:
    """Score every candidate of every query and return the new run, best document first.

    Pairs are sorted by the document's length and batched by a token budget, so that documents of a batch are about as
    long and a batch costs about as much. The scores do not depend on it (up to rounding).

    A query without word pieces keeps its candidates' order, and a document without any gets the same score as all
    such; both are counted in a warning.

    Args:
        model: scores a batch of document graphs; it is put in evaluation mode and left where it is.
        builder: builds the graphs, on the model's device.
        queries: query id -> text.
        candidates: what is re-ranked; only queries that are in ``queries``.
        token_budget: word pieces of documents in a batch; a longer document makes a batch of its own.
        bf16: compute in bfloat16 where it is safe.
        progress: show a progress bar.
        workers: processes that build the next batches while the model computes. On a GPU they pay; where the model
            takes all cores they do not.

    Raises:
        InputError: a candidate is not in the collection.
        OptionError: token_budget below 1, or workers below 0.
    """
    if token_budget < 1:
        raise OptionError(f"token_budget must be at least 1, got {token_budget}")
    if workers < 0:
        raise OptionError(f"workers must not be negative, got {workers}")
    candidates = {query_id: scores for query_id, scores in candidates.items() if query_id in queries}
    silent = [query_id for query_id in candidates if builder.tokens.query(queries[query_id]).numel() == 0]
    if silent:
        warnings.warn(
            f"{len(silent)} queries have no word piece and keep the order of their candidates: {first_ids(silent)}",
            stacklevel=2,
        )
    documents = list({document: None for scores in candidates.values() for document in scores})
    try:
        lengths = dict(zip(documents, builder.tokens.lengths(documents, builder.documents), strict=True))
    except KeyError:
        check_candidates(candidates, builder.documents, "re-ranking")  # says which, and how many
        raise
    empty = sorted(document for document, length in lengths.items() if length == 0)
    if empty:
        warnings.warn(
            f"{len(empty)} documents have no word piece, they all get one score: {first_ids(empty)}", stacklevel=2
        )
    found: dict[str, dict[str, float]] = {query_id: dict(candidates[query_id]) for query_id in silent}
    pairs = [
        (query_id, queries[query_id], document)
        for query_id, scores in candidates.items()
        if query_id not in found
        for document in scores
    ]
    pairs.sort(key=lambda pair: -lengths[pair[2]])  # longest first: what does not fit in memory shows at once

    model.eval()
    cut = list(batches([lengths[pair[2]] for pair in pairs], token_budget))
    graphs = ahead(builder, [pairs[batch.start : batch.stop] for batch in cut], workers)
    with tqdm(total=len(pairs), desc="re-ranking", unit="doc", disable=not progress) as bar:
        for batch, graph in zip(cut, graphs, strict=True):
            with torch.autocast(builder.device.type, torch.bfloat16, enabled=bf16):
                scores = model(graph)
            for i, score in zip(batch, scores.float().tolist(), strict=True):
                found.setdefault(pairs[i][0], {})[pairs[i][2]] = score
            bar.update(len(batch))
    return {query_id: best_first(found.get(query_id, {})) for query_id in candidates}


def ahead(builder: GraphBuilder, batches: list[list[tuple[str, str, str]]], workers: int) -> Iterator[Batch]:
    """Yield the graphs of some batches of pairs in their order; ``workers`` processes build them ahead."""
    pin = builder.device.type == "cuda"  # a thread then takes batches out of the workers' queue, not the model's
    # the items are batches already: batch_size=None takes them one by one
    loader: DataLoader[Batch] = DataLoader(
        batches,  # type: ignore[arg-type]
        batch_size=None, num_workers=workers, collate_fn=builder.ahead, pin_memory=pin,
    )  # fmt: skip
    for batch in loader:
        yield builder.finish(batch)


def best_first(scores: dict[str, float]) -> dict[str, float]:
    """Return the same scores, best document first."""
    return {document: scores[document] for document in ranked(scores)}


def batches(lengths: Sequence[int], budget: int) -> Iterator[range]:
    """Cut a row of items into ranges whose lengths sum to at most ``budget``; each holds an item at least."""
    start, total = 0, 0
    for place, length in enumerate(lengths):
        if place > start and total + length > budget:
            yield range(start, place)
            start, total = place, 0
        total += length
    if lengths:
        yield range(start, len(lengths))
