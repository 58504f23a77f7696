"""MS MARCO documents and TREC DL 2019 with the candidates that the Socialformer paper re-ranks: ANCE's first 100."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from socialgraph.data.collection import Collection, Queries, Run, Split, first_ids, ranked, warn_of
from socialgraph.data.irds import load_irds
from socialgraph.data.lines import find
from socialgraph.data.trec import read_run
from socialgraph.errors import InputError

#: id of ir_datasets -> name of its run
RUNS = {
    "msmarco-document/train": "ance.train.trec",
    "msmarco-document/dev": "ance.dev.trec",
    "msmarco-document/trec-dl-2019/judged": "ance.dl2019.trec",
}
#: documents that are re-ranked for each query
DEPTH = 100
_ADVICE = "docs/recipes.md says how to make one"


def load_msmarco(
    candidates: str | os.PathLike[str],
    test: str = "msmarco-document/dev",
    dev: str = "msmarco-document/trec-dl-2019/judged",
    train: str = "msmarco-document/train",
) -> Collection:
    """Load MS MARCO documents with given candidates for every split.

    Args:
        candidates: folder of TREC runs, one for each split: ``ance.train.trec``, ``ance.dev.trec``,
            ``ance.dl2019.trec``, each as it is or as ``.gz``. The 100 best documents of each query count.
        test: id of ir_datasets of the split test, as the others one of :data:`RUNS`.
        dev: of the split dev.
        train: of the split train.

    Raises:
        InputError: another id, a run that is not there, and what :func:`~socialgraph.data.load_irds` refuses. When
            candidates are first asked for: a run without some of the split's queries.
    """
    folder = Path(candidates).expanduser().absolute()  # the program may go to another folder before runs are read
    files = {}
    for split, name in {"train": train, "dev": dev, "test": test}.items():
        if name not in RUNS:
            raise InputError(f"a split must be one of {', '.join(RUNS)}, got {name!r}")
        file = find(folder, RUNS[name])
        if file is None:
            raise InputError(f"{folder}: no {RUNS[name]} or {RUNS[name]}.gz, the candidates by ANCE; {_ADVICE}")
        files[split] = file
    collection = load_irds(test, dev=dev, train=train)
    return collection.with_splits({
        name: Split(split.queries, split.qrels, partial(_read, files[name], split.queries))
        for name, split in collection.splits.items()
    })  # fmt: skip


def _read(file: Path, queries: Queries) -> Run:
    """Return the best documents of each query; refuse a run that lacks queries."""
    run = read_run(file)
    if missing := [query for query in queries if query not in run]:
        reason = f"it has {len(queries) - len(missing)} of the {len(queries)} queries of its split"
        raise InputError(f"{file}: {reason}, missing are {first_ids(missing)}; {_ADVICE}")
    best = {query: {document: run[query][document] for document in ranked(run[query])[:DEPTH]} for query in queries}
    few = [query for query, scores in best.items() if len(scores) < DEPTH]
    warn_of(str(file), few, f"of {len(best)} queries have fewer than {DEPTH} documents")
    return best
