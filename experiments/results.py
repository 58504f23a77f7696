"""Finished rows on disk: what belongs to one, and whether it still stands."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from files import versions, write_json
from omegaconf import DictConfig, OmegaConf
from rows import Row

from socialgraph.data import write_run


def results_folder(config: DictConfig) -> Path:
    """Return the folder of a collection's and split's results."""
    label = re.sub(r"[^\w.-]+", "-", str(config.data.label)).strip("-.")
    return Path(config.results) / label / str(config.data.splits.test)


def row_config(config: DictConfig) -> dict[str, Any]:
    """Return what a row depends on: its recipe, with all that it refers to, and what all recipes share."""
    whole: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    kept = {key: whole[key] for key in ("backbone", "data", "measures", "query_length", "recipe", "seed", "trainer")}
    for how in ("resume", "compile"):  # these change times, not results
        kept["trainer"].pop(how)
    kept["data"].pop("label")
    return kept


class RowFiles:
    """The two files of a row and seed: ``<row>.<seed>.run.gz``, and ``<row>.<seed>.json`` with everything else.

    The run is written first. The JSON holds its hash, so a row is finished when the two fit.
    """

    def __init__(self, folder: Path, row: str, seed: int) -> None:
        self.name = f"{row}, seed {seed}"
        self.run = folder / f"{row}.{seed}.run.gz"
        self.json = folder / f"{row}.{seed}.json"

    def read(self, config: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        """Return the row's JSON if it stands; otherwise None, and why the row must be run."""
        if not self.json.exists() and not self.run.exists():
            return None, "new"
        try:
            found = json.loads(self.json.read_text())
            if found["sha256"] != hashlib.sha256(self.run.read_bytes()).hexdigest():
                return None, f"{self.run.name} is damaged or of another run"
            changed = differing(found["config"], json.loads(json.dumps(config)))
        except (OSError, ValueError, KeyError, TypeError) as error:
            return None, f"{self.json.name} or its run is missing or damaged ({type(error).__name__})"
        if changed:
            return None, f"changed: {', '.join(changed)}"
        return found, "finished"

    def write(self, row: Row, config: dict[str, Any], collection: str, **more: Any) -> dict[str, Any]:
        """Write a finished row, with what else is to be kept of it, and return its JSON."""
        tag = re.sub(r"\s+", "-", row.name)
        self.json.unlink(missing_ok=True)  # the old one does not speak of the new run
        write_run(self.run, row.test, tag)
        value = {
            "name": row.name,
            "collection": collection,
            "measures": row.measures,
            "dev_measures": row.dev_measures,
            "seconds_per_document": row.seconds,
            "training_seconds": row.training_seconds,
            "parameters": row.parameters,
            "peak_memory_bytes": row.memory,
            "training": row.training,
            **more,
            "sha256": hashlib.sha256(self.run.read_bytes()).hexdigest(),
            "versions": versions(),
            "config": config,
        }
        write_json(self.json, value)
        return json.loads(json.dumps(value))


def differing(old: Any, new: Any, name: str = "") -> list[str]:
    """Return the dotted names of the keys in which two nested dicts differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys([*old, *new])
        lines = [differing(old.get(k), new.get(k), f"{name}.{k}" if name else str(k)) for k in keys]
        return [line for some in lines for line in some]
    return [] if old == new else [name]
