"""What compare.py does: run the variants that are not finished, look at their circles, write table and plot."""

from __future__ import annotations

import hashlib
import inspect
import logging
import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from axes import Axis, Variant, axis, variants
from files import held, write_text
from hydra import compose
from hydra.errors import HydraException
from hydra.utils import get_object
from omegaconf import DictConfig
from results import RowFiles, results_folder, row_config
from rows import Recipe, Row, Task, graph_builder
from sweep_report import csv_table, lines, markdown, plot
from tables import finished_row, latest, task_of, topic
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from socialgraph.data import GraphBuilder
from socialgraph.data.collection import hash_fraction
from socialgraph.data.weight_cache import WeightCache
from socialgraph.edges import SocialEdges
from socialgraph.errors import OptionError
from socialgraph.inspect.describe import describe
from socialgraph.ranking import processes
from socialgraph.ranking.rerank import batches

log = logging.getLogger("socialgraph")

#: options of compare.py, which run.py does not have
OWN = ("axes", "baseline", "seeds", "results", "name", "size", "sample", "statistics", "level", "measures")

#: a test query's id and text, and a candidate's id
Pair = tuple[str, str, str]


def make_sweep(config: DictConfig, axes: Sequence[Axis], overrides: list[str]) -> None:
    """Run what is to be run, write table and plot.

    Args:
        config: compare.yaml's.
        axes: what is varied; none: ``config.axes``.
        overrides: what else the user typed; all that run.py knows goes to every variant.

    Raises:
        OptionError: an option that is not there, or the same for all variants.
        OutputError: another run writes the same results, or they cannot be written.
    """
    with held(results_folder(config) / config.name) as place:
        sweep(config, axes, overrides, place)


def sweep(config: DictConfig, axes: Sequence[Axis], overrides: list[str], place: Path) -> None:
    """Do it, with the results' folder held."""
    logging.captureWarnings(True)
    axes = list(axes) or [found for found in map(axis, config.axes) if found is not None]
    strangers = [one.name for one in axes if one.name in OWN]
    if strangers:
        raise OptionError(f"{strangers[0]} is the same for all variants; a list is written {strangers[0]}=[...]")
    chosen = variants(axes)
    baseline = baseline_of(chosen, config.baseline)
    theirs = [override for override in overrides if topic(override).split(".")[0] not in OWN]
    ones = {(v, seed): composed(config, chosen[v], theirs, seed) for v in range(len(chosen)) for seed in config.seeds}
    wanted = {key: row_config(one) | {"sample": config.sample, "sources": sources(one)} for key, one in ones.items()}
    split = config.data.splits.test
    files = {(v, seed): RowFiles(place, chosen[v].file, seed) for v, seed in ones}
    tasks: dict[str, Task] = {}
    for (v, seed), one in ones.items():
        if seed == config.seeds[0] and files[v, seed].read(wanted[v, seed])[0] is None:
            try_out(one, task_of(one, tasks))
    finished: list[list[dict[str, Any]]] = [[] for _ in chosen]
    with (
        logging_redirect_tqdm(),
        tqdm(total=len(ones), desc="comparing", unit="row", disable=not processes.is_first()) as bar,
    ):
        for (v, seed), one in ones.items():
            bar.set_postfix_str(chosen[v].label)
            also = partial(look, one, config.sample)
            value = finished_row({split: files[v, seed]}, one, {split: wanted[v, seed]}, tasks, also=also)[split]
            if value is not None:
                finished[v].append(value)
            bar.update()
    table = lines(config, chosen, finished, baseline)
    write_text(place / "table.md", markdown(config, table, baseline))
    write_text(place / "table.csv", csv_table(table))
    if processes.is_first():
        plot(table, config.measures[0], baseline, place / "quality-and-cost.png")
        print(f"\n{markdown(config, table, baseline)}", flush=True)
    log.info("written to %s: table.md, table.csv and quality-and-cost.png", place)


