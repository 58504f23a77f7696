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
from collections.abc import Sequence

from omegaconf import DictConfig
from torch_geometric.data import Data

from lab.describe import drawn
from lab.outcome import Outcome, Ranked
from lab.plan import Run
from lab.recipe import Recipe
from lab.task import Task, Tasks
from socialgraph.data import Tokens, WeightCache
from socialgraph.data.collection import hash_fraction
from socialgraph.data.evidence import Evidence
from socialgraph.data.graph import circle_size
from socialgraph.errors import InputError


def look(run: Run, tasks: Tasks) -> Outcome:
    """Gather the circles of the relevant documents and say what of the evidence they hold.

    Raises:
        InputError: no question of the split has evidence that is known.
    """
    began, task = time.perf_counter(), tasks.of(run.config)
    recipe = Recipe(run.config.recipe)
    builder = recipe.builder(run.config, task, WeightCache.at())
    places = known_places(run.config, task, builder.tokens, run.amount)
    queries = task.collection[task.test_name].queries
    pairs = [(query_id, queries[query_id], place.document_id) for query_id, place in places.items()]
    measured: dict[str, dict[str, float]] = {}
    spent: dict[str, float] = {}
    budget = run.config.trainer.token_budget
    for batch, graph in drawn(builder, pairs, budget, f"evidence, {run.row.label}", spent):
        for (query_id, _, _), document in zip(batch, graph.cpu().to_data_list(), strict=True):
            for name, value in measures(document, places[query_id].start, places[query_id].end).items():
                measured.setdefault(name, {})[query_id] = value
    clusters = {query_id: place.document_id for query_id, place in places.items()}
    seconds = time.perf_counter() - began
    also = {"clusters": clusters, "graph_seconds_per_document": spent["graph"] / len(pairs)}
    test = Ranked({}, seconds / len(pairs), measured)  # nothing is ranked
    return Outcome(recipe.name, {task.test_name: test}, seconds=seconds, also=also)


def known_places(config: DictConfig, task: Task, tokens: Tokens, amount: int) -> dict[str, Evidence]:
    """Return where the evidence of some test questions stands, in word pieces of title and text.

    Of those that are read so far the questions with the lowest hash are asked.

    Raises:
        InputError: there is none.
    """
    where, asked = task.evidence(config.data), task.collection[task.test_name]
    places: dict[str, Evidence] = {}
    for query_id in sorted(asked.queries, key=hash_fraction):
        place = where.get(query_id)
        if place is not None and place.document_id in asked.relevant(query_id) and len(places) < amount:
            place = place.in_full_text(task.collection.documents[place.document_id], tokens)
            if place.start < tokens.max_document_length:
                places[query_id] = place
    if not places:
        raise InputError(
            f"{config.data.label}, split {task.test_name}: where the evidence stands is known of no question; "
            "level=reading goes without"
        )
    return places


def measures(graph: Data, start: int, end: int) -> dict[str, float]:
    """Return the measures of a document, see the module.

    Args:
        graph: of the document, with circles.
        start: the evidence's first node.
        end: the node behind its last.
    """
    evidence = set(range(start, min(end, graph.input_ids.numel())))
    circles = [set(nodes.tolist()) for nodes in graph.circle_index[0].split(circle_size(graph).tolist())]
    fullest = sorted(circles, key=lambda circle: len(circle & evidence), reverse=True)  # of equals the first

    def share(some: Sequence[set[int]]) -> float:
        """Return the share of the evidence that some circles hold together."""
        return len(evidence.intersection(set().union(*some))) / max(1, len(evidence))

    words = len(set().union(*circles)) / max(1, graph.input_ids.numel())
    members = sum(map(len, circles))
    runs = sum(node - 1 not in circle for circle in circles for node in circle)
    return {
        "lift": share(circles) - words,
        "best circle": share(fullest[:1]),
        "best two": share(fullest[:2]),
        "run": members / max(1, runs),
        "sequences": len(circles),
        "words": members,
    }
