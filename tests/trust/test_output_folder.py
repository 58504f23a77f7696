"""What the scripts do with their output folder: alone in it, in several processes, after a kill, where it is closed."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir
from test_killed_table import ROOT, typed, write_tales

from socialgraph.data.files import only_here
from socialgraph.errors import OptionError, OutputError

EXPERIMENTS = ROOT / "experiments"
#: one step reads two groups; without dropout two processes draw nothing that one would not
TWO = [
    "+trainer.arguments.gradient_accumulation_steps=2", "+model.dropout=0.0", "+baseline.model.dropout=0.0",
    "document_length=48", "partition.k=2", "trainer.groups=8",
]  # fmt: skip


@pytest.fixture
def tales(tmp_path):
    write_tales(tmp_path / "tales")
    unknown = ("size.", "rows=")
    return [option for option in typed(tmp_path / "tales") if not option.startswith(unknown)]


def call(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, **options)


def test_two_processes_give_the_files_of_one(tales, tmp_path):
    """torchrun with two processes (gloo): the same run files, one output folder, one log, one table on the screen."""
    launched = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", EXPERIMENTS / "run.py"]
    printed = {}
    for name, command in (("one", [sys.executable, EXPERIMENTS / "run.py"]), ("two", launched)):
        done = call(*command, *tales, *TWO, f"hydra.run.dir={tmp_path / name}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
        printed[name] = done.stdout
    for path in (tmp_path / "one" / "runs").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / "runs" / path.name).read_bytes(), path.name
    assert len(list((tmp_path / "two" / "runs").iterdir())) == 10
    assert printed["two"].count("| system |") == 1
    assert (tmp_path / "two" / "run.log").read_text().count("done in") == 1
    assert not (tmp_path / "outputs").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"tales", "one", "two"}


def test_a_killed_run_goes_on_in_its_folder(tales, tmp_path):
    command = [sys.executable, str(EXPERIMENTS / "run.py"), *tales, *TWO, "trainer.groups=40"]
    whole = call(*command, f"hydra.run.dir={tmp_path / 'whole'}", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr[-3000:]
    folder = tmp_path / "killed"
    running = subprocess.Popen([*command, f"hydra.run.dir={folder}"], cwd=tmp_path, stdout=-3, stderr=-3)
    until = time.monotonic() + 300
    while running.poll() is None and not any(folder.glob("unfinished/*/training/checkpoint-*")):
        assert time.monotonic() < until
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    again = call(*command, f"hydra.run.dir={folder}", cwd=tmp_path)
    assert again.returncode == 0, again.stderr[-3000:]
    assert f"going on with {folder / 'unfinished'}" in again.stdout
    for path in (tmp_path / "whole" / "runs").iterdir():
        assert path.read_bytes() == (folder / "runs" / path.name).read_bytes(), path.name
    assert not (folder / "unfinished").exists()


def test_the_second_of_two_runs_is_refused_in_one_line(tales, tmp_path):
    program = "import sys, time\nfrom socialgraph.data.files import only_here\n"
    program += "with only_here(sys.argv[1]):\n    print('here', flush=True)\n    time.sleep(600)"
    folder = tmp_path / "out"
    first = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "here\n"
    try:
        done = call(sys.executable, EXPERIMENTS / "run.py", *tales, f"hydra.run.dir={folder}", cwd=tmp_path)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            f"error: {folder}: another process writes there; wait for it, stop it, or choose another folder"
        )
    finally:
        first.kill()
        first.wait()
    with only_here(folder):  # who dies lets go
        pass


def test_a_closed_folder_shows_before_anything_is_computed(tales, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    import tables

    monkeypatch.setattr(tables, "make_row", None)  # nothing of the work may begin
    (tmp_path / "file").write_text("")
    with initialize_config_dir(str(EXPERIMENTS / "conf"), version_base="1.3"):
        options = [*tales, "rows=[bm25]", f"results={tmp_path / 'file' / 'results'}"]
        with pytest.raises(OutputError, match=r"file/results/tales/test.*: cannot be written .*choose another folder"):
            tables.make_table(compose("table1", options), options)


def test_names_of_folders_lead_nowhere_else(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    from omegaconf import OmegaConf
    from results import results_folder

    for label in ("../../etc", "/etc", "..", ".", "", "a/../../b"):
        config = OmegaConf.create({"results": str(tmp_path), "data": {"label": label, "splits": {"test": label}}})
        found = results_folder(config)
        assert found.resolve() == found
        assert found.parent.parent == tmp_path
        assert Path(found).is_relative_to(tmp_path)


def test_a_step_is_divided_among_processes(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    from rows import shared_out

    batch, steps = "per_device_train_batch_size", "gradient_accumulation_steps"
    for arguments, among, expected in (
        ({batch: 8}, 1, (8, 1)),
        ({batch: 8}, 4, (2, 1)),
        ({batch: 8, steps: 4}, 2, (8, 2)),
        ({steps: 2}, 8, (1, 2)),
    ):
        found = shared_out({"learning_rate": 1, **arguments}, among)
        assert (found.get(batch, 8), found.get(steps, 1)) == expected
        assert found["learning_rate"] == 1
    with pytest.raises(OptionError, match=r"a step of 1 x 1 groups cannot be divided among 2 processes"):
        shared_out({batch: 1}, 2)


def test_a_trained_model_is_kept_also_where_it_shares_weights(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    from unfinished import Training, Unfinished

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
