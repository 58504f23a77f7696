"""A run from its configuration to its files, and many of them, one after the other.

Under torchrun or accelerate launch every process takes the same steps; the first one writes.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from filelock import FileLock, Timeout
from transformers import set_seed

from lab.levels import evidence, reading
from lab.results import Results, write_text
from lab.rows import Run
from lab.system import System, device
from lab.task import Task, load_task, made, rank_by_first_stage
from socialgraph import ranking
from socialgraph.data import Cache, Split, TrainingGroups
from socialgraph.data.collection import Run as Ranking
from socialgraph.data.files import check_room, file_name
from socialgraph.errors import counted
from socialgraph.ranking import Retriever, processes

log = logging.getLogger("socialgraph")

#: levels of compare.py that train nothing
LEVELS: dict[str, Callable[[Run, System, Task], tuple[Ranking, dict[str, Any]]]] = {
    "evidence": evidence.look, "reading": reading.read,
}  # fmt: skip


@dataclass
class Ranked:
    """A split's candidates in a system's order, and their measures: measure -> query -> value."""

    split: Split
    ranking: Ranking
    measures: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, split: Split, ordered: Ranking, measures: Sequence[str]) -> Ranked:
        """Measure a ranking; a split without queries, as dev may be, has no measures."""
        found = ranking.evaluate(split.qrels, ordered, list(measures)).per_query if split.queries else {}
        return cls(split, ordered, found)


def check_rows(runs: Sequence[Run]) -> None:
    """Make the edges and circles of the runs that are not finished, so that a mistake shows before the first one.

    Raises:
        OptionError: a class, or the library's trainer, does not take an option.
        InputError: there is no split to train on.
    """
    for run in runs:
        if run.result() is None:
            system = System(run.config)
            if run.kind not in LEVELS and system.is_trainable:
                _ = load_task(run.config.data).collection[str(run.config.data.splits.train)]


def run_rows(runs: Sequence[Run]) -> None:
    """Execute the runs that are not finished; what another process is at is left to it."""
    waiting = processes.from_first([place for place, run in enumerate(runs) if run.result() is None])
    for number, place in enumerate(waiting, 1):
        run_row(runs[place], f"[{number}/{len(waiting)}] ")


def run_row(run: Run, prefix: str = "") -> None:
    """Execute a run, or go on with it where it was killed; unless it is finished, or another process is at it."""
    folder = run.folder / ".unfinished" / run.name
    with locked(folder) as is_mine:
        if not is_mine:
            log.info("%s%s: another process is at it", prefix, run.name)
            return
        value, reason = processes.from_first(run.find())
        if value is None:
            if reason != "new":
                log.info("%s%s: %s; again", prefix, run.name, reason)
            begin_in(folder, run.depends)
            began, task = time.perf_counter(), load_task(run.config.data)
            set_seed(run.config.seed)  # for edges and circles that are born at random
            system = System(run.config)
            ordered, value = LEVELS.get(run.kind, train_and_rank)(run, system, task)
            value = {
                "name": system.name, "collection": task.collection.name, "dev_measures": {}, "interpolated": None,
                "training_seconds": None, "parameters": None, "peak_memory_bytes": None, "training": [],
                **value, "seconds": time.perf_counter() - began, "config": run.depends,
            }  # fmt: skip
            if processes.is_first():
                Results(run.folder).write(run.name, ordered, value)
            reached = ", ".join(f"{name} {mean:.3f}" for name, mean in means(value["measures"]).items())
            log.info("%s%s: %s; %.0f s", prefix, run.name, reached, value["seconds"])
        processes.wait()
        if processes.is_first():
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # others may be in work
                folder.parent.rmdir()


def begin_in(folder: Path, depends: dict[str, Any]) -> None:
    """Keep what is there of a run that was killed; throw away what is of another configuration."""
    text, about = json.dumps(depends), folder / "config.json"
    if processes.is_first():
        if about.exists() and about.read_text("utf-8") == text:
            log.info("going on with %s", folder)
        else:
            for path in folder.iterdir():
                if path.name != ".lock":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            write_text(about, text)
    processes.wait()


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold a run's folder, of one process or of several together; tell whether it could be held.

    The lock is the operating system's: a process that dies lets go of it.

    Raises:
        OutputError: the folder cannot be written.
    """
    lock = FileLock(folder / ".lock")
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


def train_and_rank(run: Run, system: System, task: Task) -> tuple[Ranking, dict[str, Any]]:
    """Train a system and re-rank with it; what learns nothing is ranked as it is."""
    config, folder, measures = run.config, run.folder / ".unfinished" / run.name, list(run.config.measures)
    if system.is_first_stage:
        first = made(system.values["first_stage"], "recipe.first_stage", Retriever).fit(task.collection.documents)
        dev, test = (Ranked.of(s, rank_by_first_stage(first, s), measures) for s in (task.dev, task.test))
        return test.ranking, {
            "measures": test.measures,
            "dev_measures": means(dev.measures),
            "seconds_per_document": None,
        }
    processes.count()  # under torchrun this gives each process its GPU
    if device() == "cuda":
        torch.cuda.reset_peak_memory_stats()
    # a training finds the costly weights of what was ranked before it, in this process or in another one
    builder = system.builder(task, Cache(run.weights) if run.weights else None)
    set_seed(config.seed)
    model, training = system.model, None
    if system.is_trainable:
        groups = TrainingGroups(task.train, config.trainer.groups, config.trainer.negatives, config.seed)
        training = system.train(builder, groups, folder / "training")
        log.info("%s: trained on %s", system.name, counted(len(groups), "group"))
        if run.keep_model and processes.is_first():
            system.save(run.folder / "models" / file_name(run.name), builder, groups, task, training)
    dev, _ = system.rerank(task.dev, builder, folder / "scores" / "dev")
    ordered, seconds = system.rerank(task.test, builder, folder / "scores" / "test")
    on_dev, test = Ranked.of(task.dev, dev, measures), Ranked.of(task.test, ordered, measures)
    return ordered, {
        "measures": test.measures,
        "dev_measures": means(on_dev.measures),
        "interpolated": interpolated(on_dev, test, str(config.data.splits.test)),
        "seconds_per_document": seconds,
        "training_seconds": training and training.seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if device() == "cuda" else None,
        "training": training.log if training else [],
    }


def interpolated(dev: Ranked, test: Ranked, name: str) -> dict[str, Any]:
    """Return the mixture with the first stage: its weight and its measures.

    The weight is the one that is best on dev by the first measure, or a half where no query of dev is ranked.
    """
    measures, weight = list(test.measures), 0.5
    if dev.split.queries:
        weight = ranking.choose_weight(dev.split.candidates or {}, dev.ranking, dev.split.qrels, measures[0])
    mixed = ranking.interpolate(test.split.candidates or {}, test.ranking, weight)
    return {"weight": weight, "measures": {name: ranking.evaluate(test.split.qrels, mixed, measures).per_query}}


def means(measures: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return measure -> mean over the queries."""
    return {name: fmean(values.values()) for name, values in measures.items()}
