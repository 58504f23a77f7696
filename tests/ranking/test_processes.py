"""One process alone needs nobody; several are tested in tests/trust, as real launchers start them."""

import os

import pytest
import torch
from trained import trained
from training_task import Overlap

from socialgraph.ranking import processes, rerank


def test_one_process_is_all(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert (processes.count(), processes.number(), processes.is_first()) == (1, 0, True)
    value = object()
    assert processes.from_first(value) is value
    assert processes.from_all(value) == [value]
    processes.wait()
    assert not torch.distributed.is_initialized()


def test_a_world_size_that_somebody_left_is_no_launcher(monkeypatch, task, tmp_path):
    """accelerate would join the others that it speaks of."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.warns(UserWarning, match=r"WORLD_SIZE=2 is in the environment and RANK, .* not: no launcher"):
        trained(task, tmp_path, save_strategy="steps")
    assert processes.count() == 1
    monkeypatch.setenv("WORLD_SIZE", "2")
    _, split, builder = task
    rerank(Overlap(), builder, split.queries, split.candidates, progress=False)  # asks nobody
    assert "WORLD_SIZE" in os.environ


@pytest.mark.parametrize(
    ("gpus", "here", "flag", "expected"),
    [(0, "2", None, True), (2, "2", None, False), (1, "2", None, True), (8, None, None, False), (8, "8", "true", True),
     (8, "8", "1", True), (8, "8", "false", False)],
)  # fmt: skip
def test_where_processes_talk(monkeypatch, gpus, here, flag, expected):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    for name, value in (("LOCAL_WORLD_SIZE", here), ("ACCELERATE_USE_CPU", flag)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert processes.on_cpu() is expected