def composed(config: DictConfig, variant: Variant, theirs: list[str], seed: int) -> DictConfig:
    """Return the configuration that a variant and seed is run with.

    Raises:
        OptionError: the variant has no such option.
    """
    measures = f"measures={list(config.measures)}"
    size = [
        *config.size.overrides,
        f"document_length={config.size.compared}",
        f"++partition.k={config.size.compared_circles}",
    ]
    try:
        return compose("config", latest([measures, *size, *theirs, *variant.overrides, f"seed={seed}"]))
    except HydraException as error:
        raise OptionError(f"{variant.label}: {str(error).splitlines()[0]}") from error


def baseline_of(chosen: Sequence[Variant], named: Any) -> int:
    """Return the place of the first variant that has all the values that the baseline names.

    Raises:
        OptionError: there is none.
    """
    values = [str(value) for value in ([named] if isinstance(named, str | int | float) else named or [])]
    for place, variant in enumerate(chosen):
        if set(values) <= set(variant.values.values()):
            return place
    there = "; ".join(variant.label for variant in chosen)
    raise OptionError(f"baseline={','.join(values)} is not among what is compared: {there}")


def sources(one: DictConfig) -> dict[str, str]:
    """Return hashes of the files that define classes from outside the package: an edited class is another row."""
    return {
        name: hashlib.sha256(Path(inspect.getfile(get_object(name))).read_bytes()).hexdigest()
        for name in sorted(set(targets(one.recipe)))
        if name.split(".")[0] != "socialgraph"
    }


def targets(config: Any) -> Iterator[str]:
    """Yield the classes that a configuration names."""
    if isinstance(config, DictConfig):
        if "_target_" in config and "." in config._target_:
            yield config._target_
        for key in config:
            yield from targets(config[key])


def try_out(one: DictConfig, task: Task) -> None:
    """Build one graph of a variant, so that a mistake shows before hours of training."""
    recipe = Recipe(one.recipe)
    if one.recipe.first_stage is None:
        graph_builder(one, recipe, task, "cpu")(sampled(task, 1))


def sampled(task: Task, amount: int) -> list[Pair]:
    """Return some candidates of the test queries, those with the lowest hash, the same for all variants."""
    split = task.test
    pairs = [
        (query_id, split.queries[query_id], document)
        for query_id, scores in (split.candidates or {}).items()
        for document in scores
    ]
    return sorted(pairs, key=lambda pair: hash_fraction(f"{pair[0]} {pair[2]}"))[:amount]


def look(one: DictConfig, amount: int, row: Row, task: Task) -> dict[str, Any]:
    """Return what a row's graphs look like, a value for each sampled document, and what building them costs."""
    builder = row.builder
    if builder is None or builder.joint:  # no circles
        return {"statistics": {}, "graph_seconds_per_document": None}
    pairs = sampled(task, amount)
    seconds = graph_seconds(builder, pairs, one.trainer.token_budget)
    builder.lazy = False  # whoever looks needs the edges
    edges = builder.edges if isinstance(builder.edges, SocialEdges) else None
    found = [
        describe(builder([pair])[0], edges=edges)
        for pair in tqdm(pairs, desc="describing", unit="doc", leave=False)
    ]  # fmt: skip
    names = dict.fromkeys(name for values in found for name in values)
    statistics = {name: [known(values.get(name)) for values in found] for name in names}
    return {"statistics": statistics, "graph_seconds_per_document": seconds}


def known(value: float | None) -> float | None:
    """Return None for what is not defined: JSON has no NaN."""
    return None if value is None or not math.isfinite(value) else float(value)


def graph_seconds(builder: GraphBuilder, pairs: Sequence[Pair], token_budget: int) -> float:
    """Return the seconds for each graph, in batches as in re-ranking, nothing known of the pairs before."""
    cache, builder.cache = builder.cache, WeightCache()
    documents = [document for _, _, document in pairs]
    length = dict(zip(documents, builder.tokens.lengths(documents, builder.documents), strict=True))
    pairs = sorted(pairs, key=lambda pair: -length[pair[2]])
    began = time.perf_counter()
    for batch in batches([length[document] for _, _, document in pairs], token_budget):
        builder(pairs[batch.start : batch.stop])
    if builder.device.type == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    builder.cache = cache
    return seconds / max(1, len(pairs))
