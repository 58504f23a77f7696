"""What the scripts do with their output folder: alone in it, in several processes, after a kill, where it is closed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import children
import commands
import pytest
import torch
from commands import EXPERIMENTS, typed_for_tales, write_tales
from lab import execute
from lab.plan import Row, Run, results_folder
from lab.recipe import divided
from lab.unfinished import Training, Unfinished
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
    assert printed["two"].count("| Model |") == 2  # untrained, trained
    assert (tmp_path / "two" / "run.log").read_text().count("done in") == 1
    assert not (tmp_path / "outputs").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"tales", "one", "two"}


def test_a_killed_run_goes_on_in_its_folder(tales, tmp_path):
    command = [EXPERIMENTS / "run.py", *tales, *TWO, "trainer.groups=40"]
    whole = children.run(*command, f"hydra.run.dir={tmp_path / 'whole'}", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr[-3000:]
    folder = tmp_path / "killed"
    running = children.Program(*command, f"hydra.run.dir={folder}", cwd=tmp_path)
    until = time.monotonic() + 1200
    while running.poll() is None and not any(folder.glob("runs/.unfinished/*/training/checkpoint-*")):
        assert time.monotonic() < until
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    assert running.wait().returncode == -signal.SIGKILL
    again = children.run(*command, f"hydra.run.dir={folder}", cwd=tmp_path)
    assert again.returncode == 0, again.stderr[-3000:]
    assert f"going on with {folder / 'runs' / '.unfinished'}" in again.stdout
    for path in (tmp_path / "whole" / "runs").glob("*.run.gz"):
        assert path.read_bytes() == (folder / "runs" / path.name).read_bytes(), path.name
    assert not (folder / "runs" / ".unfinished").exists()


def test_two_processes_take_different_runs_of_one_folder(tales, tmp_path):
    """What another process is at is left to it; who is killed lets go of what it held, and nothing is done twice."""
    results = f"results={tmp_path / 'results'}"
    typed = [*tales, "size.short=32", "size.long=48", "rows=[bm25,parade,maxp]", "trainer.groups=60", results]
    command = [EXPERIMENTS / "table.py", *typed, f"hydra.run.dir={tmp_path / 'out'}"]
    folder = tmp_path / "results" / "tales" / "test"
    first = children.Program(*command, cwd=tmp_path)
    until = time.monotonic() + 1200
    while not any(folder.glob(".unfinished/maxp.0/training/checkpoint-*")):
        assert time.monotonic() < until
        time.sleep(0.01)
    first.send_signal(signal.SIGSTOP)  # it holds the run for as long as the other one works
    try:
        second = children.run(*command, cwd=tmp_path)
        assert second.returncode == 0, second.stderr[-3000:]
        assert "maxp.0: another process is at it" in second.stdout
        assert {path.name for path in folder.glob("*.json")} == {"bm25.0.json", "parade.0.json"}
        assert "| BERT-MaxP |" not in second.stdout
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    made = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    third = children.run(*command, cwd=tmp_path)
    assert "going on with" in third.stdout
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert "| BERT-MaxP |" in third.stdout


def test_a_closed_folder_shows_before_anything_is_computed(tales, tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "carry_out", None)  # nothing of the work may begin
    (tmp_path / "file").write_text("")
    run = Run(Row("bm25"), OmegaConf.create({"seed": 0}), {"test": tmp_path / "file" / "results"}, {"test": {}})
    with pytest.raises(OutputError, match=r"file/results.*: cannot be written .*choose another folder"):
        execute.execute(run)


def test_names_of_folders_lead_nowhere_else(tmp_path):
    for label in ("../../etc", "/etc", "..", ".", "", "a/../../b"):
        config = OmegaConf.create({"results": str(tmp_path), "data": {"label": label, "splits": {"test": label}}})
        found = results_folder(config)
        assert found.resolve() == found
        assert found.parent.parent == tmp_path
        assert Path(found).is_relative_to(tmp_path)


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "typed", "written"),
    [
        ("run", ["rows=[bm25]", "recipe.name=../evil"], {"runs/bm25-untrained.0.run.gz", "table.md"}),
        (  # Hydra finds this recipe
            "run", ["rows=[../../recipes/recipe/parade-max]", "recipe.name=/evil"],
            {"runs/recipes-recipe-parade-max.0.json", "runs/models/recipes-recipe-parade-max.0/model.safetensors"},
        ),
        (
            "table", ["rows=[bm25]", "table.name=../../../../evil", "recipe.name=../evil"],
            {"tales/test/bm25.0.json", "tales/test/evil.csv"},
        ),
        (
            "compare", ["varied=['partition=edge,node']", "level=training", "size.compared=48", "name=../../../evil"],
            {"tales/test/evil/partition=edge.0.json", "tales/test/evil/table.md"},
        ),
    ],
)  # fmt: skip
def test_names_in_options_write_nothing_outside(command, typed, written, tales, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, there = tmp_path / "a" / "b" / "c" / "out", files(tmp_path)
    small = ["document_length=48", "partition.k=2", "trainer.groups=2"]
    if command != "run":
        small = [f"results={folder}", "size.short=32", "size.long=48", *small[1:]]
    folder.mkdir(parents=True)
    commands.call(command, *tales, *small, *typed, f"hydra.runtime.output_dir={folder}")
    assert {path for path in files(tmp_path) - there if not path.startswith("a/b/c/out/")} == set()
    assert written <= files(folder)


def test_names_of_runs_and_splits_lead_nowhere_else(tmp_path):
    for name in ("../evil", "/etc/evil", "..", ".", "", "a/../../b", "..\\evil", "a\0b"):
        for kind in ("", "untrained"):
            run = Run(Row(name), OmegaConf.create({"seed": 0}), {}, {}, kind=kind)
            assert (tmp_path / run.name).resolve().parent == tmp_path, run.name
            assert not run.name.startswith(".")
        journal = Unfinished(tmp_path / "run", {}).journal(name)
        assert journal.resolve().parent == tmp_path / "run" / "scores"
    # names that stay what they are, so that what is finished is found again
    for name in ("socialformer-edge", "parade-max-untrained", "partition=edge,partition.k=2", "é-1.5_x"):
        assert Run(Row(name), OmegaConf.create({"seed": 12}), {}, {}).name == f"{name}.12"


def test_a_step_is_divided_among_processes():
    batch, steps = "per_device_train_batch_size", "gradient_accumulation_steps"
    for arguments, among, expected in (
        ({batch: 8}, 1, (8, 1)),
        ({batch: 8}, 4, (2, 1)),
        ({batch: 8, steps: 4}, 2, (8, 2)),
        ({steps: 2}, 8, (1, 2)),
    ):
        found = divided({"learning_rate": 1, **arguments}, among)
        assert (found.get(batch, 8), found.get(steps, 1)) == expected
        assert found["learning_rate"] == 1
    with pytest.raises(OptionError, match=r"a step of 1 x 1 groups cannot be divided among 2 processes"):
        divided({batch: 1}, 2)


def test_a_trained_model_is_kept_also_where_it_shares_weights(tmp_path):
    def model():
        layer = torch.nn.Linear(3, 3)
        return torch.nn.Sequential(layer, layer)

    first, times = model(), []
    train = lambda: times.append(1) or Training([{"step": 1}], 2.0)  # noqa: E731
    Unfinished(tmp_path / "row", {"seed": 0}).trained(first, train)
    again = model()
    assert Unfinished(tmp_path / "row", {"seed": 0}).trained(again, train) == Training([{"step": 1}], 2.0)
    assert torch.equal(again[1].weight, first[0].weight)
    Unfinished(tmp_path / "row", {"seed": 1}).trained(model(), train)  # another configuration begins anew
    assert len(times) == 2
