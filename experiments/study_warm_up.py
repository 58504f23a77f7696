"""The backbone of all rows learns to read a passage for a query first: it was never asked for that.

Passages of ``passage`` word pieces, each from where the evidence of a training question begins. The relevant one holds
the evidence of the query itself, the others that of questions about its first-stage candidates: all begin where
questions are asked, so a passage is not told by its kind. Dev and test questions are not looked at, and train
candidates hold no document that is relevant to one.
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import torch
from evidence import Evidence
from files import write_json
from hydra.utils import instantiate
from omegaconf import DictConfig
from rows import Recipe, Task, graph_builder, train
from tqdm import tqdm
from transformers import set_seed
from unfinished import Unfinished

from socialgraph.backbone import load_tokenizer
from socialgraph.data import Collection, Document, Split, TrainingGroups
from socialgraph.data.collection import Run, hash_fraction
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
    candidates: Run = {}
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


def passage_id(document_id: str, start: int) -> str:
    """Return the name of the passage of a document that begins at a word piece."""
    return f"{document_id}@{start}"


def warm_up(
    config: DictConfig, wanted: dict[str, Any], collection: Collection, evidence: dict[str, Evidence], folder: Path
) -> dict[str, Any]:
    """Train a backbone on passages and write it as a BERT; return what is known of the training.

    A folder that is there, trained in the same way, is taken as it is.

    Args:
        config: the resolved configuration of run.py, with the recipe ``firstp`` at the length of a passage.
        wanted: what the backbone depends on.
        collection: with candidates for its training split.
        evidence: of the training questions.
        folder: it becomes a BERT's: config.json, model.safetensors, tokenizer; score.safetensors; and warm_up.json.
    """
    facts = folder / "warm_up.json"
    found: dict[str, Any] | None = processes.from_first(json.loads(facts.read_text()) if facts.exists() else None)
    if found is not None and found["config"] == wanted:
        return found
    pieces = passages(collection, config.data.splits.train, evidence, config.backbone, config.recipe.document_length)
    task = Task(pieces, pieces["train"], pieces["train"], {"train": pieces["train"]}, "first stage")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    recipe = Recipe(config.recipe)
    set_seed(config.seed)
    builder = graph_builder(config, recipe, task, device)
    model = instantiate(recipe.config.model).to(device)
    groups = TrainingGroups(task.train, config.trainer.groups, config.trainer.negatives, config.seed)
    log.info("warming up %s on %d groups of passages of %s", config.backbone, len(groups), collection.name)
    unfinished = Unfinished(folder.with_name(f"{folder.name}.unfinished"), wanted)
    training = unfinished.trained(
        model, lambda: train(config, recipe.config, task, model, builder, groups, unfinished.training)
    )
    value = {"seconds": training.seconds, "training": training.log, "config": wanted}
    log.info("warmed up in %.0f s", training.seconds)
    if processes.is_first():
        beside = folder.with_name(f".{folder.name}.part")
        shutil.rmtree(beside, ignore_errors=True)
        save_as_bert(model, beside)
        write_json(beside / facts.name, value)
        shutil.rmtree(folder, ignore_errors=True)
        beside.rename(folder)
    unfinished.remove()
    return json.loads(json.dumps(value))
