"""What run.py does: two systems beside the first stage, each alone and interpolated with it, in one table."""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from files import held, versions, write_json, write_text
from omegaconf import DictConfig, OmegaConf
from results import plain, row_config
from rows import Recipe, Row, Task, load_task, make_row
from unfinished import Unfinished

from socialgraph import ranking
from socialgraph.data import GraphBuilder, write_run
from socialgraph.data.collection import Run
from socialgraph.ranking import processes

log = logging.getLogger("socialgraph")


@dataclass
class System:
    """A line of the table: what was ranked, and how long a document took."""

    name: str
    dev: Run
    test: Run
    seconds: float | None = None


def compare(config: DictConfig, folder: Path, started: float) -> None:
    """Run the whole comparison and write everything into ``folder``; a run that was killed goes on there.

    Raises:
        OutputError: another run writes there, or it cannot be written.
    """
    with held(folder) as place:
        compare_there(config, place, started)


def compare_there(config: DictConfig, folder: Path, started: float) -> None:
    """Do it, with the folder held."""
    logging.captureWarnings(True)
    write_text(folder / "config.yaml", OmegaConf.to_yaml(config, resolve=True))
    write_json(folder / "versions.json", versions())
    log.info("results go to %s", folder)
    recipes = {part: Recipe(config[part]) for part in ("baseline", "recipe")}
    task = load_task(config)
    first = System(task.first_stage, task.dev.candidates or {}, task.test.candidates or {})
    systems = {first.name: first}
    for part, recipe in {recipe.name: (part, recipe) for part, recipe in recipes.items()}.values():
        unfinished = Unfinished(folder / "unfinished" / plain(recipe.name), row_config(config, part))
        row = make_row(config, recipe, task, unfinished, folder / "models")
        write_json(folder / "training" / f"{row.name}.json", row.training)
        for system in alone_and_mixed(row, first, task, config.measures[0]):
            systems[system.name] = system
        for system in systems.values():
            name = system.name.replace(" ", "")
            if processes.is_first():
                write_run(folder / "runs" / f"{name}.dev.txt", system.dev, name)
                write_run(folder / "runs" / f"{name}.test.txt", system.test, name)
        if recipe.circles is not None and row.builder is not None and processes.is_first():
            picture(row.builder, task, folder / "graph.png")

    measures = list(config.measures)
    results = {name: ranking.evaluate(task.test.qrels, system.test, measures) for name, system in systems.items()}
    write_json(folder / "measures.json", {name: result.mean for name, result in results.items()})
    write_json(folder / "measures_per_query.json", {name: result.per_query for name, result in results.items()})
    table = (
        f"{task.collection.name}: {len(task.test.qrels)} test queries, {config.trainer.groups} training groups, "
        f"documents of {lengths(config)} word pieces\n\n"
        f"{markdown(list(systems.values()), results, measures[:2], recipes['baseline'].name)}"
    )
    write_text(folder / "table.md", table + "\n")
    if processes.is_first():
        print(f"\n{table}\n", flush=True)
    shutil.rmtree(folder / "unfinished", ignore_errors=True)
    log.info("done in %.0f s; everything is in %s", time.perf_counter() - started, folder)


def alone_and_mixed(row: Row, first: System, task: Task, measure: str) -> list[System]:
    """Return a row as it is, and interpolated with the first stage by the weight that is best on dev."""
    alone = System(row.name, row.dev.run, row.test.run, row.test.seconds)
    if row.builder is None:  # a first stage itself
        return [alone]
    weight = ranking.choose_weight(first.dev, row.dev.run, task.dev.qrels, measure)
    log.info("%s: weight of %s in the interpolation, chosen on dev: %.2f", row.name, first.name, weight)
    dev, test = (ranking.interpolate(*runs, weight) for runs in ((first.dev, row.dev.run), (first.test, row.test.run)))
    return [alone, System(f"{row.name} + {first.name}", dev, test, row.test.seconds)]


def lengths(config: DictConfig) -> str:
    """Return how many word pieces of a document the two systems read."""
    read = dict.fromkeys(recipe.document_length for recipe in (config.baseline, config.recipe))
    return " and ".join(map(str, read))


def picture(builder: GraphBuilder, task: Task, path: Path) -> None:
    """Draw the graph of the first test query's best relevant document, or of its first candidate."""
    from socialgraph.inspect import draw

    query_id, scores = next(iter((task.test.candidates or {}).items()))
    relevant = [document for document in scores if task.test.qrels.get(query_id, {}).get(document, 0) > 0]
    document, query = [*relevant, *scores][0], task.test.queries[query_id]
    if builder.lazy:
        builder.lazy = False  # a picture shows the edges
    graph = builder([(query_id, query, document)]).to("cpu")[0]
    title = f"How {document} looks to the query \u201c{query}\u201d"
    draw(graph, builder.tokens.words(graph.input_ids), title=title).savefig(path, dpi=150)


def markdown(systems: list[System], results: dict[str, ranking.Evaluation], measures: list[str], baseline: str) -> str:
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
