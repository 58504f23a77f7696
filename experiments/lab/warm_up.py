"""The backbone of all rows learns to read a passage for a query first: it was never asked for that.

Passages of ``passage`` word pieces, each from where the evidence of a training question begins. The relevant one holds
the evidence of the query itself, the others that of questions about its first-stage candidates: all begin where
questions are asked, so a passage is not told by its kind. Dev and test questions are not looked at, and train
candidates hold no document that is relevant to one.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from hydra.utils import instantiate
from omegaconf import DictConfig
from tqdm import tqdm
from transformers import set_seed

from lab.evidence import Evidence, read_evidence
from lab.recipe import Recipe, device, train
from lab.store import Unfinished, read_json, write_json
from lab.task import Task
from socialgraph.backbone import load_tokenizer
from socialgraph.data import Collection, Document, Split, TrainingGroups
from socialgraph.data.collection import Run as Ranking
from socialgraph.data.collection import hash_fraction
from socialgraph.errors import InputError
from socialgraph.nn.bert_weights import save_as_bert
from socialgraph.ranking import processes

log = logging.getLogger("socialgraph")


def passages(collection: Collection, train: str, evidence: dict[str, Evidence], backbone: str, size: int) -> Collection:
    """Return a collection of passages and its split "train".

    A passage has ``size`` word pieces (fewer at the end of its document) and its document's title.

    Raises:
        InputError: evidence that starts behind its document's end, or no training question with evidence.
    """
    split = collection[train]
    known = {query: evidence[query] for query in split.queries if query in evidence}
    starts: dict[str, set[int]] = {}
    for place in known.values():
        starts.setdefault(place.document_id, set()).add(place.start)
    if not starts:
        raise InputError(f"{collection.name}: no training question has evidence: warm_up.groups=0 goes without")
    tokenizer = load_tokenizer(backbone)
    documents: dict[str, Document] = {}
    for document_id in tqdm(sorted(starts), desc="passages", unit="doc", leave=False, disable=None):
        document = collection.documents[document_id]
        found = tokenizer(document.text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets = found["offset_mapping"]
        for start in starts[document_id]:
            if start >= len(offsets):
                raise InputError(f"the evidence of {document_id!r} starts at {start}, behind its {len(offsets)} pieces")
            text = document.text[offsets[start][0] : offsets[min(start + size, len(offsets)) - 1][1]]
            name = passage_id(document_id, start)
            documents[name] = Document(name, text, document.title)
    qrels = {query: {passage_id(place.document_id, place.start): 1} for query, place in known.items()}
    candidates: Ranking = {}
    ordered = {document_id: sorted(places) for document_id, places in starts.items()}
    for query in known:
        grades = split.qrels.get(query, {})
        candidates[query] = {}
        for document_id, score in (split.candidates or {}).get(query, {}).items():
            if document_id in ordered and grades.get(document_id, 0) <= 0:
                places = ordered[document_id]
                start = places[int(hash_fraction(f"{query} {document_id}") * len(places))]
                candidates[query][passage_id(document_id, start)] = score
    queries = {query: split.queries[query] for query in known}
    return Collection(f"{collection.name}, passages", documents, {"train": Split(queries, qrels, candidates)})


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Wait until no other process is at it; the first of several that work together waits for all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    if processes.is_first():
        lock.acquire()
    processes.wait()
    try:
        yield
    finally:
        lock.release()


def passage_id(document_id: str, start: int) -> str:
    """Return the name of the passage of a document that begins at a word piece."""
    return f"{document_id}@{start}"


@dataclass(frozen=True)
class WarmUp:
    """How a collection's backbone is warmed up, and where it is kept.

    Args:
        config: of a run with the recipe ``firstp`` at the length of a passage.
        identity: what the backbone depends on.
        folder: it becomes a BERT's: config.json, model.safetensors, tokenizer; score.safetensors; and warm_up.json.
    """

    config: DictConfig
    identity: dict[str, Any]
    folder: Path


def warm_up(wanted: WarmUp, task: Task) -> None:
    """Train a backbone on passages and write it as a BERT, unless it is there, trained in the same way.

    Of several processes that want it, one makes it and the others wait.

    Args:
        wanted: the backbone.
        task: of which collection; its training split has candidates.
    """
    facts = wanted.folder / "warm_up.json"
    with only_one(wanted.folder.with_name(f"{wanted.folder.name}.lock")):
        before = processes.from_first(read_json(facts))
        if before is None or before["config"] != wanted.identity:
            train_on_passages(wanted, task.collection, facts.name)


def train_on_passages(wanted: WarmUp, collection: Collection, facts: str) -> None:
    """Do the work of :func:`warm_up`."""
    config, folder = wanted.config, wanted.folder
    evidence = read_evidence(config.data.path)
    pieces = passages(collection, config.data.splits.train, evidence, config.backbone, config.recipe.document_length)
    task = Task(pieces, pieces["train"], pieces["train"], {"train": pieces["train"]}, "first stage")
    recipe = Recipe(config.recipe)
    set_seed(config.seed)
    builder = recipe.builder(config, task)
    model = instantiate(recipe.config.model).to(device())
    groups = TrainingGroups(task.train, config.trainer.groups, config.trainer.negatives, config.seed)
    log.info("warming up %s on %d groups of passages of %s", config.backbone, len(groups), collection.name)
    unfinished = Unfinished(folder.with_name(f"{folder.name}.unfinished"), wanted.identity)
    training = unfinished.trained(model, lambda: train(config, task, model, builder, groups, unfinished.training))
    log.info("warmed up in %.0f s", training.seconds)
    if processes.is_first():
        beside = folder.with_name(f".{folder.name}.part")
        shutil.rmtree(beside, ignore_errors=True)
        save_as_bert(model, beside)
        value = {"seconds": training.seconds, "training": training.log, "config": wanted.identity}
        write_json(beside / facts, value)
        shutil.rmtree(folder, ignore_errors=True)
        beside.rename(folder)
    unfinished.remove()
