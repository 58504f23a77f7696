"""What the study consists of: a run for each collection, row and seed of the chosen parts (conf/study.yaml)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra import compose
from omegaconf import DictConfig, OmegaConf

from lab.plan import Row, Run, composed, identity, latest, quoted, selected, subject, table_rows, typed_for_rows
from lab.store import plain
from lab.task import test_splits
from lab.warm_up import WarmUp
from socialgraph.errors import OptionError
from socialgraph.ranking import processes

log = logging.getLogger("socialgraph")

TRIES = "tries"


def study_runs(config: DictConfig) -> list[Run]:
    """Return the runs of the chosen parts: seed after seed, so that every row is there once before any is twice.

    Raises:
        OptionError: no such part, row or collection.
    """
    parts, plan = planned_parts(config), Plan(config)
    rows = list(dict.fromkeys(row for _, some, _ in parts for row in some))
    selected(rows, config.rows, f"part={config.part}")
    there = list(dict.fromkeys(data for collections, _, _ in parts for data in collections))
    for data in config.collections or ():
        if data not in there:
            raise OptionError(f"part={config.part} has no collection {data!r}; there are: {', '.join(there)}")
    return [
        plan.run(data, row, seed)
        for collections, some, seeds in parts
        for seed in (seeds if config.seeds is None else config.seeds)
        for data in collections
        if config.collections is None or data in config.collections
        for row in some
        if config.rows is None or row.name in config.rows
    ]


def planned_parts(config: DictConfig) -> list[tuple[list[str], list[Row], list[int]]]:
    """Return collections, rows and seeds of the chosen parts.

    Raises:
        OptionError: no such part, or one without rows.
    """
    if config.part == TRIES:
        return [(list(config.tries.data), try_rows(config, "Tries"), list(config.tries.seeds))]
    parts = config.parts if config.part == "all" else {config.part: config.parts.get(config.part)}
    if None in parts.values():
        raise OptionError(f"part must be one of {', '.join(config.parts)}, all, {TRIES}, got {config.part!r}")
    paper = paper_rows(config)
    known = {row.name: row for row in [*try_rows(config, "Past the paper"), *paper]}
    in_parts = {name for part in config.parts.values() for name in part.rows or []}
    planned = []
    for part in parts.values():
        names = [row.name for row in paper if row.name not in in_parts] if part.rows is None else part.rows
        own = part.get("overrides", [])
        rows = [replace(known[name], overrides=(*latest([*known[name].overrides, *own]),)) for name in names]
        planned.append((list(part.data), rows, list(part.seeds)))
    if not any(rows for _, rows, _ in planned):
        part = config.part
        raise OptionError(f"part={part} has no rows yet: name some of tries.yaml, parts.{part}.rows=[...]")
    return planned


def paper_rows(config: DictConfig) -> list[Row]:
    """Return the rows of Tables 1 and 2, at the study's lengths."""
    lengths = [f"size.{name}={value}" for name, value in config.size.items() if isinstance(value, int)]
    tables = [compose("table", [f"table={name}", *lengths]) for name in ("table1", "table2")]
    first, second = map(table_rows, tables)
    names = [row.name for row in first]
    return [*first, *(replace(row, group="Ablations") for row in second if row.name not in names)]


def try_rows(config: DictConfig, group: str) -> list[Row]:
    """Return the rows of conf/tries.yaml; they stand in a table's ``group``."""
    tries: dict[str, Any] = OmegaConf.to_container(config.tries, resolve=True)  # type: ignore[assignment]
    return [
        Row(
            name, (*latest([*tries["base"], *one["overrides"], *alike["overrides"]]),), name, group,
            {"expected": one["expected"]},
        )
        for alike in tries["groups"].values()
        for name, one in alike["rows"].items()
    ]  # fmt: skip


