"""What the study consists of: a run for each collection, row of Tables 1 and 2, and seed (conf/study.yaml)."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hydra import compose
from omegaconf import DictConfig

from lab.plan import Row, Run, composed, identity, selected, table_rows, typed_for_rows, with_seed
from lab.task import test_splits
from socialgraph.data.files import file_name
from socialgraph.ranking import processes
from socialgraph.recipes.typed import quoted

log = logging.getLogger("socialgraph")


def study_runs(config: DictConfig) -> list[Run]:
    """Return all runs: seed after seed, so that every row is there once before any is twice.

    Raises:
        OptionError: no such row.
    """
    rows = selected(paper_rows(config), config.rows, "the study")
    typed = typed_for_rows(config)
    composed_once = [(row, configured(config, data, row, typed)) for data in config.collections for row in rows]
    return [study_run(config, row, with_seed(one, seed)) for seed in config.seeds for row, one in composed_once]


def paper_rows(config: DictConfig) -> list[Row]:
    """Return the rows of Tables 1 and 2, at the study's lengths."""
    lengths = [f"size.{name}={value}" for name, value in config.size.items() if isinstance(value, int)]
    first, second = (table_rows(compose("table", [f"table={name}", *lengths])) for name in ("table1", "table2"))
    names = [row.name for row in first]
    return [*first, *(replace(row, group="Ablations") for row in second if row.name not in names)]


def configured(config: DictConfig, data: str, row: Row, typed: Sequence[str]) -> DictConfig:
    """Return the configuration of a row on a collection, with what the user has typed for all."""
    placed = [f"data={data}", f"data.splits.test={list(config.tests[data])}"]
    if config.data_root is not None:
        placed.append(f"data.root={quoted(config.data_root)}")
    return composed([*placed, *config.size.overrides, *row.overrides, *typed], row.name)


def study_run(config: DictConfig, row: Row, one: DictConfig) -> Run:
    """Return the run of a row with a configuration, and with its seed."""
    root, splits = Path(config.results) / file_name(one.data.label), test_splits(one.data)
    # a first seed has its times in the table: it computes its own [CLS] attention
    weights = Path(config.work) / "weights" if one.seed > 0 else None
    return Run(
        row, one, {split: root / file_name(split) for split in splits},
        {split: identity(one, split) for split in splits}, weights=weights,
    )  # fmt: skip


def tables_of(runs: Sequence[Run]) -> dict[tuple[Path, str], list[Run]]:
    """Return the runs of each folder and split, those of Tables 1 and 2 in the order of the tables' groups."""
    tables: dict[tuple[Path, str], list[Run]] = {}
    for run in runs:
        for split, folder in run.folders.items():
            tables.setdefault((folder, split), []).append(run)
    groups = list(dict.fromkeys(run.row.group for run in runs))
    return {place: sorted(some, key=lambda run: groups.index(run.row.group)) for place, some in tables.items()}


class TimeLeft:
    """Whether a run would end in time, by what such runs took before."""

    def __init__(self, runs: Sequence[Run], minutes: float | None) -> None:
        self.runs, self.minutes, self.began = runs, minutes, time.perf_counter()
        self.is_late = False

    def is_enough(self, run: Run) -> bool:
        """Return whether a run would end in time. Once one would not, none is begun."""
        if self.minutes is None or self.is_late:
            return not self.is_late
        spent = time.perf_counter() - self.began
        self.is_late = processes.from_first(spent + self.expected(run) > 60 * self.minutes)
        if self.is_late:
            log.info("%s would not end within %g minutes: left for the next call", run.name, self.minutes)
        return not self.is_late

    def expected(self, run: Run) -> float:
        """Return the seconds of the longest run of the same row and collection, of the same row, or of all."""
        same_row = [other for other in self.runs if other.row.name == run.row.name]
        same = [other for other in same_row if other.config.data.label == run.config.data.label]
        for alike in (same, same_row, self.runs):
            if known := [value["seconds"] for other in alike for value in (other.finished() or {}).values()]:
                return max(known)
        return 0.0
