"""What is typed wrong ends in one line, exit status 2; what no row uses is told; nothing heavy was imported before."""

import os
import re
import subprocess
import sys

import pytest
from commands import EXPERIMENTS, call, configured, typed_for_tales, write_tales
from hydra import compose
from hydra.core.config_store import ConfigStore
from lab.command import one_line_errors
from lab.config import SCHEMAS, spelled_out
from lab.rows import check_used, rows, runs_of

from socialgraph.errors import InputError, OptionError
from socialgraph.recipes.compose import recipes

#: command and options -> what the line says. These are found by Hydra, before PyTorch is loaded
TYPED_WRONG = {
    "run seed=x": "seed=x .*could not be converted to Integer",
    "run trainer.grups=1": "Could not override 'trainer.grups'.",
    "run partition=nobody": "Could not find 'partition/nobody' Available options in 'partition': beside-windows edge ",
    "run --config-name=nobody": "Cannot find primary config 'nobody'",
    "compare levels.evidence.amount=many": "could not be converted to Integer",
    "reader rank=x": "rank=x .*could not be converted to Integer",
    "figures figure=four": "figure=four .*could not be converted to Integer",
    "table measure=RR@10 bounds=[a]": "could not be converted to Integer",
    "run hydra.run.dir=/dev/null/x": "/dev/null/x.*choose another folder, hydra.run.dir=...",
}


@pytest.mark.parametrize("typed", TYPED_WRONG)
def test_the_commands_end_before_pytorch(typed, tmp_path):
    """In a process of its own in which PyTorch cannot be imported."""
    (tmp_path / "torch.py").write_text("raise SystemExit('PyTorch was imported')")
    path = os.pathsep.join([str(tmp_path), str(EXPERIMENTS.parent)])
    command, *options = typed.split(" ")
    done = subprocess.run(
        [sys.executable, str(EXPERIMENTS / f"{command}.py"), *options],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == (1 if "/dev/null" in typed else 2), done.stderr
    assert re.fullmatch(f"error: .*({TYPED_WRONG[typed]}).*\n", done.stderr)
    assert done.stdout == ""


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Return what ranks a small collection and returns how it ends: exit status and line."""
    monkeypatch.chdir(tmp_path)
    write_tales(tmp_path / "tales")
    small = [*typed_for_tales(tmp_path / "tales"), "document_length=48"]

    def run(*typed):
        with pytest.raises(SystemExit) as stopped:
            call("run", *small, *(typed if any("rows=" in one for one in typed) else [*typed, "rows=[socialformer]"]))
        assert not list(tmp_path.rglob("*.run.gz"))
        return stopped.value.code, capsys.readouterr().err.strip().splitlines()[-1]

    return run


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("data.retriever=null", "data.retriever is null, but tales, split (dev|test) has no candidates"),
        ("data.queries.test=-5", "data.queries.test and data.depth must not be negative"),
        ("partition.k=0", "partition: .*k, the number of circles, must be at least 1, got 0"),
        ("trainer.bf16=maybe", "trainer.bf16 must be true, false or auto, got 'maybe'"),
        ("+trainer.arguments.nobody=1", "trainer.arguments: .*unexpected keyword argument 'nobody'"),
        ("+trainer.arguments.seed=1", "trainer.arguments.seed follows from another option: seed"),
        ("recipe.model=null", "recipe.model and recipe.first_stage are null: nothing ranks"),
        ("report.columns=[model,nobody]", "there is no column 'nobody'; there are: model, "),
        ("data.collection._target_=builtins.dict", "data.collection"),
        ("partition=my_modul.Mine", "partition=my_modul.Mine: No module named 'my_modul'; is it in this folder"),
        ("edges.patterns={}", "changes nothing"),
        (
            "report.differences=[{measure: AP, to: maxp}] report.columns=[differences]",
            "report compares AP, and what is",
        ),
    ],
)
def test_what_a_constructor_refuses_is_one_line(refused, typed, message):
    status, line = refused(*re.split(" (?=report.columns)", typed))
    assert status == 2
    assert re.search(f"^error: .*{message}", line), line


@pytest.mark.parametrize(
    ("typed", "named", "is_used"),
    [
        ("partition=node", ["bm25", "socialformer"], True),
        ("k=3", ["socialformer"], True),
        ("model.inter_circle=false", ["maxp"], False),
        ("model.backbone=minilm", ["maxp"], True),  # that of all systems
        ("document_length=64", ["bm25"], False),
        ("~edges.patterns.static_distance", ["parade-max"], False),
        ("training=keyb", ["bm25"], False),
        ("recipe=bigbird", ["bm25", "maxp"], False),
        ("window=16", ["keyb-maxp", "firstp"], True),
        ("recipe=bigbird", ["bm25", "bigbird"], True),
    ],
)
def test_an_option_that_no_row_uses_is_told(hydra, tmp_path, typed, named, is_used):
    config = configured("run", typed, f"rows=[{','.join(named)}]")
    runs = runs_of(config, rows(config)[0], tmp_path)[-1]
    if is_used:
        check_used(runs)
        return
    with pytest.raises(OptionError, match=f"^{re.escape(typed)}: no row uses it"):
        check_used(runs)


def test_every_option_of_a_command_has_a_type_and_every_file_composes(hydra):
    for name in SCHEMAS:
        assert f"{name}_options.yaml" in ConfigStore.instance().list("")
    for recipe in recipes():
        compose("run", [f"recipe={recipe}"])


MODULE = """
from socialgraph.edges import SocialEdges, Uniform
from socialgraph.partition import Windows

class Mine(Windows): pass
class Friends(Uniform): pass
class Sampler(SocialEdges): pass
"""


def test_a_class_of_ones_own_is_spelled_out(tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_module", raising=False)
    assert spelled_out(["recipe=maxp", "partition=own_module.Mine", "edges=own_module.Friends"]) == [
        "recipe=maxp", "partition._target_=own_module.Mine",
        "edges=random", "~edges.patterns.uniform", "+edges.patterns.own._target_=own_module.Friends",
    ]  # fmt: skip
    assert spelled_out(["edges=own_module.Sampler"]) == ["edges=random", "edges._target_=own_module.Sampler"]
    plain = ["partition=node", "edges.sparsity=0.9", "data.path=a.b", "--help"]
    assert spelled_out(plain) == plain
    for text, told in (
        ("def f(:", r"invalid syntax \(own_broken.py, line 1\)"),
        ("x = undefined", "importing 'own_broken' raises NameError"),
        ("Mine = 5", "Mine is no subclass of"),
    ):
        (tmp_path / "own_broken.py").write_text(text)
        monkeypatch.delitem(sys.modules, "own_broken", raising=False)
        with pytest.raises(OptionError, match=f"^partition=own_broken.Mine: {told}"):
            spelled_out(["partition=own_broken.Mine"])


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "error: interrupted: what is finished stands, and the same command goes on"),
        (OptionError("k must be 1"), 2, "error: k must be 1"),
        (InputError("corpus.jsonl:3: no text"), 1, "error: corpus.jsonl:3: no text"),
    ],
)
def test_every_end_is_one_line(error, status, line, capsys):
    with pytest.raises(SystemExit) as stopped, one_line_errors():
        raise error
    assert stopped.value.code == status
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith(line)
