"""What there is of a run that is not finished, and its lock."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from safetensors.torch import load_file, save

from lab.files import read_json, write_json
from socialgraph.data.files import atomic_write, check_room, file_name, sha256
from socialgraph.ranker import Ranker
from socialgraph.ranking import processes
from socialgraph.ranking.identity import differences

log = logging.getLogger("socialgraph")

LOCK = ".lock"


@dataclass
class Training:
    """How a training went: its log, one dict a line, and the seconds it took."""

    log: list[dict[str, Any]]
    seconds: float


class Unfinished:
    """A folder for one run: ``training/`` with checkpoints, the trained model, and the scores that are there so far.

    It belongs to one configuration. What is found there of another is thrown away.

    Args:
        folder: of the run alone.
        identity: what the run depends on.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.folder = folder
        self.training = folder / "training"
        if processes.is_first():
            before = read_json(folder / "config.json")
            if before is None or differences(before, identity):
                self.clear()
                write_json(folder / "config.json", identity)
            elif self.training.exists() or (folder / "trained.json").exists() or (folder / "scores").exists():
                log.info("going on with %s", folder)
        processes.wait()

    def trained(self, model: torch.nn.Module, train: Callable[[], Training]) -> Training:
        """Return how the model was trained, and leave it so; train it only if nobody has.

        Args:
            model: it gets its weights in place.
            train: does the work.
        """
        weights, about = self.folder / "model.safetensors", self.folder / "trained.json"
        before = processes.from_first(read_json(about))
        if before is not None and weights.exists() and before["sha256"] == sha256(weights):
            model.load_state_dict(load_file(weights))
            return Training(before["log"], before["seconds"])
        training = train()
        if processes.is_first():
            # copies, because the format lets no two weights share memory
            like = torch.contiguous_format
            copies = {name: value.clone(memory_format=like) for name, value in model.state_dict().items()}
            with atomic_write(weights, "wb") as file:
                file.write(save(copies))
            write_json(about, {**asdict(training), "sha256": sha256(weights)})
            shutil.rmtree(self.training, ignore_errors=True)
        processes.wait()
        return training

    def keep_model(self, model: Ranker, folder: Path) -> None:
        """Save a model in a folder, in place of an older one; it appears whole or not at all."""
        if not processes.is_first():
            return
        beside = self.folder / "model"  # what is half written here goes with the rest
        shutil.rmtree(beside, ignore_errors=True)
        model.save_pretrained(beside)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        beside.rename(folder)

    def journal(self, split: str) -> Path:
        """Return the folder of a split's scores so far."""
        return self.folder / "scores" / file_name(split)

    def clear(self) -> None:
        """Throw away what is there, all but the lock."""
        for path in self.folder.glob("*") if self.folder.is_dir() else ():
            if path.name == LOCK:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    @contextmanager
    def kept_if_begun(self) -> Iterator[None]:
        """Where the work inside ends in an error, keep what there is to go on with; a bare folder goes."""
        try:
            yield
        except Exception:
            if {path.name for path in self.folder.glob("*")} <= {LOCK, "config.json"}:
                self._vanish()
            raise

    def remove(self) -> None:
        """Forget it all: the run is finished."""
        processes.wait()
        self._vanish()

    def _vanish(self) -> None:
        if processes.is_first():
            shutil.rmtree(self.folder, ignore_errors=True)
            with suppress(OSError):  # others may be in work
                self.folder.parent.rmdir()


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold a run's folder, of one process or of several together; tell whether it could be held.

    The lock is the operating system's: a process that dies lets go of it.

    Raises:
        OutputError: the folder cannot be written.
    """
    lock = FileLock(folder / LOCK)
    is_mine = True
    if processes.is_first():
        try:
            check_room(folder)
            lock.acquire(timeout=0)
        except (Timeout, FileNotFoundError):  # held; or finished by another process, which removes it just now
            is_mine = False
    try:
        yield processes.from_first(is_mine)
    finally:
        lock.release()
