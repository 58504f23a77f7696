"""Level 1, evidence: which words of the known answer do the circles hold, above chance? Nothing reads them.

Of each question and its relevant document, where the answer's place is known, with E the answer's word pieces and N
the document's:

* ``lift``: the share of E that is in a circle less the share of N that is. Circles of random members have 0.
* ``best circle``, ``best two``: the share of E in the circle that holds most of it, and in the first two of that order.
  A model that scores circles one by one can find no more than the former.
* ``run``: mean length of neighbours in the text that stand together in a circle: what BERT gets to read in one piece.

Questions whose answer begins behind the word pieces that are read are not asked. Questions about one document are not
independent, so intervals and tests count documents (``clusters``).
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import index_to_mask, scatter

from lab.execute import System
from lab.levels.runs import built
from lab.rows import Run
from lab.task import Task
from socialgraph.data import Cache, Tokens
from socialgraph.data.collection import Run as Ranking
from socialgraph.data.collection import hash_fraction
from socialgraph.data.evidence import Evidence
from socialgraph.data.graph import circle_document, circle_size
from socialgraph.errors import InputError
from socialgraph.ranks import places, ranks


def look(run: Run, system: System, task: Task) -> tuple[Ranking, dict[str, Any]]:
    """Gather the circles of the relevant documents and say what of the evidence they hold; nothing is ranked.

    Raises:
        InputError: no question of the split has evidence that is known.
    """
    began = time.perf_counter()
    builder = system.builder(task, Cache.on_disk())
    known = known_places(task, builder.tokens, run.config.levels.evidence.amount)
    queries = task.collection[task.data.splits.test].queries
    pairs = [(query_id, queries[query_id], place.document_id) for query_id, place in known.items()]
    measured: dict[str, dict[str, float]] = {}
    spent: dict[str, float] = {}
    budget = run.config.trainer.token_budget
    for batch, graph in built(builder, pairs, budget, f"evidence, {run.row.label}", spent):
        bounds = torch.tensor([[known[query_id].start, known[query_id].end] for query_id, _, _ in batch])
        for name, values in measures(graph, bounds.to(graph.batch.device)).items():
            measured.setdefault(name, {}).update(zip((q for q, _, _ in batch), values.tolist(), strict=True))
    return {}, {
        "measures": measured,
        "clusters": {query_id: place.document_id for query_id, place in known.items()},
        "seconds_per_document": (time.perf_counter() - began) / len(pairs),
        "graph_seconds_per_document": spent["graph"] / len(pairs),
    }


def known_places(task: Task, tokens: Tokens, amount: int) -> dict[str, Evidence]:
    """Return where the evidence of some test questions stands, in word pieces of title and text.

    Of those that are read so far the questions with the lowest hash are asked.

    Raises:
        InputError: there is none.
    """
    where, asked = task.evidence, task.collection[task.data.splits.test]
    known: dict[str, Evidence] = {}
    for query_id in sorted(asked.queries, key=hash_fraction):
        place = where.get(query_id)
        if place is not None and place.document_id in asked.relevant(query_id) and len(known) < amount:
            place = place.in_full_text(task.collection.documents[place.document_id], tokens)
            if place.start < tokens.max_document_length:
                known[query_id] = place
    if not known:
        raise InputError(
            f"{task.data.label}, split {task.data.splits.test}: where the evidence stands is known of no question; "
            "level=reading goes without"
        )
    return known


def measures(graph: Data, bounds: Tensor) -> dict[str, Tensor]:
    """Return the measures of each document, each ``[B]``, see the module.

    Args:
        graph: a batch with circles.
        bounds: the evidence's first node in its document and the one behind the last, ``[B, 2]``.
    """
    batch, number = graph.batch, bounds.size(0)
    length = torch.bincount(batch, minlength=number)
    place = places(batch)
    evidence = (place >= bounds[batch, 0]) & (place < bounds[batch, 1])
    asked = torch.bincount(batch[evidence], minlength=number).clamp(min=1)
    (node, circle), document, size = graph.circle_index, circle_document(graph), circle_size(graph)
    held = scatter(evidence[node].long(), circle, dim_size=document.numel(), reduce="sum")

    def share(circles: Tensor) -> Tensor:
        """Return the share of the evidence that these circles hold together, ``[B]``."""
        inside = index_to_mask(node[circles[circle]], batch.numel()) & evidence
        return torch.bincount(batch[inside], minlength=number) / asked

    everywhere = index_to_mask(node, batch.numel())
    words = torch.bincount(batch[everywhere], minlength=number) / length.clamp(min=1)
    rank = ranks(held, document)  # of each document the circle that holds most comes first
    breaks = torch.ones_like(node, dtype=torch.bool)  # where a run of neighbours begins
    breaks[1:] = (node.diff() != 1) | (circle.diff() != 0)
    members = scatter(size, document, dim_size=number, reduce="sum")
    runs = torch.bincount(batch[node[breaks]], minlength=number)
    return {
        "lift": share(torch.ones_like(document, dtype=torch.bool)) - words,
        "best circle": share(rank < 1),
        "best two": share(rank < 2),
        "run": members / runs.clamp(min=1),
        "sequences": torch.bincount(document, minlength=number).float(),
        "words": members.float(),
    }
