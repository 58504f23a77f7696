"""What the scripts write: text and JSON, whole or not at all, and versions."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from socialgraph.data.files import atomic_write


def versions() -> dict[str, str]:
    """Return what a result depends on beside the configuration."""
    packages = ("socialgraph", "torch", "torch-geometric", "transformers", "ir-datasets", "ir-measures", "bm25s")
    return {"python": platform.python_version(), "machine": platform.machine()} | {p: version(p) for p in packages}


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=1) + "\n")
