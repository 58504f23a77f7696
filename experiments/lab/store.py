"""Finished runs on disk, found by what they depend on."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import tempfile
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from lab.files import write_json
from socialgraph.data import read_run, write_run
from socialgraph.data.collection import Run as Ranking
from socialgraph.data.files import atomic_write, sha256
from socialgraph.errors import InputError, counted
from socialgraph.ranking import processes
from socialgraph.ranking.identity import differences

#: a folder's runs in one file, for tables that are kept
ARCHIVE = "runs.zip"


class Store:
    """The finished runs of a folder.

    A run has two files: ``<row>.<seed>.run.gz``, the ranking as TREC writes it, and ``<row>.<seed>.json`` with
    everything else. The ranking is written first. The JSON holds its hash, so a run is finished when the two fit.
    Files of that name may lie in ``runs.zip`` instead; one beside it counts before the one inside.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> dict[str, Any]:
        """Return the JSON of a run ("<row>.<seed>"), whatever it depends on.

        Raises:
            InputError: a file is missing or damaged, or they are of two runs.
        """
        there = self._file(f"{name}.json")
        try:
            value: dict[str, Any] = json.loads(there.read_text(encoding="utf-8"))
            ranking = self._file(f"{name}.run.gz")
            fits = value["sha256"] == hashlib.sha256(ranking.read_bytes()).hexdigest()
            _ = value["config"], next(iter(value["measures"].values()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise InputError(f"{there} or its run is missing or damaged ({type(error).__name__})") from error
        if not fits:
            raise InputError(f"{ranking} is damaged or of another run")
        return value

    def find(self, name: str, identity: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        """Return the JSON of the finished run that depends on this; otherwise None, and why it must be executed."""
        if not self._file(f"{name}.json").exists() and not self._file(f"{name}.run.gz").exists():
            return None, "new"
        try:
            value = self.read(name)
        except InputError as error:
            return None, str(error)
        value["config"].get("recipe", {}).pop("stored", None)  # of rows made when vectors could be stored
        if changed := differences(value["config"], identity):
            return None, f"changed: {', '.join(changed)}"
        return value, "finished"

    def write(self, name: str, ranking: Ranking, value: dict[str, Any]) -> None:
        """Write a finished run; of several processes the first does it. The run's lock is held."""
        if not processes.is_first():
            return
        place, file = self.folder / f"{name}.json", self.folder / f"{name}.run.gz"
        place.unlink(missing_ok=True)  # the old one does not speak of the new run
        write_run(file, ranking, re.sub(r"\s+", "-", value["name"]))
        write_json(place, value | {"versions": versions(), "sha256": sha256(file)})

    def ranking(self, name: str) -> Ranking:
        """Return a run's ranking."""
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / f"{name}.run.gz"
            copy.write_bytes(self._file(f"{name}.run.gz").read_bytes())
            return read_run(copy)

    def seeds(self, row: str, only: Sequence[int] | None = None) -> dict[int, dict[str, Any]]:
        """Return seed -> JSON of a finished row, whatever its configuration.

        Args:
            row: its name.
            only: these seeds; None for all that are there.

        Raises:
            InputError: no such row or seed, a damaged one, or seeds that ranked different queries.
        """
        folder, there = self.folder, self.rows()
        if row not in there:
            raise InputError(
                f"there is no finished row {row!r} in {folder}; there is: {', '.join(sorted(there)) or 'none'}"
            )
        values: dict[int, dict[str, Any]] = {}
        for seed in there[row] if only is None else only:
            if seed not in there[row]:
                known = ", ".join(map(str, there[row]))
                raise InputError(f"{row} has no finished seed {seed} in {folder}; it has {known}")
            try:
                values[seed] = self.read(f"{row}.{seed}")
            except InputError as error:
                raise InputError(f"{error}: run the table again") from error
        if len({frozenset(next(iter(value["measures"].values()))) for value in values.values()}) > 1:
            raise InputError(f"seeds of {row} in {folder} ranked different queries: run the table again")
        return values

    def pack(self) -> None:
        """Move all finished runs into ``runs.zip``."""
        archive, loose = self.folder / ARCHIVE, [*self.folder.glob("*.*.json"), *self.folder.glob("*.run.gz")]
        files = {path.name: path.read_bytes() for path in loose}
        if archive.exists():
            with zipfile.ZipFile(archive) as old:
                files = {name: old.read(name) for name in old.namelist()} | files
        with atomic_write(archive, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
            for name in sorted(files):
                new.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED)  # no dates: the same bytes
        for path in loose:
            path.unlink()

    def _file(self, name: str) -> Path | zipfile.Path:
        """Return a file: beside the archive, or in it."""
        file, archive = self.folder / name, self.folder / ARCHIVE
        if file.exists() or not archive.exists():
            return file
        inside = zipfile.Path(archive, name)
        return inside if inside.exists() else file

    def rows(self) -> dict[str, list[int]]:
        """Return row -> seeds that have a JSON."""
        names = {path.name for path in self.folder.glob("*.json")}
        if (self.folder / ARCHIVE).exists():
            with zipfile.ZipFile(self.folder / ARCHIVE) as archive:
                names |= set(archive.namelist())
        rows: dict[str, list[int]] = {}
        for name in sorted(names):
            if match := re.fullmatch(r"(.+)\.(\d+)\.json", name):
                rows.setdefault(match[1], []).append(int(match[2]))
        return {row: sorted(seeds) for row, seeds in rows.items()}


def versions() -> dict[str, str]:
    """Return what a result depends on beside the configuration."""
    packages = ("socialgraph-ir", "torch", "torch-geometric", "transformers", "ir-datasets", "ir-measures", "bm25s")
    where = {"python": platform.python_version(), "machine": platform.machine(), "device": device_name()}
    return where | {package: version(package) for package in packages}


def device_name() -> str:
    """Return what computes: a GPU's name, or the number of the CPU's threads, which also moves the last digits."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"CPU, {counted(torch.get_num_threads(), 'thread')}"
