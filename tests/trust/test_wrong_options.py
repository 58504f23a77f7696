"""Wrong options, by the hundred: each ends in one line that names it, before PyTorch is imported; right ones pass."""

import os
import re
import runpy
import subprocess
import sys
from typing import get_args

import pytest
from commands import EXPERIMENTS, call, configured, typed_for_tales, write_tales
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from option_cases import WRONG
from right_options import RIGHT

from socialgraph.errors import OptionError


@pytest.fixture(autouse=True)
def _hydra():
    with initialize_config_dir(str(EXPERIMENTS / "conf"), version_base="1.3"):
        yield
    GlobalHydra.instance().clear()


def told(command, typed):
    """Return the error that a command ends with, None if it goes on."""
    from lab.mistakes import not_begun, whole_message
    from lab.options.commands import check_command

    try:
        check_command(configured(command, *typed.split(" ") if typed else ()), command)
    except OptionError as error:
        return str(error)
    except Exception as error:  # of Hydra
        known = isinstance(error, HydraException | OmegaConfBaseException)
        return whole_message(error, command) if known else not_begun(error)
    return None


@pytest.mark.parametrize("command", WRONG)
def test_wrong_options(command, record_property):
    failed = []
    for typed, pattern in WRONG[command].items():
        text = told(command, typed)
        is_line = text is not None and text.isprintable() and len(text) < 700 and "HYDRA_FULL_ERROR" not in text
        if not is_line or not re.search(pattern, text):
            failed.append(f"{command} {typed}: expected {pattern!r}, got {text!r}")
    assert failed == [], "\n".join([f"{len(failed)} of {len(WRONG[command])}", *failed])
    record_property("told", f"wrong options, {command}: {len(WRONG[command])} cases, each refused in one line")


def test_there_are_many():
    assert sum(map(len, WRONG.values())) > 150
    assert sum(map(len, RIGHT.values())) > 60


@pytest.mark.parametrize("command", RIGHT)
def test_right_options(command):
    failed = {typed: text for typed in RIGHT[command] if (text := told(command, typed)) is not None}
    assert failed == {}


def test_every_file_of_every_group_passes():
    """Those of recipes and groups; tests of the tables do the same with their rows."""
    from lab.plan import composed

    checked = 0
    loader = GlobalHydra.instance().config_loader()
    for group in ("recipe", "partition", "edges", "training", "trainer"):
        for name in loader.get_group_options(group):
            composed([f"{group}={name}"])
            checked += 1
    assert checked > 45


def test_the_page_and_the_help_are_written_from_the_options():
    from lab.options.help import files_of, help_lines

    docs = EXPERIMENTS.parent / "docs"
    page = runpy.run_path(str(docs / "site" / "options.py"))["page"]
    assert (docs / "options.md").read_text() == page(), "python docs/site/options.py > docs/options.md"
    lines = help_lines("run").splitlines()
    assert any(re.match(r"  trainer\.bf16 +bfloat16; .* \(true, false or auto\)$", line) for line in lines)
    assert "$" not in "".join(lines)  # it would stand for something else there
    groups = {"data", "edges", "model", "partition", "recipe", "report", "trainer", "training"}
    assert set(files_of("run")) == groups  # and none that it refuses
    assert set(files_of("table")) == groups | {"size", "table"}


