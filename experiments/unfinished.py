"""What is on disk of a row before it is finished, so that a run that was killed goes on where it was."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from files import write_json
from results import differing
from safetensors.torch import load_file, save

from socialgraph.data.files import atomic_write, sha256
from socialgraph.ranking import processes

log = logging.getLogger("socialgraph")


@dataclass
class Training:
    """How a training went: its log, one dict a line, and the seconds it took."""

    log: list[dict[str, Any]]
    seconds: float


class Unfinished:
    """A folder for one row: ``training/`` with checkpoints, the trained model, and the scores that are there so far.

    It belongs to one configuration. What is found there of another is thrown away.

    Args:
        folder: of the row alone.
        config: what the row depends on.
    """

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.folder = folder
        self.training = folder / "training"
        if processes.is_first():
            config = json.loads(json.dumps(config))
            before = _read(folder / "config.json")
            if before is None or differing(before, config):
                shutil.rmtree(folder, ignore_errors=True)
                write_json(folder / "config.json", config)
            elif any(folder.iterdir()):
                log.info("going on with %s", folder)
        processes.wait()

    def trained(self, model: torch.nn.Module, train: Callable[[], Training]) -> Training:
        """Return how the model was trained, and leave it so; train it only if nobody has.

        Args:
            model: it gets its weights in place.
            train: does the work.
        """
        weights, about = self.folder / "model.safetensors", self.folder / "trained.json"
        found = processes.from_first(_read(about))
        if found is not None and weights.exists() and found["sha256"] == sha256(weights):
            model.load_state_dict(load_file(weights))
            return Training(found["log"], found["seconds"])
        made = train()
        if processes.is_first():
            # copies, because the format lets no two weights share memory
            like = torch.contiguous_format
            copies = {name: value.clone(memory_format=like) for name, value in model.state_dict().items()}
            with atomic_write(weights, "wb") as file:
                file.write(save(copies))
            write_json(about, {**asdict(made), "sha256": sha256(weights)})
            shutil.rmtree(self.training, ignore_errors=True)
        processes.wait()
        return made

    def journal(self, split: str) -> Path:
        """Return the folder of a split's scores so far."""
        return self.folder / "scores" / split

    def remove(self) -> None:
        """Forget it all: the row is finished."""
        processes.wait()
        if processes.is_first():
            shutil.rmtree(self.folder, ignore_errors=True)
            with suppress(OSError):  # others may be in work
                self.folder.parent.rmdir()


def _read(path: Path) -> Any:
    """Return what a JSON file holds; None if there is no whole one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
