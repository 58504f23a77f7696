"""Which checkpoints of transformers' Trainer are whole, and of which training.

A checkpoint is a folder ``checkpoint-<step>``. Beside the library's files it has a marker, ``training.json``: what the
training depends on, and, written last, that the checkpoint is whole. One whose writer died is not believed, and is
written again once the training comes there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from socialgraph.data.files import atomic_write, sync
from socialgraph.errors import CheckpointError, first_line
from socialgraph.ranking import processes
from socialgraph.ranking.identity import differences

MARKER = "training.json"


def step(checkpoint: Path) -> int:
    """Return how many steps had been trained."""
    return int(checkpoint.name.rpartition("-")[2])


def whole_checkpoints(folder: Path) -> list[Path]:
    """Return the whole checkpoints in a folder, the oldest first.

    Raises:
        CheckpointError: a folder of such a name is another program's.
    """
    found = [path for path in folder.glob("checkpoint-*") if re.fullmatch(r"checkpoint-\d+", path.name)]
    for path in found:
        if not (path / MARKER).exists() and any(path.glob("[!.]*")):
            raise CheckpointError(
                f"{path}: not of a training of this package (it has no {MARKER}); move it or choose another folder"
            )
    return sorted((path for path in found if (path / MARKER).exists() and _marker(path)["whole"]), key=step)


def last_whole(folder: Path) -> Path | None:
    """Return the newest whole checkpoint in a folder, None where there is none."""
    return next(reversed(whole_checkpoints(folder)), None)


def check_same(checkpoint: Path, training: Mapping[str, Any]) -> None:
    """Compare what a checkpoint's training depended on to this one.

    Raises:
        CheckpointError: they differ, and the message says in what; or it is no whole checkpoint.
    """
    marker = _marker(checkpoint)
    if not marker["whole"]:
        raise CheckpointError(f"{checkpoint}: was not written to its end")
    if changes := differences(marker["training"], training):
        raise CheckpointError(
            f"{checkpoint}: of another training: {'; '.join(changes)}; "
            "go on with what it began with, or begin in another folder"
        )


class Markers(TrainerCallback):
    """Marks checkpoints; of several processes the first does."""

    def __init__(self) -> None:
        #: what the training depends on, once it begins; JSON
        self.training: Mapping[str, Any] = {}
        #: the checkpoint that is being written now
        self.writing: Path | None = None

    def begin(self, checkpoint: Path) -> None:
        """Mark a checkpoint that is about to be written, or written again."""
        self.writing = checkpoint
        self._write(checkpoint, whole=False)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **options: Any) -> None:
        """Mark a checkpoint that was written."""
        processes.wait()  # each process writes a file
        if state.is_world_process_zero:
            checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            for path in checkpoint.iterdir():
                sync(path)
            self._write(checkpoint, whole=True)
            self.writing = None

    def _write(self, checkpoint: Path, whole: bool) -> None:
        with atomic_write(checkpoint / MARKER) as file:
            json.dump({"training": self.training, "whole": whole}, file, indent=1)


def _marker(checkpoint: Path) -> dict[str, Any]:
    path = checkpoint / MARKER
    try:
        marker = json.loads(path.read_text(encoding="utf-8"))
        return {"training": dict(marker["training"]), "whole": marker["whole"] is True}
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(f"{path}: damaged ({first_line(error)}); remove {checkpoint}") from None
