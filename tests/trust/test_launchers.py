"""Runs at once, in processes that a launcher of Hydra has started; one of them is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import children
import pytest
from commands import EXPERIMENTS, typed_for_tales, write_tales

pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="needs the extra launchers")


def holder(lock):
    """Return the process that has a file open."""
    for place in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(place) == str(lock):
                return int(place.parts[2])
        except OSError:  # it has just ended
            continue
    return None


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="processes are looked for in /proc")
def test_two_at_once_and_one_is_killed(tmp_path):
    """submitit's local executor: what the others finished stands, and the same line does the rest."""
    write_tales(tmp_path / "tales")
    results = tmp_path / "results"
    command = [
        sys.executable, str(EXPERIMENTS / "table.py"), *typed_for_tales(tmp_path / "tales"), "size.short=32",
        "size.long=48", "rows=[parade,maxp]", "trainer.groups=32", "trainer.save_every=4", f"results={results}",
        f"hydra.run.dir={tmp_path / 'out'}",
    ]  # fmt: skip
    options = {"cwd": tmp_path, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen([*command, "hydra/launcher=submitit_local"], **options)
    folder = results / "tales" / "test"
    unfinished, until = folder / ".unfinished", time.monotonic() + 1200
    both = [unfinished / "maxp.0" / ".lock", unfinished / "parade.0" / ".lock"]
    at_once = False
    while not any(unfinished.glob("maxp.0/training/checkpoint-*")):
        at_once = at_once or all(path.exists() for path in both)
        assert time.monotonic() < until
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)
    os.kill(holder(both[0]), signal.SIGKILL)
    _, said = running.communicate(timeout=1200)
    assert running.returncode == 1
    assert said.splitlines()[-1].startswith("error: a run did not end: ")
    assert said.splitlines()[-1].endswith("finished runs stand, call again for the rest")
    assert at_once
    assert {path.name for path in folder.glob("*.json")} == {"parade.0.json"}
    made = (folder / "parade.0.json").stat().st_mtime_ns
    again = children.run(*command[1:], cwd=tmp_path)
    assert again.returncode == 0, again.stderr[-3000:]
    assert "going on with" in again.stdout
    assert "| BERT-MaxP | 48 |" in again.stdout
    assert (folder / "parade.0.json").stat().st_mtime_ns == made
