"""What study.py does: run the cells that are not finished, as far as time allows, then write the report."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from evidence import read_evidence
from files import held
from omegaconf import DictConfig
from results import RowFiles, plain, row_config
from rows import Row, Task, test_splits
from study_plan import Cell, Study
from study_report import write_report
from study_warm_up import warm_up
from tables import finished_row, task_of
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from socialgraph import ranking
from socialgraph.data import WeightCache
from socialgraph.ranking import processes
from socialgraph.ranking.interpolate import choose_weight, interpolate

log = logging.getLogger("socialgraph")

#: (collection, split) -> row -> its JSON, one for each seed
Finished = dict[tuple[str, str], dict[str, list[dict[str, Any]]]]


def make_study(study: Study) -> Finished:
    """Run what is not finished and write the reports; return what is finished.

    With ``minutes`` it stops in front of the first cell that would not end in time.

    Raises:
        OutputError: another study works in the same folder, or it cannot be written.
    """
    level = logging.INFO if processes.is_first() else logging.WARNING  # of several processes one tells
    logging.basicConfig(level=level, format="%(message)s")
    logging.captureWarnings(True)
    with held(Path(study.config.work)), logging_redirect_tqdm():
        tasks: dict[str, Task] = {}
        finished = run(study, tasks)
        if study.config.report:
            for (data, split), rows in finished.items():
                ones = (study.compose(cell, study.config.backbone) for cell in study.cells if cell.data == data)
                one = next(one for one in ones if split in test_splits(one))
                write_report(study, folder_of(study, one, split), split, one, rows, task_of(one, tasks))
    return finished


def run(study: Study, tasks: dict[str, Task]) -> Finished:
    """Run what is not finished, as far as time allows, and return what is."""
    config, began = study.config, time.perf_counter()
    ones = {cell: study.compose(cell, backbone(study, cell.data)) for cell in study.cells}
    wanted = {
        cell: {split: identity(study, cell, one, split) for split in test_splits(one)} for cell, one in ones.items()
    }
    files = {
        cell: {split: RowFiles(folder_of(study, one, split), cell.entry.row, cell.seed) for split in test_splits(one)}
        for cell, one in ones.items()
    }
    found = {
        cell: {split: files[cell][split].read(wanted[cell][split])[0] for split in files[cell]} for cell in ones
    }  # fmt: skip
    took = {cell: seconds(values) for cell, values in found.items() if is_whole(values)}
    is_late = False
    with tqdm(total=len(ones), desc="study", unit="row", disable=not processes.is_first()) as bar:
        for cell, one in ones.items():
            bar.set_postfix_str(cell.name)
            if not is_whole(found[cell]) and not is_late:
                spent = time.perf_counter() - began
                is_late = config.minutes is not None and spent + expected(cell, took) > 60 * config.minutes
                is_late = processes.from_first(is_late)
                if is_late:
                    log.info("%s would not end within %g minutes: left for the next call", cell.name, config.minutes)
                else:
                    warmed_up(study, cell, one, tasks)
                    also, kept = partial(more, time.perf_counter()), cache(study, cell)
                    found[cell] = finished_row(files[cell], one, wanted[cell], tasks, also=also, cache=kept)
                    took[cell] = seconds(found[cell])
            bar.update(is_whole(found[cell]))
    left = sum(not is_whole(values) for values in found.values())
    log.info("%d of %d rows are finished%s", len(found) - left, len(found), "; call again for the rest" * (left > 0))
    finished: Finished = {}
    for cell, values in found.items():
        for split, value in values.items():
            if value is not None:
                finished.setdefault((cell.data, split), {}).setdefault(cell.entry.row, []).append(value)
    return finished


def is_whole(values: Mapping[str, Any]) -> bool:
    """Whether a row stands for all its test splits."""
    return None not in values.values()


def cache(study: Study, cell: Cell) -> WeightCache | None:
    """Return where a row finds the [CLS] attention that others have computed: the same BERT has read the same pairs.

    None for a first seed, whose times stand in the table: it computes its own.
    """
    is_timed = cell.seed == 0 and not study.tries
    return None if is_timed else WeightCache(folder=Path(study.config.work) / "weights")


def seconds(values: Mapping[str, dict[str, Any]]) -> float:
    """Return what a row took in all."""
    return max(value["seconds"] for value in values.values())


def folder_of(study: Study, one: DictConfig, split: str) -> Path:
    """Return the folder of a collection's and split's results; tries have one of their own in it."""
    folder = Path(study.config.results) / plain(one.data.label) / plain(split)
    return folder / "tries" if study.tries else folder


def backbone(study: Study, data: str) -> str:
    """Return the backbone of a collection's rows: the study's own, or the folder where it is warmed up."""
    config = study.config
    return str(Path(config.work) / "warm" / config.size / data) if config.warm_up.groups > 0 else config.backbone


def warmed_up(study: Study, cell: Cell, one: DictConfig, tasks: dict[str, Task]) -> None:
    """Make the backbone of a cell's rows, unless it is there or the row has none."""
    if study.config.warm_up.groups > 0 and one.recipe.first_stage is None:
        how = study.compose_warm_up(cell.data)
        evidence = read_evidence(how.data.path)
        folder = Path(backbone(study, cell.data))
        warm_up(how, warm_up_identity(study, cell.data), task_of(one, tasks).collection, evidence, folder)


