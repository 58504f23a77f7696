"""How the commands read and write files; of several processes the first one writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from socialgraph.data.files import atomic_write
from socialgraph.ranking import processes

if TYPE_CHECKING:  # only pictures need it
    from matplotlib.figure import Figure


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; None if there is no whole one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; of several processes the first does it."""
    if processes.is_first():
        with atomic_write(path) as file:
            file.write(text)


def write_figure(path: Path, dpi: int, draw: Callable[..., Figure | None], *data: Any) -> None:
    """Draw a picture and write it, of the kind that the file's name says, whole or not at all; the first process does.

    Args:
        path: of the file.
        dpi: pixels for each inch.
        draw: makes the picture; None if there is nothing to draw.
        data: what it draws.
    """
    if processes.is_first() and (figure := draw(*data)) is not None:
        with atomic_write(path, "wb") as file:
            figure.savefig(file, format=path.suffix[1:], dpi=dpi)
