"""What table1.py and table2.py do: run the rows that are not finished, then write the table."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from files import held, write_text
from hydra import compose
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf
from report import Line, csv_table, latex, lines, markdown
from results import RowFiles, results_folder, row_config
from rows import Recipe, Row, Task, load_task, make_row
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm
from transformers import set_seed
from unfinished import Unfinished

from socialgraph.data import WeightCache
from socialgraph.errors import OptionError
from socialgraph.ranking import processes

log = logging.getLogger("socialgraph")

#: options of the tables, which run.py does not have
OWN = ("rows", "seeds", "keep_models", "results", "size", "table")


def make_table(config: DictConfig, overrides: list[str]) -> None:
    """Run what is to be run and write the table.

    Args:
        config: of the table.
        overrides: what the user typed; all that run.py knows goes to every row, after the row's own.

    Raises:
        OptionError: the table has no such row.
        OutputError: another run writes the same results, or they cannot be written.
    """
    with held(results_folder(config)) as place:
        write_table(config, lines(config, finished(config, overrides, place)))


def finished(config: DictConfig, overrides: list[str], place: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that are finished with all their seeds, those that had to be run among them."""
    logging.captureWarnings(True)
    split = config.data.splits.test
    named = {row: entry for group in config.table.groups.values() for row, entry in group.items()}
    chosen = list(named) if config.rows is None else list(config.rows)
    strangers = [row for row in chosen if row not in named]
    if strangers:
        raise OptionError(f"{config.table.name} has no row {strangers[0]!r}; there are: {', '.join(named)}")
    theirs = [override for override in overrides if topic(override).split(".")[0] not in OWN]
    tasks: dict[str, Task] = {}
    found: dict[str, list[dict[str, Any]]] = {}
    with (
        logging_redirect_tqdm(),
        tqdm(
            total=len(chosen) * len(config.seeds), desc=config.table.name, unit="row", disable=not processes.is_first()
        ) as bar,
    ):
        for row, entry in named.items():
            for seed in config.seeds:
                own = [*config.size.overrides, *entry.overrides, *theirs, f"seed={seed}"]
                typed = latest([f"measures={list(config.measures)}", *own])
                one = compose("config", typed)
                files = RowFiles(place, row, seed)
                models = place / "models" / f"{row}.{seed}" if config.keep_models else None
                made = finished_row({split: files}, one, {split: row_config(one)}, tasks, models, run=row in chosen)
                if (value := made[split]) is not None:
                    found.setdefault(row, []).append(value)
                bar.update(row in chosen)
    complete = {row: values for row, values in found.items() if len(values) == len(config.seeds)}
    left_out = [row for row in named if row not in complete]
    if left_out:
        log.info("not finished under this configuration, so not in the table: %s", ", ".join(left_out))
    return complete


def finished_row(
    files: dict[str, RowFiles],
    one: DictConfig,
    wanted: dict[str, dict[str, Any]],
    tasks: dict[str, Task],
    models: Path | None = None,
    run: bool = True,
    also: Callable[[Row, Task], dict[str, Any]] | None = None,
    cache: WeightCache | None = None,
) -> dict[str, dict[str, Any] | None]:
    """Return a row's JSON for each test split: those that stand, or those of running it; None if it may not be run.

    A row that was killed goes on where it was, see :class:`unfinished.Unfinished`.

    Args:
        files: test split -> where the row lies.
        one: the configuration that it is run with.
        wanted: test split -> what the row depends on, see :func:`results.row_config`.
        tasks: the collections that are loaded already, by :func:`task_of`.
        models: folder where its model is kept; None: nowhere.
        run: whether it may be run.
        also: says what else is to be kept of it.
        cache: see :func:`rows.make_row`.
    """
    found = processes.from_first({split: files[split].read(wanted[split]) for split in files})
    values = {split: value for split, (value, _) in found.items()}
    if not run or None not in values.values():
        return values
    first = next(split for split in values if values[split] is None)
    log.info("%s: %s; running", files[first].name, found[first][1])
    set_seed(one.seed)  # for edges and circles that are born at random
    recipe, task = Recipe(one.recipe), task_of(one, tasks)
    unfinished = Unfinished(files[first].unfinished, {"splits": list(files), **wanted[first]})
    made = make_row(one, recipe, task, unfinished, models, cache)
    more = also(made, task) if also else {}
    for split, ranked in made.tests.items():
        values[split] = files[split].write(made, ranked, wanted[split], task.collection.name, **more)
        shown = ", ".join(f"{name} {sum(v.values()) / max(1, len(v)):.3f}" for name, v in ranked.measures.items())
        log.info("%s: %s -> %s", files[split].name, shown, files[split].json)
    unfinished.remove()
    return values


def task_of(one: DictConfig, tasks: dict[str, Task]) -> Task:
    """Return what a configuration ranks; each is loaded once."""
    key = json.dumps(OmegaConf.to_container(one.data, resolve=True), sort_keys=True)
    if key not in tasks:
        tasks[key] = load_task(one)
    return tasks[key]


def topic(override: str) -> str:
    """Return what an override is about: "partition.k" of "partition.k=4"."""
    (parsed,) = OverridesParser.create().parse_overrides([override])
    return parsed.get_key_element().lstrip("+~")


def latest(overrides: list[str]) -> list[str]:
    """Return the overrides without those that a later one on the same matter replaces."""
    return list({topic(override): override for override in overrides}.values())


def write_table(config: DictConfig, table: list[Line]) -> None:
    """Write the table in three formats and print it."""
    path = results_folder(config) / config.table.name
    for suffix, text in ((".md", markdown(config, table)), (".tex", latex(config, table)), (".csv", csv_table(table))):
        write_text(path.with_name(path.name + suffix), text)
    if processes.is_first():
        print(f"\n{markdown(config, table)}", flush=True)
    log.info("written to %s.md, .tex and .csv", path)
