"""What run.py does, step by step: collection, systems, training, re-ranking, table."""

from __future__ import annotations

import inspect
import json
import logging
import platform
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from hydra.utils import get_class, instantiate
from omegaconf import DictConfig, OmegaConf
from tqdm import tqdm
from transformers import set_seed

from socialgraph import ranking
from socialgraph.data import (
    Collection,
    GraphBuilder,
    Split,
    TermStatistics,
    Tokens,
    TrainingGroups,
    read_run,
    write_run,
)
from socialgraph.data.collection import Run, hash_fraction
from socialgraph.data.files import atomic_write
from socialgraph.edges import SocialEdges
from socialgraph.partition import Partition, Windows

log = logging.getLogger("socialgraph")


@dataclass
class System:
    """A row of the table: what was ranked, and how long a document took."""

    name: str
    dev: Run
    test: Run
    seconds: float | None = None


@dataclass
class Recipe:
    """How a system is made: its model, and which edges and circles its graphs have beside passages."""

    name: str
    model: DictConfig
    edges: SocialEdges | None = None
    circles: Partition | None = None


@dataclass
class Task:
    """What all systems share: the queries that are ranked, candidates, judgements, texts as word pieces."""

    collection: Collection
    train: Split
    dev: Split
    test: Split
    first: System
    tokens: Tokens
    statistics: TermStatistics
    groups: TrainingGroups


def compare(config: DictConfig, folder: Path, started: float) -> None:
    """Run the whole comparison and write everything into ``folder``."""
    logging.captureWarnings(True)
    write_text(folder / "config.yaml", OmegaConf.to_yaml(config, resolve=True))
    write_json(folder / "versions.json", versions())
    log.info("results go to %s", folder)
    circles = partition(config.partition)
    edges = instantiate(config.edges, _convert_="all")
    recipes = [
        Recipe(f"PARADE-{config.baseline.readout}", config.baseline),
        Recipe(f"Socialformer-{short(circles)}", config.model, edges, circles),
    ]
    task = prepare(config)
    systems = [task.first]
    for recipe in recipes:
        model, builder = trained(config, recipe, task, folder)
        systems += ranked(config, recipe, task, model, builder)
        for system in systems:
            name = system.name.replace(" ", "")
            write_run(folder / "runs" / f"{name}.dev.txt", system.dev, name)
            write_run(folder / "runs" / f"{name}.test.txt", system.test, name)
    picture(builder, task, folder / "graph.png")

    measures = list(config.measures)
    results = {system.name: ranking.evaluate(task.test.qrels, system.test, measures) for system in systems}
    write_json(folder / "measures.json", {name: result.mean for name, result in results.items()})
    write_json(folder / "measures_per_query.json", {name: result.per_query for name, result in results.items()})
    table = (
        f"{task.collection.name}: {len(task.test.qrels)} test queries, {len(task.groups)} training groups, "
        f"documents of {config.document_length} word pieces\n\n"
        f"{markdown(systems, results, measures[:2], recipes[0].name)}"
    )
    write_text(folder / "table.md", table + "\n")
    print(f"\n{table}\n", flush=True)
    log.info("done in %.0f s; everything is in %s", time.perf_counter() - started, folder)


def prepare(config: DictConfig) -> Task:
    """Load the collection, its candidates, and its texts as word pieces."""
    collection, first_stage = load(config)
    train, dev, test = (collection[config.data.splits[part]] for part in ("train", "dev", "test"))
    dev, test = some(dev, config.data.queries.dev), some(test, config.data.queries.test)
    tokens = Tokens(config.model.backbone, config.document_length, config.query_length)
    documents = tqdm(collection.documents.values(), desc="reading", unit="doc", total=len(collection.documents))
    statistics = TermStatistics.count((tokens.document(document) for document in documents), tokens.vocab_size)
    groups = TrainingGroups(train, config.trainer.groups, config.trainer.negatives, config.seed)
    return Task(collection, train, dev, test, System(first_stage, dev.candidates or {}, test.candidates or {}),
                tokens, statistics, groups)  # fmt: skip


