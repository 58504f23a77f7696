"""Re-ranking of candidate lists."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch_geometric.data import Batch
from tqdm import tqdm

from socialgraph.data.batches import batches, check_shared_memory
from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import Queries, Run, check_candidates, check_scores, first_ids, ranked
from socialgraph.data.collection import identity as collection_identity
from socialgraph.errors import CheckpointError, OptionError
from socialgraph.ranking import processes
from socialgraph.ranking.identity import digest, graphs_of, identity_of
from socialgraph.ranking.journal import Journal
from socialgraph.ranking.memory import Halving, if_it_fits

#: documents that say something of a collection
_MANY = 100
#: bytes of a journal for each pair, roughly
_PAIR_BYTES = 25


Pair = tuple[str, str, str]
"""Query id, query text, document id."""
Scorer = Callable[[Sequence[Pair], "Batch | None"], list[float]]
"""Pairs, and their graph where it was built ahead -> their scores."""


@torch.inference_mode()
def rerank(
    model: torch.nn.Module,
    builder: GraphBuilder,
    queries: Queries,
    candidates: Run,
    token_budget: int = 16_384,
    bf16: bool = False,
    progress: bool | None = None,
    workers: int = 0,
    journal: str | os.PathLike[str] | None = None,
) -> Run:
    """Score every candidate of every query and return the new run, best document first.

    Pairs are sorted by the document's length and batched by a token budget, so that documents of a batch are about as
    long and a batch costs about as much. The scores do not depend on it (up to rounding).

    A query without word pieces keeps its candidates' order, and a document without any gets the same score as all
    such; both are counted in a warning. A batch that does not fit in memory is halved, with one warning.

    Under ``torchrun`` or ``accelerate launch`` each of n processes scores every n-th batch, and each returns the whole
    run. The batches are the same for every n, so that on machines of one kind the scores are too, to the last bit.

    Args:
        model: scores a batch of document graphs; it is put in evaluation mode and left where it is.
        builder: builds the graphs, on the model's device.
        queries: query id -> text.
        candidates: what is re-ranked; only queries that are in ``queries``.
        token_budget: word pieces of documents in a batch; a longer document makes a batch of its own.
        bf16: compute in bfloat16 where it is safe.
        progress: show a progress bar; None: on a terminal.
        workers: processes that build the next batches while the model computes. On a GPU they pay; where the model
            takes all cores they do not.
        journal: a folder where the scores of each finished batch are kept. A run that was stopped, by whatever,
            and is started again with the same arguments scores only what is missing, and returns what it would have
            returned.

    Raises:
        InputError: a candidate is not in the collection or its score not finite, or the journal is of other work.
        OptionError: token_budget below 1, or workers below 0.
        TooLargeError: a document does not fit in memory even alone.
        OutputError: the journal cannot be written, or another run holds it.
        CheckpointError: a score is not a finite number.
    """
    if workers < 0:
        raise OptionError(f"workers must not be negative, got {workers}")
    request = Request(builder, queries, candidates, token_budget)
    lengths = _lengths(builder, request.candidates)
    # longest first: what does not fit in memory shows at once
    pairs = sorted(request.pairs(), key=lambda pair: -lengths[pair[2]])
    cut = list(batches(pairs, lambda pair: lengths[pair[2]], token_budget))
    model.eval()
    identity = {}
    if journal is not None:
        identity = {
            "work": "re-ranking",
            "candidates": digest([*request.known_of(pair), lengths[pair[2]]] for pair in pairs),
            "texts": collection_identity(builder.documents),
            **depends_on(model, builder, token_budget, bf16),
        }

    def score(some: Sequence[Pair], graph: Batch | None) -> list[float]:
        graph = builder(some) if graph is None else graph
        with torch.autocast(builder.device.type, torch.bfloat16, enabled=bf16):
            return finite(model(graph).float().tolist(), some, model)

    graphs = partial(ahead, builder, workers=workers)
    return request.run(scored(cut, score, lambda pair: lengths[pair[2]], progress, journal, identity, graphs))


class Request:
    """Which pairs of a query and a candidate are to be scored; at the end the run that their scores make.

    Args:
        builder: makes queries into word pieces.
        queries: query id -> text.
        candidates: what is re-ranked; only queries that are in ``queries``.
        token_budget: of a batch.

    Raises:
        OptionError: token_budget below 1.
        InputError: a candidate's score is not finite.

    Warns:
        UserWarning: queries without word pieces, which keep the order of their candidates.
    """

    def __init__(self, builder: GraphBuilder, queries: Queries, candidates: Run, token_budget: int) -> None:
        if token_budget < 1:
            raise OptionError(f"token_budget must be at least 1, got {token_budget}")
        self.builder = builder
        self.queries = queries
        self.candidates = {query_id: scores for query_id, scores in candidates.items() if query_id in queries}
        check_scores(self.candidates, "re-ranking")
        self.pieces = {query_id: builder.tokens.query(queries[query_id]) for query_id in self.candidates}
        silent = [query_id for query_id, pieces in self.pieces.items() if pieces.numel() == 0]
        if silent and processes.is_first():
            warnings.warn(
                f"{len(silent)} queries have no word piece and keep the order of their candidates: {first_ids(silent)}",
                stacklevel=3,
            )
        #: queries that a model can score
        self.asked = [query_id for query_id, pieces in self.pieces.items() if pieces.numel() > 0]

    def pairs(self, asked: Sequence[str] | None = None) -> list[Pair]:
        """Return the pairs of all queries that are asked, or of these, in their order."""
        some = self.asked if asked is None else asked
        return [(i, self.queries[i], document) for i in some for document in self.candidates[i]]

    def known_of(self, pair: Pair) -> list[Any]:
        """Return what a score depends on of a pair, beside the document's text: for a journal."""
        score = self.builder.first_stage_score(pair[0], pair[2])
        return [pair[0], self.pieces[pair[0]].tolist(), pair[2], *([] if score is None else [score])]

    def run(self, scores: Iterable[tuple[Pair, float]]) -> Run:
        """Return all candidates in their new order, best first."""
        new: Run = {query_id: {} for query_id in self.asked}
        for (query_id, _, document), value in scores:
            new[query_id][document] = value
        return {query_id: best_first(new.get(query_id, old)) for query_id, old in self.candidates.items()}


