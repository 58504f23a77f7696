"""What the scripts do with their output folder: alone in it, in several processes, after a kill, where it is closed."""

import json
import signal
import subprocess
import sys
import time

import children
import commands
import pytest
from commands import EXPERIMENTS, typed_for_tales, write_tales
from lab import execute
from lab.execute import per_process
from lab.rows import Row, Run
from omegaconf import OmegaConf

from socialgraph.errors import OptionError, OutputError

#: one step reads two groups; without dropout two processes draw nothing that one would not
TWO = [
    "+trainer.arguments.gradient_accumulation_steps=2", "rows=[parade-max,socialformer]",
    "document_length=48", "partition.k=2", "trainer.groups=8",
]  # fmt: skip


@pytest.fixture
def tales(tmp_path):
    write_tales(tmp_path / "tales")
    config = tmp_path / "tales" / "bert" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"hidden_dropout_prob": 0.0}))
    return [*typed_for_tales(tmp_path / "tales"), "trainer.save_every=4", "trainer.token_budget=60"]


def torchrun(program, *typed, cwd):
    launched = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", str(program), *typed]
    return subprocess.run(launched, capture_output=True, text=True, timeout=1800, cwd=cwd)


def test_two_processes_give_the_files_of_one(tales, tmp_path):
    """torchrun with two processes (gloo): the same run files, one output folder, one log, one table on the screen."""
    printed = {}
    for name, run in (("one", children.run), ("two", torchrun)):
        done = run(EXPERIMENTS / "run.py", *tales, *TWO, f"hydra.run.dir={tmp_path / name}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        printed[name] = done.stdout
    rankings = sorted((tmp_path / "one" / "runs").glob("*.run.gz"))
    assert len(rankings) == 4
    for path in rankings:
        assert path.read_bytes() == (tmp_path / "two" / "runs" / path.name).read_bytes(), path.name
    assert printed["two"].count("| Model ") == 2  # untrained, trained
    assert (tmp_path / "two" / "run.log").read_text().count("done in") == 1
    assert not (tmp_path / "outputs").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"tales", "one", "two"}


def test_two_processes_take_different_runs_of_one_folder(tales, tmp_path):
    """What another process is at is left to it; who is killed lets go of what it held, and nothing is done twice."""
    results = f"results={tmp_path / 'results'}"
    typed = ["table=table1", *tales, "size.long=48", "rows=[bm25,parade,maxp]", "trainer.groups=60", results]
    command = [EXPERIMENTS / "run.py", *typed, f"hydra.run.dir={tmp_path / 'out'}"]
    folder = tmp_path / "results" / "tales" / "test"
    first = children.Program(*command, cwd=tmp_path)
    until = time.monotonic() + 1200
    while not any(folder.glob(".unfinished/maxp.0/*/training/checkpoint-*")):
        assert time.monotonic() < until
        time.sleep(0.01)
    first.send_signal(signal.SIGSTOP)  # it holds the run for as long as the other one works
    try:
        second = children.run(*command, cwd=tmp_path)
        assert second.returncode == 0, second.stderr[-3000:]
        assert "maxp.0: another process is at it" in second.stdout
        assert {path.name for path in folder.glob("*.json")} == {"bm25.0.json", "parade.0.json"}
        assert "| BERT-MaxP " not in second.stdout
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    made = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    third = children.run(*command, cwd=tmp_path)
    assert "going on with" in third.stdout
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert "| BERT-MaxP " in third.stdout


def test_a_closed_folder_shows_before_anything_is_computed(tales, tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "load_task", None)  # nothing of the work may begin
    (tmp_path / "file").write_text("")
    run = Run(Row("bm25"), OmegaConf.create({"seed": 0}), tmp_path / "file" / "results", {})
    with pytest.raises(OutputError, match=r"file/results.*: cannot be written .*choose another folder"):
        execute.run_row(run)


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "typed", "written"),
    [
        (  # Hydra finds this recipe
            "run", ["rows=[../../recipes/recipe/parade-max]", "recipe.name=/evil"],
            {"runs/recipes-recipe-parade-max.0.json", "runs/models/recipes-recipe-parade-max.0/model.safetensors"},
        ),
        (
            "run", ["table=table1", "rows=[bm25,maxp]", "table.name=../../../../evil", "results=."],
            {"tales/test/bm25.0.json", "tales/test/evil.csv"},
        ),
        (
            "compare", ["partition=edge,node", "level=[training]", "partition.k=2", "results=.", "name=../../../evil"],
            {"tales/test/evil/partition=edge.0.json", "tales/test/evil/table.md"},
        ),
    ],
)  # fmt: skip
def test_names_in_options_write_nothing_outside(command, typed, written, tales, tmp_path, monkeypatch):
    folder, there = tmp_path / "a" / "b" / "c" / "out", files(tmp_path)
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    commands.call(command, *tales, "document_length=48", "trainer.groups=2", *typed, "hydra.run.dir=.")
    assert {path for path in files(tmp_path) - there if not path.startswith("a/b/c/out/")} == set()
    assert written <= files(folder)


def test_a_step_is_divided_among_processes():
    batch, steps = "per_device_train_batch_size", "gradient_accumulation_steps"
    for arguments, among, expected in (
        ({batch: 8}, 1, (8, 1)),
        ({batch: 8}, 4, (2, 1)),
        ({batch: 8, steps: 4}, 2, (8, 2)),
        ({steps: 2}, 8, (1, 2)),
    ):
        found = per_process({"learning_rate": 1, **arguments}, among)
        assert (found.get(batch, 8), found.get(steps, 1)) == expected
        assert found["learning_rate"] == 1
    with pytest.raises(OptionError, match=r"a step of 1 x 1 groups cannot be divided among 2 processes"):
        per_process({batch: 1}, 2)