def trained(config: DictConfig, recipe: Recipe, task: Task, folder: Path) -> tuple[torch.nn.Module, GraphBuilder]:
    """Train a system's model; return it with the builder of its graphs."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    set_seed(config.seed)
    model = instantiate(recipe.model).to(device)
    builder = GraphBuilder(
        task.collection.documents, task.tokens, task.statistics, recipe.edges, recipe.circles,
        Windows(config.window), config.seed, device,
    )  # fmt: skip
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    log.info("%s: training %.1f M parameters on %d groups, %s", recipe.name, size, len(task.groups), device)
    began, checkpoints = time.perf_counter(), folder / "checkpoints" / recipe.name
    history = ranking.train(
        model, builder, task.groups, task.train.queries, checkpoints,
        resume=config.trainer.resume and any(checkpoints.glob("checkpoint-*")),
        bf16=bf16(config), use_cpu=device == "cpu", seed=config.seed,
        **OmegaConf.to_container(config.trainer.arguments),
    )  # fmt: skip
    log.info("%s: trained in %.0f s", recipe.name, time.perf_counter() - began)
    write_json(folder / "training" / f"{recipe.name}.json", history)
    model.save_pretrained(folder / "models" / recipe.name)
    return model, builder


def ranked(
    config: DictConfig, recipe: Recipe, task: Task, model: torch.nn.Module, builder: GraphBuilder
) -> list[System]:
    """Re-rank dev and test; return the system, alone and interpolated with the first stage."""
    first, system = task.first, System(recipe.name, {}, {})
    budget = (config.trainer.token_budget, bf16(config))
    system.dev = ranking.rerank(model, builder, task.dev.queries, first.dev, *budget)
    began = time.perf_counter()
    system.test = ranking.rerank(model, builder, task.test.queries, first.test, *budget)
    system.seconds = (time.perf_counter() - began) / max(1, sum(map(len, system.test.values())))
    weight = ranking.choose_weight(first.dev, system.dev, task.dev.qrels, config.measures[0])
    log.info("%s: weight of %s in the interpolation, chosen on dev: %.2f", recipe.name, first.name, weight)
    return [
        system,
        System(
            f"{recipe.name} + {first.name}",
            ranking.interpolate(first.dev, system.dev, weight),
            ranking.interpolate(first.test, system.test, weight),
            system.seconds,
        ),
    ]


def load(config: DictConfig) -> tuple[Collection, str]:
    """Return the collection with candidates for every split, and what the test candidates' source is called."""
    collection = instantiate(config.data.collection)
    for split, path in config.data.runs.items():
        collection = collection.with_candidates(split, read_run(path))
    retriever = instantiate(config.data.retriever)
    given = collection[config.data.splits.test].has_candidates
    return (
        ranking.retrieve_candidates(collection, retriever, config.data.depth),
        "first stage" if given else type(retriever).__name__,
    )


def partition(config: DictConfig) -> Partition:
    """Return the partition, leaving out options of the default that a class of the user's own does not take."""
    taken = inspect.signature(get_class(config._target_)).parameters
    names = [name for name in config if not str(name).startswith("_")]
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values()):
        return instantiate(config)
    left_out = [name for name in names if name not in taken]
    if left_out:
        log.warning("%s takes no %s: left out", config._target_, ", ".join(map(str, left_out)))
    return instantiate({name: config[name] for name in config if name not in left_out})


def short(circles: Partition) -> str:
    """Return "edge" for EdgeCircles, and so on."""
    return type(circles).__name__.removesuffix("Circles").lower()


def some(split: Split, amount: int | None) -> Split:
    """Return a split with that many of its queries, those with the lowest hash, in their own order."""
    chosen = set(sorted(split.queries, key=hash_fraction)[:amount])
    return Split(
        {query_id: text for query_id, text in split.queries.items() if query_id in chosen},
        {query_id: grades for query_id, grades in split.qrels.items() if query_id in chosen},
        {query_id: scores for query_id, scores in (split.candidates or {}).items() if query_id in chosen},
    )


def bf16(config: DictConfig) -> bool:
    """Tell whether to compute in bfloat16: "auto" where the hardware does; elsewhere it is slower than float32."""
    if config.trainer.bf16 != "auto":
        return bool(config.trainer.bf16)
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    found = torch.cpu.get_capabilities()
    return bool(found.get("avx512_bf16") or found.get("amx_bf16") or found.get("bf16"))


def picture(builder: GraphBuilder, task: Task, path: Path) -> None:
    """Draw the graph of the first test query's best relevant document, or of its first candidate."""
    from socialgraph.inspect import draw

    query_id, scores = next(iter(task.first.test.items()))
    relevant = [document for document in scores if task.test.qrels.get(query_id, {}).get(document, 0) > 0]
    document, query = [*relevant, *scores][0], task.test.queries[query_id]
    graph = builder([(query_id, query, document)]).to("cpu")[0]
    title = f"How {document} looks to the query \u201c{query}\u201d"
    draw(graph, builder.tokens.words(graph.input_ids), title=title).savefig(path, dpi=150)


def markdown(systems: list[System], results: dict[str, Any], measures: list[str], baseline: str) -> str:
    """Return the table. A letter marks a significant difference (paired t-test, two-sided, p < 0.05)."""
    marks = {systems[0].name: "b", baseline: "p"}
    lines = [f"| system | {' | '.join(measures)} | seconds per document |", f"|---|{'---:|' * (len(measures) + 1)}"]
    for system in systems:
        cells = []
        for measure in measures:
            mine, mark = results[system.name].per_query[measure], ""
            for other, letter in marks.items():
                if (
                    other != system.name
                    and ranking.paired_t_test(mine, results[other].per_query[measure]).significant()
                ):
                    mark += letter
            cells.append(f"{results[system.name].mean[measure]:.3f}{' ' + mark if mark else ''}")
        seconds = "-" if system.seconds is None else f"{system.seconds:.3f}"
        lines.append(f"| {system.name} | {' | '.join(cells)} | {seconds} |")
    legend = ", ".join(f"{letter}: from {name}" for name, letter in marks.items())
    return "\n".join(lines) + f"\n\nDiffers significantly (paired t-test, p < 0.05) {legend}."


def versions() -> dict[str, str]:
    """Return what a result depends on beside the configuration."""
    packages = ("socialgraph", "torch", "torch-geometric", "transformers", "ir-datasets", "ir-measures", "bm25s")
    return {"python": platform.python_version(), "machine": platform.machine()} | {p: version(p) for p in packages}


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=1) + "\n")
