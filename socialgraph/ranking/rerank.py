"""Re-ranking of candidate lists."""

from __future__ import annotations

import math
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean
from typing import Any

import torch
from accelerate.utils.memory import clear_device_cache
from torch.utils.data import DataLoader
from torch_geometric.data import Batch
from tqdm import tqdm

from socialgraph.data.batches import batches, check_shared_memory
from socialgraph.data.builder import GraphBuilder
from socialgraph.data.collection import Queries, Run, check_candidates, check_scores, first_ids, ranked
from socialgraph.errors import CheckpointError, TooLargeError, check_whole
from socialgraph.ranking import processes
from socialgraph.ranking.identity import digest, identity_of
from socialgraph.ranking.journal import Scores, begin_journal, write_batch
from socialgraph.ranking.memory import is_out_of_memory

#: documents that say something of a collection
_MANY = 100
#: what a document without word pieces gets where all candidates of its query are such
LOWEST = -10_000.0

Pair = tuple[str, str, str]
"""Query id, query text, document id."""


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
    distributed: bool = False,
) -> Run:
    """Score every candidate of every query and return the new run, best document first.

    Where the builder has several draws, a score is the mean over that many graphs of the pair (:class:`GraphBuilder`).

    Pairs are sorted by the document's length and batched by a token budget, so that documents of a batch are about as
    long and a batch costs about as much. The scores do not depend on it (up to rounding).

    A query without word pieces keeps its candidates' order. A document without any is not read and stands last: 1 below
    the lowest score of its query. Both are counted in a warning. Where a batch does not fit in memory the budget is
    halved, with a warning; what is finished stands.

    Args:
        model: scores a batch of document graphs; it is put in evaluation mode and left where it is.
        builder: builds the graphs, on the model's device.
        queries: query id -> text.
        candidates: what is re-ranked; only queries that are in ``queries``.
        token_budget: word pieces of documents in a batch; a longer document makes a batch of its own.
        bf16: compute in bfloat16 where it is safe.
        progress: show a progress bar; None: on a terminal, after two seconds.
        workers: processes that build the next batches while the model computes; where the model takes all cores they
            do not pay. On a GPU a thread does so in any case, and workers read texts for it.
        journal: a file where the scores of each finished batch are kept. A run that was stopped, by whatever, and is
            started again with the same arguments scores only what is missing, and returns what it would have returned.
        distributed: under ``torchrun`` or ``accelerate launch`` all processes make this same call; each of n scores
            every n-th batch and returns the whole run. The batches are the same for every n, so that on machines of one
            kind the scores are too, to the last bit. False: a process ranks for itself.

    Raises:
        InputError: a candidate is not in the collection, or its score not finite.
        OptionError: token_budget below 1, workers below 0, or no shared memory for them.
        TooLargeError: a document does not fit in memory even alone.
        OutputError: the journal cannot be written.
        CheckpointError: a score is not a finite number, or the journal is of other work.
    """
    check_shared_memory(workers)
    check_whole("token_budget (batch_size)", token_budget, 1)
    if builder.draws > 1:
        options = (token_budget, bf16, progress, workers)
        runs = []
        for number in range(builder.draws):
            kept = f"{journal}.{number}" if journal is not None and number else journal
            runs.append(rerank(model, builder.redrawn(number), queries, candidates, *options, kept, distributed))
        return mean_run(runs)
    candidates = {query_id: scores for query_id, scores in candidates.items() if query_id in queries}
    check_scores(candidates, "re-ranking")
    asked = _with_word_pieces(builder, {query_id: queries[query_id] for query_id in candidates})
    lengths = _lengths(builder, candidates)
    pairs = [(i, queries[i], document) for i in asked for document in candidates[i] if lengths[document]]
    pairs.sort(key=lambda pair: -lengths[pair[2]])  # longest first: what does not fit in memory shows at once
    model.eval()

    def score(batch: Sequence[Pair], graph: Batch) -> list[float]:
        with torch.autocast(builder.device.type, torch.bfloat16, enabled=bf16):
            return finite(model(graph).float().tolist(), batch, model)

    number, count = (processes.number(), processes.count()) if distributed else (0, 1)
    known: Scores = {}
    if journal is not None:
        identity = {
            "pairs": digest(known_of(builder, pair) for pair in pairs),
            "attention": getattr(model, "attention", None),  # all compute the same, up to rounding
            "device": builder.device.type,
            "token_budget": token_budget,
            "bf16": bf16,
            **identity_of(model, builder),
        }
        known = begin_journal(journal, identity, distributed)
    cut = batches(pairs, lambda pair: lengths[pair[2]], token_budget)
    missing = [batch for batch in cut if any((query_id, document) not in known for query_id, _, document in batch)]
    rest = missing[number::count]  # each process gets long and short ones
    scores: Scores = {}
    with tqdm(
        total=sum(map(len, rest)),
        desc="re-ranking" if count == 1 else f"re-ranking (1 of {count} processes)",
        unit="doc",
        delay=2 if progress is None else 0,
        disable=(None if progress is None else not progress) if number == 0 else True,
    ) as bar:
        try:
            while rest:
                graphs = ahead(builder, [*rest], workers)
                budget = _score_what_fits(rest, graphs, score, lengths, scores, journal, bar)
                rest = [part for batch in rest for part in batches(batch, lambda pair: lengths[pair[2]], budget)]
        except KeyboardInterrupt:
            kept = "nothing is kept without a journal" if journal is None else f"the same call goes on from {journal}"
            raise KeyboardInterrupt(f"re-ranking was stopped; {kept}") from None
    for part in processes.from_all(scores) if distributed else [scores]:
        known |= part
    return _run(known, asked, candidates)


