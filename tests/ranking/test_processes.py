"""One process alone needs nobody; several are tested in tests/trust, as real launchers start them."""

import pytest
import torch

from socialgraph.ranking import processes


def test_one_process_is_all(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert (processes.count(), processes.number(), processes.is_first()) == (1, 0, True)
    value = object()
    assert processes.from_first(value) is value
    assert processes.from_all(value) == [value]
    processes.wait()
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize(("asked", "first", "other"), [(True, False, True), (False, True, True), (None, None, True)])
def test_only_the_first_one_has_a_bar(monkeypatch, asked, first, other):
    assert processes.no_bar(asked) is first
    monkeypatch.setattr(processes, "number", lambda: 1)
    assert processes.no_bar(asked) is other


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
