"""Finished rows on disk: what belongs to one, and whether it still stands."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from files import versions, write_json
from omegaconf import DictConfig, OmegaConf

from socialgraph.data import write_run
from socialgraph.data.files import sha256
from socialgraph.errors import InputError
from socialgraph.ranking import processes

if TYPE_CHECKING:
    from rows import Ranked, Row


def results_folder(config: DictConfig, split: str | None = None) -> Path:
    """Return the folder of a collection's and split's results; without a split that of the test split."""
    return Path(config.results) / plain(config.data.label) / plain(split or config.data.splits.test)


def plain(name: Any) -> str:
    """Return a name as one folder of that name: nothing in it leads elsewhere."""
    return re.sub(r"[^\w.-]+", "-", str(name)).strip("-.") or "-"


def row_config(config: DictConfig, recipe: str = "recipe", split: str | None = None) -> dict[str, Any]:
    """Return what a row depends on: its recipe, with all that it refers to, and what all recipes share.

    Args:
        config: of a script.
        recipe: where the row's recipe stands in it.
        split: the one of several test splits that it is about.
    """
    whole: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    kept = {key: whole[key] for key in ("backbone", "data", "measures", "query_length", "seed", "trainer")}
    kept["recipe"] = whole[recipe]
    for how in ("save_every", "compile"):  # these change times, not results
        kept["trainer"].pop(how)
    kept["data"].pop("label")
    if split is not None:
        kept["data"]["splits"]["test"] = split
    return kept


class RowFiles:
    """The two files of a row and seed: ``<row>.<seed>.run.gz``, and ``<row>.<seed>.json`` with everything else.

    The run is written first. The JSON holds its hash, so a row is finished when the two fit.
    """

    def __init__(self, folder: Path, row: str, seed: int) -> None:
        self.name = f"{row}, seed {seed}"
        self.run = folder / f"{row}.{seed}.run.gz"
        self.json = folder / f"{row}.{seed}.json"
        self.unfinished = folder / ".unfinished" / f"{row}.{seed}"

    def stored(self) -> dict[str, Any]:
        """Return the row's JSON, whatever its configuration.

        Raises:
            InputError: a file is missing or damaged, or they are of two runs.
        """
        try:
            found: dict[str, Any] = json.loads(self.json.read_text())
            fits = found["sha256"] == sha256(self.run)
            _ = found["config"], next(iter(found["measures"].values()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise InputError(f"{self.json} or its run is missing or damaged ({type(error).__name__})") from error
        if not fits:
            raise InputError(f"{self.run} is damaged or of another run")
        return found

    def read(self, config: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        """Return the row's JSON if it stands; otherwise None, and why the row must be run."""
        if not self.json.exists() and not self.run.exists():
            return None, "new"
        try:
            found = self.stored()
        except InputError as error:
            return None, str(error)
        if changed := differing(found["config"], json.loads(json.dumps(config))):
            return None, f"changed: {', '.join(changed)}"
        return found, "finished"

    def write(self, row: Row, ranked: Ranked, config: dict[str, Any], collection: str, **more: Any) -> dict[str, Any]:
        """Write a finished row, with what else is to be kept of it, and return its JSON.

        Args:
            row: that is finished.
            ranked: its test split.
            config: what it depends on.
            collection: the collection's name.
            more: what else is to be kept.
        """
        value = {
            "name": row.name,
            "collection": collection,
            "measures": ranked.measures,
            "dev_measures": {name: fmean(values.values()) for name, values in row.dev.measures.items()},
            "seconds_per_document": ranked.seconds,
            "training_seconds": row.training_seconds,
            "parameters": row.parameters,
            "peak_memory_bytes": row.memory,
            "training": row.training,
            **more,
            "versions": versions(),
            "config": config,
        }
        if processes.is_first():
            self.json.unlink(missing_ok=True)  # the old one does not speak of the new run
            write_run(self.run, ranked.run, re.sub(r"\s+", "-", row.name))
            write_json(self.json, {**value, "sha256": sha256(self.run)})
        return json.loads(json.dumps(value))


def differing(old: Any, new: Any, name: str = "") -> list[str]:
    """Return the dotted names of the keys in which two nested dicts differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys([*old, *new])
        lines = [differing(old.get(k), new.get(k), f"{name}.{k}" if name else str(k)) for k in keys]
        return [line for some in lines for line in some]
    return [] if old == new else [name]


def read_seeds(folder: Path, row: str, only: Sequence[int] | None = None) -> dict[Path, dict[str, Any]]:
    """Return run file -> JSON for each seed of a finished row, whatever its configuration.

    Args:
        folder: of the results.
        row: its name.
        only: these seeds; None for all that are there.

    Raises:
        InputError: no such row or seed, a damaged one, or seeds that ranked different queries.
    """
    there = [re.fullmatch(r"(.+)\.(\d+)\.json", path.name) for path in folder.glob("*.json")]
    rows = [(match[1], int(match[2])) for match in there if match is not None]
    finished = sorted(seed for name, seed in rows if name == row)
    if not finished:
        names = ", ".join(sorted({name for name, _ in rows})) or "none"
        raise InputError(f"there is no finished row {row!r} in {folder}; there is: {names}")
    seeds: dict[Path, dict[str, Any]] = {}
    for seed in finished if only is None else only:
        if seed not in finished:
            raise InputError(f"{row} has no finished seed {seed} in {folder}; it has {', '.join(map(str, finished))}")
        files = RowFiles(folder, row, seed)
        try:
            seeds[files.run] = files.stored()
        except InputError as error:
            raise InputError(f"{error}: run the table again") from error
    if len({frozenset(next(iter(value["measures"].values()))) for value in seeds.values()}) > 1:
        raise InputError(f"seeds of {row} in {folder} ranked different queries: run the table again")
    return seeds