def mean_run(runs: Sequence[Run]) -> Run:
    """Return the mean of the scores of several runs of the same candidates, best first."""
    mean = {
        query: {document: fmean(run[query][document] for run in runs) for document in scores}
        for query, scores in runs[0].items()
    }
    return {query: {document: scores[document] for document in ranked(scores)} for query, scores in mean.items()}


def _with_word_pieces(builder: GraphBuilder, queries: Queries) -> list[str]:
    """Return the ids of the queries that a model can score; warn of the others."""
    asked = [query_id for query_id, text in queries.items() if builder.tokens.query(text).numel()]
    if silent := sorted(queries.keys() - set(asked)):
        warnings.warn(
            f"{len(silent)} queries have no word piece and keep the order of their candidates: {first_ids(silent)}",
            stacklevel=4,
        )
    return asked


def _lengths(builder: GraphBuilder, candidates: Run) -> dict[str, int]:
    """Return the word pieces of each candidate; warn of those without any."""
    documents = list({document: None for scores in candidates.values() for document in scores})
    try:
        lengths = dict(zip(documents, builder.tokens.lengths(documents, builder.documents), strict=True))
    except KeyError:
        check_candidates(candidates, builder.documents, "re-ranking")  # says which, and how many
        raise
    if empty := sorted(document for document, length in lengths.items() if length == 0):
        warnings.warn(f"{len(empty)} documents have no word piece and stand last: {first_ids(empty)}", stacklevel=4)
    window = getattr(builder.passages, "size", 0)
    if len(lengths) >= _MANY and max(lengths.values()) <= window:
        told = "so all that they are cut into is themselves: systems that read passages or circles can hardly differ"
        warnings.warn(f"none of {len(lengths)} documents is longer than one passage of {window} word pieces, {told}",
            stacklevel=3)  # fmt: skip
    return lengths


