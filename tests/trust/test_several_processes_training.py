"""Training and re-ranking under torchrun, killed and resumed: the same run file as one process, to the last bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import children
import pytest
import torch
from conftest import write_tiny_bert
from safetensors.torch import load_file

PROGRAM = str(Path(__file__).with_name("train_together.py"))
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """What one process makes, with twice the accumulation."""
    folder = tmp_path_factory.mktemp("together")
    write_tiny_bert(folder / "bert", num_hidden_layers=2)
    (folder / "one").mkdir()
    done = children.run(PROGRAM, folder / "bert", folder / "one", 2, 0)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def same(one, other):
    assert (other / "run.txt").read_bytes() == (one / "one" / "run.txt").read_bytes()
    mine, theirs = load_file(other / "model.safetensors"), load_file(one / "one" / "model.safetensors")
    assert [name for name in theirs if not torch.equal(mine[name], theirs[name])] == []
    losses = json.loads((other / "log.json").read_text())
    assert len(losses) == 8
    assert losses == json.loads((one / "one" / "log.json").read_text())


def test_two_processes_of_torchrun_killed_and_resumed_make_the_same_run_file(one):
    bert, out = one / "bert", one / "two"
    out.mkdir()
    killed = [*TORCHRUN, PROGRAM, bert, out, "1", "6"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    assert subprocess.run(killed, capture_output=True, timeout=1800, env=environment).returncode != 0
    assert not (out / "run.txt").exists()
    assert {path.name for path in (out / "training").glob("checkpoint-*")} == {"checkpoint-2", "checkpoint-4"}
    done = children.run_together(2, PROGRAM, bert, out, 1, 0)
    assert [process.returncode for process in done] == [0, 0], [process.stderr[-3000:] for process in done]
    for number, process in enumerate(done):
        assert process.stdout.splitlines()[-1] == f"process {number} of 2 is done"
    same(one, out)
