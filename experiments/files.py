"""What the scripts write: text and JSON, whole or not at all, versions, and folders that one run holds."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from socialgraph.data.files import atomic_write, only_here
from socialgraph.ranking import processes


def versions() -> dict[str, str]:
    """Return what a result depends on beside the configuration."""
    packages = ("socialgraph-ir", "torch", "torch-geometric", "transformers", "ir-datasets", "ir-measures", "bm25s")
    where = {"python": platform.python_version(), "machine": platform.machine(), "device": device()}
    return where | {package: version(package) for package in packages}


def device() -> str:
    """Return what computes: a GPU's name, or the number of the CPU's threads, which also moves the last digits."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' * (threads != 1)}"


@contextmanager
def held(folder: Path) -> Iterator[Path]:
    """Hold an output folder for a run, of one process or of several together.

    Raises:
        OutputError: another run holds it, or it cannot be written.
    """
    folder = processes.from_first(folder)
    with only_here(folder) if processes.is_first() else nullcontext():
        yield folder


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; of several processes the first does it."""
    if not processes.is_first():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=1) + "\n")