def _score_what_fits(
    rest: list[list[Pair]],
    graphs: Iterator[Batch],
    score: Callable[[Sequence[Pair], Batch], list[float]],
    lengths: Mapping[str, int],
    scores: Scores,
    journal: str | os.PathLike[str] | None,
    bar: tqdm,
) -> int:
    """Score batches, taking them from ``rest``, until none is left or memory runs out.

    Not by accelerate's ``find_executable_batch_size``: that collects garbage and empties the GPU's cache before each
    call, a third of a second where a query takes a tenth, and begins again where memory runs out.

    Returns:
        A token budget that cuts the batch that did not fit; any where none is left.

    Raises:
        TooLargeError: a document does not fit even alone.
    """
    try:
        while rest:
            # the call alone holds the graph: it is gone before the next one comes
            values = score(rest[0], next(graphs))
            finished = [(query, document, value) for (query, _, document), value in zip(rest[0], values, strict=True)]
            if journal is not None:
                write_batch(journal, finished)
            scores.update({(query, document): value for query, document, value in finished})
            bar.update(len(rest.pop(0)))
        return 1
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        (query, _, document), *others = rest[0]
        if not others:
            raise TooLargeError(
                f"document {document!r} for query {query!r}, {lengths[document]} word pieces, does not fit in memory "
                "even alone; read less of it (document_length), use a smaller model, or a machine with more memory"
            ) from error
    clear_device_cache(garbage_collection=True)  # here, where the error is gone: its frames hold the batch's tensors
    budget = sum(lengths[document] for _, _, document in rest[0]) // 2
    warnings.warn(
        f"out of memory on a batch of {len(rest[0])} documents: token_budget={budget} from here on", stacklevel=4
    )
    return budget


def _run(scores: Scores, asked: Sequence[str], candidates: Run) -> Run:
    """Return all candidates in their new order, best first; those without a score stand last."""
    new: Run = {query_id: {} for query_id in asked}
    for (query_id, document), value in scores.items():
        new[query_id][document] = value
    for query_id, known in new.items():
        last = min(known.values(), default=LOWEST + 1) - 1
        new[query_id] = {document: known.get(document, last) for document in candidates[query_id]}
    both = candidates | new
    return {query_id: {document: both[query_id][document] for document in ranked(both[query_id])} for query_id in both}


def known_of(builder: GraphBuilder, pair: Pair) -> list[Any]:
    """Return what a score depends on of a pair, beside the document's text: for a journal."""
    score = builder.first_stage_score(pair[0], pair[2])
    return [pair[0], builder.tokens.query(pair[1]).tolist(), pair[2], *([] if score is None else [score])]


def ahead(builder: GraphBuilder, batches: list[list[Pair]], workers: int) -> Iterator[Batch]:
    """Return the graphs of some batches of pairs in their order; ``workers`` processes build them ahead.

    On a GPU a thread reads and draws the next batch while the model computes, with workers and without.
    """
    cuda = builder.device.type == "cuda"
    # The items are batches already: batch_size=None takes them one by one. A generator of its own, because the loader
    # draws from it, and to rank must not change what a training beside it draws.
    loader: DataLoader[Batch] = DataLoader(
        batches,  # type: ignore[arg-type]
        batch_size=None, num_workers=workers, collate_fn=builder.ahead, pin_memory=cuda, generator=torch.Generator(),
    )  # fmt: skip
    return _drawn_ahead(builder, loader) if cuda else map(builder.finish, loader)  # neither holds what it handed over


def _drawn_ahead(builder: GraphBuilder, loader: DataLoader[Batch]) -> Iterator[Batch]:
    """Draw one batch ahead on a stream of its own: small kernels then run between the model's large ones."""
    model = torch.cuda.current_stream(builder.device)
    own: torch.cuda.Stream = torch.cuda.Stream(builder.device)  # type: ignore[no-untyped-call]
    read = iter(loader)

    def draw() -> Batch | None:
        with torch.cuda.stream(own):
            batch = next(read, None)
            if batch is not None:
                batch = builder.finish(batch)
                own.synchronize()  # this thread waits, the model's does not
                batch.record_stream(model)  # its memory is not given away before the model has read it
        return batch

    with ThreadPoolExecutor(1, "socialgraph-draw") as thread:
        coming = deque([thread.submit(draw)])
        for _ in range(len(loader)):
            coming.append(thread.submit(draw))
            yield coming.popleft().result()


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