def test_choices_are_those_of_the_code():
    from lab.columns import COLUMNS
    from lab.options.commands import ColumnName

    assert set(get_args(ColumnName)) == set(COLUMNS)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nobody", 1, r"no option is called trainer.arguments.nobody; none of the"),
        ("lerning_rate", 1, r"no option is called .*; did you mean trainer.arguments.learning_rate\?"),
        ("seed", 1, "trainer.arguments.seed follows from another option: seed"),
        ("bf16", True, "trainer.arguments.bf16 follows from another option: trainer.bf16"),
        ("save_steps", 5, "trainer.arguments.save_steps follows from another option: trainer.save_every"),
        ("fp16", "x", "trainer.arguments.fp16 must be true or false, got 'x'"),
        ("label_smoothing_factor", "nan", "trainer.arguments.label_smoothing_factor must be a number, got nan"),
        ("optim", "nobody", "trainer.arguments: nobody is not a valid OptimizerNames"),
        ("lr_scheduler_type", "nobody", "trainer.arguments: nobody is not a valid SchedulerType"),
        ("dataloader_num_workers", 1.5, "trainer.arguments.dataloader_num_workers must be a whole number"),
    ],
)
def test_arguments_of_the_library(name, value, message):
    """By its own types and its own checks."""
    from lab.options.classes import check_arguments

    check_arguments(compose("config", ["+trainer.arguments.optim=adafactor", "training=keyb"]))
    with pytest.raises(OptionError, match=message):
        check_arguments(compose("config", [f"++trainer.arguments.{name}={value}"]))


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("model.inter_circle=x", "recipe.model.inter_circle must be true or false, got 'x'"),
        ("model.inter_shared=1", "recipe.model.inter_shared must be true or false, got 1"),
        ("model.inter_heads=1.5", "recipe.model.inter_heads must be a whole number or null, got 1.5"),
        ("+model.dropout=nan", "recipe.model.dropout must be a number, got nan"),
        ("partition.k=x", "recipe.circles.k must be a whole number, got 'x'"),
        ("partition.k=true", "recipe.circles.k must be a whole number, got true"),
        ("edges.sparsity=many", "recipe.edges.sparsity must be a number, got 'many'"),
        ("edges.patterns.static_distance.p=x", "recipe.edges.patterns.static_distance.p must be a number, got 'x'"),
        ("recipe=bigbird recipe.edges.block=1.5", "recipe.edges.block must be a whole number, got 1.5"),
        ("recipe=longformer recipe.edges.query=x", "recipe.edges.query must be true or false, got 'x'"),
        ("recipe=qds recipe.model.own_global=null", "recipe.model.own_global must be true or false, got null"),
        ("recipe=keyb-parade5 recipe.model.passages=null", "recipe.model.passages must be a whole number, got null"),
        ("partition=leiden partition.resolution=x", "recipe.circles.resolution must be a number, got 'x'"),
        ("recipe=ql recipe.first_stage.mu=x", "recipe.first_stage.mu must be a number, got 'x'"),
        ("+data.retriever.k1=x", "data.retriever.k1 must be a number, got 'x'"),
        ("+data.collection.max_queries=x", "data.collection.max_queries must be a whole number.*, got 'x'"),
        ("edges._target_=no_such_module.Nobody", "recipe.edges._target_=no_such_module.Nobody: No module named .*"),
        ("edges._target_=collections.OrderedDict", None),  # a class of one's own says what it takes, and says it later
    ],
)
def test_options_of_the_packages_classes(typed, message):
    """By the type hints of their constructors."""
    from lab.options.classes import check_parts

    def checked(*typed):
        config = OmegaConf.to_container(compose("config", list(typed)), resolve=True)
        check_parts(config["recipe"], "recipe")
        check_parts(config["data"], "data")

    if message is None:
        checked(*typed.split(" "))
        return
    checked(*[one for one in typed.split(" ") if one.startswith(("recipe=", "partition="))])
    with pytest.raises(OptionError, match=f"^{message}$"):
        checked(*typed.split(" "))


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("data.splits.dev=nobody", "collection tales has no split 'nobody'; there are: dev, test, train"),
        ("data.splits.test=[dev,test]", "data.splits.test must be one split here, got dev, test"),
        ("data.splits.test=5", "collection tales has no split '5'; there are: dev, test, train"),
        ("data.retriever=null", "data.retriever is null, but tales has no candidates for dev, test, train"),
        ("model.inter_heads=-1", "model: inter_heads must be a whole number of 1 or more, got -1"),
        ("+model.attention=flash", "model: attention must be one of edges, padded, varlen, or None, got 'flash'"),
        ("partition.k=0", "partition: k, the number of circles, must be at least 1, got 0"),
        ("recipe.stages={a:1}", "Socialformer has the stages ranking, got 'a'"),
        ("+trainer.arguments.fsdp=full_shard", "trainer.arguments.fsdp is not offered here"),
        ("model._target_=socialgraph.nn.MaxP", ".*MaxP is a model whose BERT has read nothing: name .*MaxP.from_b"),
        ("recipe.model=null", "recipe.model and recipe.first_stage are null: nothing ranks"),
        ("data.collection._target_=nobody.load", "data.collection._target_=nobody.load: No module named 'nobody'"),
        ("data.collection._target_=ends.load", r"data.collection._target_=ends.load: importing 'ends' .*ends.py:1\)"),
        ("data.collection._target_=leaves.load", "data.collection: leaves.load: SystemExit: bye"),
        ("data.collection._target_=builtins.dict", "data.collection: builtins.dict "),
        ("partition._target_=ends.Mine", r"partition._target_=ends.Mine: importing 'ends' raises SystemExit"),
        ("partition._target_=socialgraph.partition.Metiss", r"partition._target_=.* no Metiss; did you mean Metis\?"),
        ("partition._target_=Mine", "partition._target_=Mine: a class is named with its module, my_module.Mine"),
    ],
)
def test_what_only_the_data_or_a_model_can_judge(typed, message, tmp_path, monkeypatch):
    """One line, and no folder of a run that has not begun."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "ends.py").write_text("raise SystemExit")
    (tmp_path / "leaves.py").write_text("def load(**_): raise SystemExit('bye')")
    write_tales(tmp_path / "tales")
    GlobalHydra.instance().clear()
    small = [*typed_for_tales(tmp_path / "tales"), "document_length=48", "partition.k=2", "rows=[socialformer]"]
    with pytest.raises(SystemExit, match=f"^error: {message}"):
        call("run", *small, typed, f"hydra.runtime.output_dir={tmp_path / 'out'}")
    assert {path.name for path in (tmp_path / "out").iterdir()} <= {"config.yaml", "runs"}
    assert not list((tmp_path / "out").rglob(".unfinished"))


@pytest.mark.parametrize(
    ("command", "typed", "message"),
    [
        ("run", "trainer.groups=x", r"trainer\.groups must be a whole number from 0 to 2147483647, got 'x'"),
        ("run", "hydra.run.dir=/dev/null", r"/dev/null cannot be written \(.*\): choose another folder, hydra.run.dir"),
        ("run", "--config-name=nobody", "Cannot find primary config 'nobody'"),
        ("table", "hydra.verbose=5", "Hydra could not begin: AssertionError"),
        ("table", "trainer.grups=1", r"no option is called trainer\.grups; did you mean trainer\.groups\?"),
        ("run", "edges=null", r"Hydra could not begin: .* \(edges=null\): a group takes the name of one of its files"),
        ("study", "seed=-1", "seed must be a whole number from 0 to 4294967295, got -1"),
        ("compare", "partition=node,edge trainer.bf16=maybe", "trainer.bf16 must be true, false or auto, got 'maybe'"),
        ("reader", "rank=0", "rank must be a whole number from 1 to 2147483647, got 0"),
    ],
)
def test_the_commands_end_before_pytorch(command, typed, message, tmp_path):
    """In a process of its own in which PyTorch cannot be imported."""
    (tmp_path / "torch.py").write_text("raise SystemExit('PyTorch was imported')")
    path = os.pathsep.join([str(tmp_path), str(EXPERIMENTS.parent)])
    done = subprocess.run(
        [sys.executable, str(EXPERIMENTS / f"{command}.py"), *typed.split(" ")],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert re.fullmatch(f"error: {message}.*\n", done.stderr)
    assert done.stdout == ""