def _lengths(builder: GraphBuilder, candidates: Run) -> dict[str, int]:
    """Return the word pieces of each candidate; warn of those without any."""
    documents = list({document: None for scores in candidates.values() for document in scores})
    try:
        lengths = dict(zip(documents, builder.tokens.lengths(documents, builder.documents), strict=True))
    except KeyError:
        check_candidates(candidates, builder.documents, "re-ranking")  # says which, and how many
        raise
    warn_of_empty(sorted(document for document, length in lengths.items() if length == 0))
    window = getattr(builder.passages, "size", 0)
    if len(lengths) >= _MANY and max(lengths.values()) <= window and processes.is_first():
        told = "so all that they are cut into is themselves: systems that read passages or circles can hardly differ"
        warnings.warn(f"none of {len(lengths)} documents is longer than one passage of {window} word pieces, {told}",
            stacklevel=3)  # fmt: skip
    return lengths


def warn_of_empty(documents: Sequence[str]) -> None:
    """Warn, in the first process, of documents without word pieces."""
    if documents and processes.is_first():
        warnings.warn(
            f"{len(documents)} documents have no word piece, they all get one score: {first_ids(documents)}",
            stacklevel=4,
        )


def scored(
    batches: Sequence[list[Pair]],
    score: Scorer,
    length: Callable[[Pair], int],
    progress: bool | None,
    journal: str | os.PathLike[str] | None,
    identity: Mapping[str, Any],
    graphs: Callable[[list[list[Pair]]], Iterator[Batch | None]] = lambda batches: repeat(None),
) -> Iterator[tuple[Pair, float]]:
    """Yield all pairs with their scores: those the journal has, and those that the processes compute together.

    Args:
        batches: all of them, cut alike in every process.
        score: of a batch or a part of one.
        length: word pieces of a pair's document.
        progress: show a bar; None: on a terminal.
        journal: folder of the journal, or None.
        identity: of the work, see :class:`~socialgraph.ranking.journal.Journal`.
        graphs: makes some batches' graphs ahead of the model, see :func:`ahead`; none by default.
    """
    halving = Halving(length, lambda pair: f"document {pair[2]!r} for query {pair[0]!r}")
    with Journal(journal, identity, size=_PAIR_BYTES * sum(map(len, batches))) as kept:
        missing = [number for number in range(len(batches)) if number not in kept.finished]
        mine = missing[processes.number() :: processes.count()]  # each process gets long and short ones
        scores: dict[int, list[float]] = {}
        of = f" (1 of {processes.count()} processes)" if processes.count() > 1 else ""
        with tqdm(
            total=sum(len(batches[number]) for number in mine),
            desc=f"re-ranking{of}",
            unit="doc",
            disable=processes.no_bar(progress),
        ) as bar:
            ready = graphs([batches[number] for number in mine])
            for number in mine:
                function = _first_ready(score, ready, batches[number])
                scores[number] = [value for _, part in halving(function, batches[number]) for value in part]
                kept.append(number, scores[number])
                bar.update(len(batches[number]))
        for part in (kept.finished, *processes.from_all(scores)):
            for number, values in part.items():
                yield from zip(batches[number], values, strict=True)