def identity(study: Study, cell: Cell, one: DictConfig, split: str) -> dict[str, Any]:
    """Return what a cell's row depends on: its configuration and that of the warm-up, without places on a disk."""
    wanted = row_config(one, split=split)
    if one.recipe.first_stage is not None:
        wanted.pop("backbone")
    elif study.config.warm_up.groups > 0:
        wanted["warm_up"] = warm_up_identity(study, cell.data)
    return without_places(study, cell.data, one, wanted)


def warm_up_identity(study: Study, data: str) -> dict[str, Any]:
    """Return what a collection's warmed-up backbone depends on: not on what is ranked later, and how it is measured."""
    how = study.compose_warm_up(data)
    wanted = row_config(how)
    wanted["data"]["splits"] = {"train": wanted["data"]["splits"]["train"]}
    wanted["data"].pop("queries")
    wanted.pop("measures")
    return without_places(study, data, how, wanted)


def without_places(study: Study, data: str, one: DictConfig, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with names where folders were: a row stays what it is on another machine."""
    config = study.config
    text = json.dumps(wanted)
    for place, name in {
        str(one.data.path): data,
        str(one.data.root): "data",
        config.backbone: Path(config.backbone).name,
        backbone(study, data): "warmed up" if config.warm_up.groups > 0 else Path(config.backbone).name,
    }.items():
        text = text.replace(json.dumps(place), json.dumps(name))
    return json.loads(text)


def expected(cell: Cell, took: dict[Cell, float]) -> float:
    """Return how many seconds a cell will take, by those that are finished; 0 where nothing is known.

    The longest of the same row, first on the same collection, then on any; else the longest of all rows.
    """
    alike: list[Callable[[Cell], bool]] = [
        lambda other: other.entry.row == cell.entry.row and other.data == cell.data,
        lambda other: other.entry.row == cell.entry.row,
        lambda other: True,
    ]
    for is_alike in alike:
        known = [seconds for other, seconds in took.items() if is_alike(other)]
        if known:
            return max(known)
    return 0.0


def more(began: float, row: Row, task: Task) -> dict[str, Any]:
    """Return what the study keeps of a row beside its own measures: its seconds, and its mixture with the first stage.

    ``interpolated``: the weight of the first stage, which is best on dev by the first measure, and for each test split
    the measures of every query.
    """
    value: dict[str, Any] = {"seconds": time.perf_counter() - began, "interpolated": None}
    if row.parameters is not None:
        measures = list(row.dev.measures)
        weight = choose_weight(task.dev.candidates or {}, row.dev.run, task.dev.qrels, measures[0])
        mixed = {
            split: interpolate(task.tests[split].candidates or {}, ranked.run, weight)
            for split, ranked in row.tests.items()
        }
        value["interpolated"] = {
            "weight": weight,
            "measures": {
                split: ranking.evaluate(task.tests[split].qrels, run, measures).per_query
                for split, run in mixed.items()
            },
        }
    return value
