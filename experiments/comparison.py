"""What run.py does, step by step: collection, systems, training, re-ranking, table."""

from __future__ import annotations

import inspect
import json
import logging
import platform
import time
import warnings
from collections.abc import Callable
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
from socialgraph.data import Collection, GraphBuilder, TermStatistics, Tokens, TrainingGroups, read_run, write_run
from socialgraph.data.collection import Queries, Run, hash_fraction
from socialgraph.data.files import atomic_write
from socialgraph.partition import Partition, Windows

log = logging.getLogger("socialgraph")


@dataclass
class System:
    """A row of the table: what was ranked, and how long a document took."""

    name: str
    dev: Run
    test: Run
    seconds: float | None = None


def compare(config: DictConfig, folder: Path, started: float) -> None:
    """Run the whole comparison and write everything into ``folder``."""
    logging.captureWarnings(True)
    warnings.filterwarnings("ignore", message=".*pin_memory.*")
    write_text(folder / "config.yaml", OmegaConf.to_yaml(config, resolve=True))
    write_json(folder / "versions.json", versions())
    log.info("results go to %s", folder)
    collection, first_stage = load(config)
    train, dev, test = (collection[config.data.splits[part]] for part in ("train", "dev", "test"))
    dev_queries = some(dev.queries, config.data.queries.dev)
    test_queries = some(test.queries, config.data.queries.test)
    qrels = {q: test.qrels[q] for q in test_queries if q in test.qrels}
    dev_qrels = {q: dev.qrels[q] for q in dev_queries if q in dev.qrels}
    first = System(
        first_stage,
        {q: dev.candidates[q] for q in dev_queries if q in dev.candidates},
        {q: test.candidates[q] for q in test_queries if q in test.candidates},
    )

    device = "cuda" if torch.cuda.is_available() else "cpu"
    bf16 = has_bf16(device) if config.trainer.bf16 == "auto" else bool(config.trainer.bf16)
    log.info("%s, %s, %d threads", device, "bfloat16" if bf16 else "float32", torch.get_num_threads())
    tokens = Tokens(config.model.backbone, config.document_length, config.query_length)
    documents = tqdm(collection.documents.values(), desc="reading", unit="doc", total=len(collection.documents))
    statistics = TermStatistics.count((tokens.document(document) for document in documents), tokens.vocab_size)
    groups = TrainingGroups(train, config.trainer.groups, config.trainer.negatives, config.seed)
    passages, circles = Windows(config.window), partition(config.partition)
    edges = instantiate(config.edges, _convert_="all")

    systems = [first]
    recipes: dict[str, tuple[Callable[[], torch.nn.Module], Any, Any]] = {
        f"PARADE-{config.baseline.readout}": (lambda: instantiate(config.baseline), None, None),
        f"Socialformer-{short(circles)}": (lambda: instantiate(config.model), edges, circles),
    }
    for name, (build, its_edges, its_circles) in recipes.items():
        set_seed(config.seed)
        model = build().to(device)
        builder = GraphBuilder(
            collection.documents, tokens, statistics, its_edges, its_circles, passages, config.seed, device
        )
        log.info("%s: %.1f M parameters", name, sum(p.numel() for p in model.parameters()) / 1e6)
        began = time.perf_counter()
        history = ranking.train(
            model, builder, groups, train.queries, folder / "checkpoints" / name,
            bf16=bf16, use_cpu=device == "cpu", seed=config.seed, **OmegaConf.to_container(config.trainer.arguments),
        )  # fmt: skip
        log.info("%s: trained on %d groups in %.0f s", name, len(groups), time.perf_counter() - began)
        write_json(folder / "training" / f"{name}.json", history)
        model.save_pretrained(folder / "models" / name)

        def rank(queries: Queries, candidates: Run, model: Any = model, builder: Any = builder) -> Run:
            return ranking.rerank(model, builder, queries, candidates, config.trainer.token_budget, bf16)

        system = System(name, rank(dev_queries, first.dev), {})
        began = time.perf_counter()
        system.test = rank(test_queries, first.test)
        system.seconds = (time.perf_counter() - began) / max(1, sum(map(len, system.test.values())))
        systems.append(system)
        weight = ranking.choose_weight(first.dev, system.dev, dev_qrels, config.measures[0])
        log.info("%s: %.2f of %s when interpolated (chosen on dev)", name, weight, first.name)
        mixed = (
            ranking.interpolate(run, mine, weight) for run, mine in ((first.dev, system.dev), (first.test, system.test))
        )
        systems.append(System(f"{name} + {first.name}", *mixed, system.seconds))
        for done in systems:
            write_run(folder / "runs" / f"{file_name(done.name)}.dev.txt", done.dev, file_name(done.name))
            write_run(folder / "runs" / f"{file_name(done.name)}.test.txt", done.test, file_name(done.name))

    picture(builder, test_queries, qrels, first.test, folder / "graph.png")
    results = {system.name: ranking.evaluate(qrels, system.test, list(config.measures)) for system in systems}
    write_json(folder / "measures.json", {name: result.mean for name, result in results.items()})
    write_json(folder / "measures_per_query.json", {name: result.per_query for name, result in results.items()})
    table = markdown(systems, results, list(config.measures)[:2], next(iter(recipes)))
    head = (
        f"{collection.name}: {len(qrels)} test queries, {config.data.depth} candidates, {len(groups)} training groups"
    )
    write_text(folder / "table.md", f"{head}\n\n{table}\n")
    print(f"\n{head}\n\n{table}\n")
    log.info("done in %.0f s; everything is in %s", time.perf_counter() - started, folder)


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


def some(queries: Queries, amount: int | None) -> Queries:
    """Return that many queries, those with the lowest hash, in their own order."""
    chosen = set(sorted(queries, key=hash_fraction)[:amount])
    return {query_id: text for query_id, text in queries.items() if query_id in chosen}


def has_bf16(device: str) -> bool:
    """Tell whether bfloat16 is computed in hardware; elsewhere it is slower than float32."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    found = torch.cpu.get_capabilities()
    return bool(found.get("avx512_bf16") or found.get("amx_bf16") or found.get("bf16"))


def picture(builder: GraphBuilder, queries: Queries, qrels: Any, candidates: Run, path: Path) -> None:
    """Draw the graph of the first test query's relevant document."""
    from socialgraph.inspect import draw

    query_id = next((q for q in queries if set(qrels.get(q, {})) & set(candidates.get(q, {}))), next(iter(queries)))
    document = next(iter(set(qrels.get(query_id, {})) & set(candidates[query_id])), next(iter(candidates[query_id])))
    graph = builder([(query_id, queries[query_id], document)]).to("cpu")[0]
    title = f"{document}, for the query: {queries[query_id]}"
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


def file_name(system: str) -> str:
    """Return a system's name as a file or tag without spaces."""
    return system.replace(" ", "")


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
