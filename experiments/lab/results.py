"""Finished runs on disk, found by what they depend on."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from socialgraph.data import read_run, write_run
from socialgraph.data.collection import Run as Ranking
from socialgraph.data.files import atomic_write, sha256
from socialgraph.errors import InputError, counted, first_line
from socialgraph.ranking import processes

if TYPE_CHECKING:  # only pictures need it
    from matplotlib.figure import Figure

#: a folder's runs in one file, for tables that are kept; it is not opened where its files take more bytes than this
ARCHIVE, LARGEST = "runs.zip", 1 << 30


class Results:
    """The finished runs of a folder.

    A run has two files: ``<row>.<seed>.run.gz``, the ranking as TREC writes it, and ``<row>.<seed>.json`` with
    everything else. The ranking is written first. The JSON holds its hash, so a run is finished when the two fit.
    Files of that name may lie in ``runs.zip`` instead; one beside it counts before the one inside.

    Args:
        folder: where they lie.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> dict[str, Any]:
        """Return the JSON of a run ("<row>.<seed>"), whatever it depends on.

        Raises:
            InputError: a file is missing or damaged, or they are of two runs.
        """
        place = self.folder / f"{name}.json"
        try:
            value: dict[str, Any] = json.loads(self._bytes(f"{name}.json"))
            fits = value["sha256"] == hashlib.sha256(self._bytes(f"{name}.run.gz")).hexdigest()
            _ = value["config"], next(iter(value["measures"].values()))
        except InputError:  # of the archive
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise InputError(f"{place} or its run is missing or damaged ({type(error).__name__})") from error
        if not fits:
            raise InputError(f"{self.folder / name}.run.gz is damaged or of another run")
        return value

    def find(self, name: str, depends: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        """Return the JSON of the finished run that depends on this; otherwise None, and why it must be executed."""
        files = {f"{name}.json", f"{name}.run.gz"}
        if not files & self._packed.keys() and not any((self.folder / file).exists() for file in files):
            return None, "new"
        try:
            value = self.read(name)
        except InputError as error:
            return None, str(error)
        value["config"].get("recipe", {}).pop("stored", None)  # what older recipes said of how, not of what
        changed = differences(value["config"], json.loads(json.dumps(depends)))
        return (None, f"changed: {', '.join(changed)}") if changed else (value, "finished")

    def write(self, name: str, ranking: Ranking, value: dict[str, Any]) -> None:
        """Write a finished run. Its lock is held."""
        place, file = self.folder / f"{name}.json", self.folder / f"{name}.run.gz"
        place.unlink(missing_ok=True)  # the old one does not speak of the new run
        write_run(file, ranking, re.sub(r"\s+", "-", value["name"]))
        value = value | {"versions": versions(), "sha256": sha256(file)}
        write_text(place, json.dumps(value, indent=1) + "\n")

    def ranking(self, name: str) -> Ranking:
        """Return a run's ranking."""
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / f"{name}.run.gz"
            copy.write_bytes(self._bytes(copy.name))
            return read_run(copy)

    def seeds(self, row: str, only: Sequence[int] | None = None) -> dict[int, dict[str, Any]]:
        """Return seed -> JSON of a finished row, whatever it depends on.

        Args:
            row: its name.
            only: these seeds; None for all that are there.

        Raises:
            InputError: no such row or seed, a damaged one, or seeds that ranked different queries.
        """
        there = self.rows()
        if missing := [row] if row not in there else sorted({*(only or ())} - {*there[row]}):
            known = ", ".join(f"{name} ({', '.join(map(str, seeds))})" for name, seeds in there.items()) or "none"
            what = f"seed {missing[0]} of {row}" if row in there else f"finished row {row!r}"
            raise InputError(f"there is no {what} in {self.folder}; there is: {known}")
        values = {seed: self.read(f"{row}.{seed}") for seed in (there[row] if only is None else only)}
        if len({frozenset(next(iter(value["measures"].values()))) for value in values.values()}) > 1:
            raise InputError(f"seeds of {row} in {self.folder} ranked different queries: run the table again")
        return values

    def rows(self) -> dict[str, list[int]]:
        """Return row -> seeds that have a JSON."""
        rows: dict[str, list[int]] = {}
        for name in sorted({path.name for path in self.folder.glob("*.json")} | self._packed.keys()):
            if match := re.fullmatch(r"(.+)\.(\d+)\.json", name):
                rows.setdefault(match[1], []).append(int(match[2]))
        return {row: sorted(seeds) for row, seeds in rows.items()}

    def pack(self) -> None:
        """Move all finished runs into ``runs.zip``."""
        loose = [*self.folder.glob("*.*.json"), *self.folder.glob("*.run.gz")]
        files = self._packed | {path.name: path.read_bytes() for path in loose}
        with atomic_write(self.folder / ARCHIVE, "wb") as file, zipfile.ZipFile(file, "w") as new:
            for name in sorted(files):
                new.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED)  # no dates: the same bytes
        for path in loose:
            path.unlink()

    def _bytes(self, name: str) -> bytes:
        """Return what is in a file: beside the archive, or in it."""
        file = self.folder / name
        return self._packed[name] if name in self._packed and not file.exists() else file.read_bytes()

    @property
    def _packed(self) -> dict[str, bytes]:
        """What is in the archive, by name."""
        archive = self.folder / ARCHIVE
        return unpacked(archive, archive.stat().st_mtime_ns) if archive.exists() else {}


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """Return in what two configurations differ, a phrase each; a key that is missing equals one that is None."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = dict.fromkeys([*old, *new])
        parts = (differences(old.get(key), new.get(key), f"{name}.{key}".lstrip(".")) for key in keys)
        return [phrase for part in parts for phrase in part]
    return [] if old == new else [f"{name} was {str(old)[:60]}, is {str(new)[:60]}"]


@lru_cache(maxsize=4)
def unpacked(archive: Path, changed: int) -> dict[str, bytes]:
    """Return the files of an archive, by name.

    Args:
        archive: where it lies.
        changed: when it was written, so that a newer one is read again.

    Raises:
        InputError: it is damaged, or unpacks to more than any table has. What it says of its files' sizes is what is
            read of them at most.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            size = sum(one.file_size for one in packed.infolist())
            if size > LARGEST:
                raise InputError(f"{archive}: unpacks to {size:,} bytes, and no table has more than {LARGEST:,}")
            return {name: packed.read(name) for name in packed.namelist()}
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(f"{archive}: damaged ({first_line(error)})") from error


def versions() -> dict[str, str]:
    """Return what a result depends on beside the configuration."""
    packages = ("socialgraph-ir", "torch", "torch-geometric", "transformers", "ir-datasets", "ir-measures", "bm25s")
    device = f"CPU, {counted(torch.get_num_threads(), 'thread')}"  # their number also moves the last digits
    if torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    where = {"python": platform.python_version(), "machine": platform.machine(), "device": device}
    return where | {package: version(package) for package in packages}


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; of several processes the first does it."""
    if processes.is_first():
        with atomic_write(path) as file:
            file.write(text)


def write_figure(path: Path, figure: Figure, dpi: int = 130) -> None:
    """Write a picture whole or not at all, as the end of its name says; of several processes the first does it."""
    if processes.is_first():
        with atomic_write(path, "wb") as file:
            figure.savefig(file, format=path.suffix[1:], dpi=dpi)
