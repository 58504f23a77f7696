"""Scores of finished batches in a file of JSON lines, so that re-ranking that was stopped goes on where it was.

The first line is what the scores depend on. Each further line is a batch: ``[[query id, document id, score], ...]``. A
line is handed to the system before the next batch begins, so it outlives the process. A line that a power cut or a full
disk has torn is not read, and its batch is scored again. Nothing is ever removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from socialgraph.data.files import atomic_write
from socialgraph.errors import CheckpointError, OutputError, first_line
from socialgraph.ranking import processes
from socialgraph.ranking.identity import check_same

Scores = dict[tuple[str, str], float]
"""(query id, document id) -> score."""


def begin_journal(path: str | os.PathLike[str], identity: Mapping[str, Any], distributed: bool = False) -> Scores:
    """Make a journal, or see that the one that is there is of the same work; return the scores that it holds.

    Args:
        path: of the file; missing folders are made.
        identity: what the scores depend on, by name; JSON.
        distributed: the first process does so, and tells the others.

    Raises:
        CheckpointError: the file is no journal, or of other work.
        OutputError: it cannot be written.
    """
    if distributed:
        return processes.run_in_first(lambda: begin_journal(path, identity))
    if not Path(path).exists():
        with atomic_write(path) as file:
            file.write(json.dumps(identity))
    try:
        with open(path, "rb") as there:
            kept = dict(json.loads(there.readline()))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        what = f"not a journal of re-ranking ({first_line(error)})"
        raise CheckpointError(f"{path}: {what}; remove it or choose another") from None
    check_same(path, kept, identity)
    return read_journal(path)


def read_journal(path: str | os.PathLike[str]) -> Scores:
    """Return the scores that a journal holds so far."""
    scores: Scores = {}
    with open(path, "rb") as file:
        for line in islice(file, 1, None):
            try:
                scores |= {(query, document): float(score) for query, document, score in json.loads(line)}
            except (ValueError, TypeError, RecursionError):
                continue  # torn
    return scores


def write_batch(path: str | os.PathLike[str], scores: Sequence[tuple[str, str, float]]) -> None:
    """Write down a finished batch of (query id, document id, score).

    Floats come back as they are. Several processes may write to one file: each line is one write to its end. It begins
    with the end of the line before, which may be torn.

    Raises:
        OutputError: it cannot be written. What was there before is there still.
    """
    try:
        with open(path, "ab") as file:
            file.write(b"\n" + json.dumps(scores).encode())
    except OSError as error:
        told = "what is finished is kept: make room and start again"
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}); {told}") from error