class Plan:
    """How a row on a collection with a seed becomes a run."""

    def __init__(self, config: DictConfig) -> None:
        self.config, self.is_try = config, config.part == TRIES
        # the backbone is warmed up first; the measures are set for all
        self.typed = [one for one in typed_for_rows() if subject(one) not in ("backbone", "model.backbone", "measures")]
        self.warm_ups: dict[str, WarmUp | None] = {}

    def run(self, data: str, row: Row, seed: int) -> Run:
        """Return a run."""
        config, warmed = self.config, self.warm_up(data)
        own = [*config.size.overrides, *row.overrides, *(config.tried.overrides if self.is_try else [])]
        placed = self.placed(data, str(warmed.folder) if warmed else config.backbone)
        one = composed([*placed, *own, f"seed={seed}", *self.typed], row.name)
        if self.is_try:  # test is not looked at: dev stands in its place, and nothing is chosen
            OmegaConf.update(one, "data.splits.test", one.data.splits.dev)
            OmegaConf.update(one, "data.queries.test", one.data.queries.dev)
            OmegaConf.update(one, "data.queries.dev", 1)
        root, splits = Path(config.results) / plain(one.data.label), test_splits(one.data)
        folders = {split: root / plain(split) / (TRIES if self.is_try else "") for split in splits}
        identities = {split: self.identity(data, one, split) for split in splits}
        # a first seed has its times in the table: it computes its own [CLS] attention
        weights = Path(config.work) / "weights" if seed > 0 or self.is_try else None
        return Run(row, seed, one, folders, identities, weights=weights, warm_up=warmed)

    def warm_up(self, data: str) -> WarmUp | None:
        """Return how a collection's backbone is made before any row is trained; None: it is not."""
        if data not in self.warm_ups:
            self.warm_ups[data] = self._warm_up(data) if self.config.warm_up.groups > 0 else None
        return self.warm_ups[data]

    def _warm_up(self, data: str) -> WarmUp:
        config = self.config
        own = [*config.warm_up.overrides, f"trainer.groups={config.warm_up.groups}", "recipe=firstp", "seed=0"]
        own += [f"recipe.document_length={config.warm_up.passage}"]
        theirs = [one for one in self.typed if subject(one) != "trainer.groups"]
        how = composed([*self.placed(data, config.backbone), *own, *theirs])
        wanted = identity(how)
        wanted["data"]["splits"] = {"train": wanted["data"]["splits"]["train"]}  # not what is ranked later, and how
        wanted["data"].pop("queries")
        wanted.pop("measures")
        names = {how.data.path: data, how.data.root: "data", config.backbone: Path(config.backbone).name}
        return WarmUp(how, without_places(wanted, names), Path(config.work) / "warm" / config.size.name / data)

    def placed(self, data: str, backbone: str) -> list[str]:
        """Return the overrides that say where a collection and a backbone lie, and what is measured."""
        config, tests = self.config, self.config.tests.get(data)
        return [
            f"data={data}", f"model.backbone={quoted(backbone)}", f"measures={list(config.measures)}",
            *([f"data.root={quoted(config.data_root)}"] if config.data_root is not None else []),
            *([f"data.splits.test={list(tests)}"] if tests else []),
        ]  # fmt: skip

    def identity(self, data: str, one: DictConfig, split: str) -> dict[str, Any]:
        """Return what a run's result depends on: its configuration and its warm-up's, without places on a disk."""
        wanted, warmed, backbone = identity(one, split), self.warm_up(data), self.config.backbone
        names = {one.data.path: data, one.data.root: "data", backbone: Path(backbone).name}
        if one.recipe.first_stage is not None:
            wanted.pop("backbone")
        elif warmed is not None:
            wanted["warm_up"] = warmed.identity
        return without_places(wanted, names | ({str(warmed.folder): "warmed up"} if warmed else {}))


def without_places(wanted: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Return a configuration with names where folders were: a run stays what it is on another machine."""
    text = json.dumps(wanted)
    for place, name in names.items():
        text = text.replace(json.dumps(str(place)), json.dumps(name))
    return json.loads(text)


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
        for alike in (self._alike(run, True), self._alike(run, False), self.runs):
            if known := list(self._seconds(alike)):
                return max(known)
        return 0.0

    def _alike(self, run: Run, same_collection: bool) -> list[Run]:
        rows = [other for other in self.runs if other.row.name == run.row.name]
        return [other for other in rows if not same_collection or other.config.data.label == run.config.data.label]

    def _seconds(self, runs: Sequence[Run]) -> Iterator[float]:
        for other in runs:
            for value in (other.finished() or {}).values():
                yield value["seconds"]
