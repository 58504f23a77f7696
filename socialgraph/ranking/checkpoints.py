"""Which checkpoints of transformers' Trainer are whole, and of which training.

A checkpoint is a folder ``checkpoint-<step>``. Beside the library's files it has a marker, ``training.json``: empty
while the checkpoint is written, then what the training depends on. One whose writer died is not believed, and is
written again once the training comes there. A folder without a marker is another program's.
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
from socialgraph.ranking.identity import check_same

MARKER = "training.json"


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
    whole = [path for path in found if (path / MARKER).exists() and (path / MARKER).stat().st_size]
    return sorted(whole, key=lambda path: int(path.name.rpartition("-")[2]))


def check_checkpoint(checkpoint: Path, training: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that is not whole, or of another training.

    Raises:
        CheckpointError: says in what the trainings differ.
    """
    try:
        kept = dict(json.loads((checkpoint / MARKER).read_text("utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{checkpoint}: not whole (its {MARKER}: {first_line(error)}); remove it") from None
    check_same(checkpoint, kept, training)


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
        with atomic_write(checkpoint / MARKER):
            pass

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **options: Any) -> None:
        """Mark a checkpoint that was written."""
        processes.wait()  # each process writes a file
        if state.is_world_process_zero:
            checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            for path in checkpoint.iterdir():
                sync(path)
            with atomic_write(checkpoint / MARKER) as file:
                json.dump(self.training, file, indent=1)
            self.writing = None