def _first_ready(
    score: Scorer, graphs: Iterator[Batch | None], batch: list[Pair]
) -> Callable[[Sequence[Pair]], list[float]]:
    """Return what scores a batch with the graph that is ready, and parts of it without.

    Nothing but the call itself holds that graph: where it does not fit, it is gone before that of a half is built.
    """
    return lambda part: score(part, next(graphs) if part is batch else None)


def ahead(builder: GraphBuilder, batches: list[list[Pair]], workers: int) -> Iterator[Batch | None]:
    """Return the graphs of some batches of pairs in their order; ``workers`` processes build them ahead.

    Where memory runs out, None stands in a batch's place.
    """
    check_shared_memory(workers)
    pin = builder.device.type == "cuda"  # a thread then takes batches out of the workers' queue, not the model's
    # the items are batches already: batch_size=None takes them one by one
    loader: DataLoader[Batch | None] = DataLoader(
        batches,  # type: ignore[arg-type]
        batch_size=None, num_workers=workers, collate_fn=partial(if_it_fits, builder.ahead), pin_memory=pin,
    )  # fmt: skip
    return map(partial(if_it_fits, builder.finish), loader)  # a loop here would hold a batch while it is scored


def finite(scores: list[float], pairs: Sequence[Pair], model: torch.nn.Module) -> list[float]:
    """Return the scores of some pairs.

    Raises:
        CheckpointError: one is infinite or not a number.
    """
    for score, (query_id, _, document) in zip(scores, pairs, strict=True):
        if not math.isfinite(score):
            odd = [name for name, weight in model.named_parameters() if not weight.isfinite().all()]
            why = f"the weights {odd[0]!r} are not finite" if odd else "its weights are too large"
            raise CheckpointError(
                f"the score of document {document!r} for query {query_id!r} is {score}: {why}; "
                "use another checkpoint of the model"
            )
    return scores


def depends_on(model: torch.nn.Module, builder: GraphBuilder, token_budget: int, bf16: bool) -> dict[str, Any]:
    """Return what scores depend on, to their last digits, beside ids and texts: for a journal."""
    return {
        **identity_of(model),
        **graphs_of(builder),
        "attention": getattr(model, "attention", None),
        "device": builder.device.type,
        "token_budget": token_budget,
        "bf16": bf16,
    }


def best_first(scores: dict[str, float]) -> dict[str, float]:
    """Return the same scores, best document first."""
    return {document: scores[document] for document in ranked(scores)}
