"""README and the pages that teach: every block of code runs, and every command of those on classes of one's own."""

from __future__ import annotations

import importlib
import io
import re
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import torch
from commands import call, configuration, configured
from hydra.utils import instantiate
from lab.config import spelled_out, typed, varied_as_one
from lab.execute import System
from lab.levels.runs import product_rows
from lab.rows import composed

from socialgraph.cli import parser

ROOT = Path(__file__).parents[1]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the language and text of each block of code."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def follow(page: Path, folder: Path) -> tuple[dict, list[str]]:
    """Do what a page says in a folder: save files, execute the rest; return the names it leaves and its commands.

    What begins with the name of a file is saved. A block of text is what the code before it printed.
    """
    names: dict = {}
    commands: list[str] = []
    printed = ""
    for language, text in blocks(page):
        file = re.match(r"# ([\w/-]+\.(?:py|yaml))\n", text)
        if language in ("python", "yaml") and file:
            (folder / file[1]).parent.mkdir(parents=True, exist_ok=True)
            (folder / file[1]).write_text(text)
        elif language == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(text, names)
            printed = out.getvalue()
            print(printed, end="")
        elif language == "text":
            assert printed == text
        elif language == "py":
            compile(text, page.name, "exec")  # needs what a page cannot bring
        elif language == "sh":
            commands += text.strip().splitlines()
        else:
            raise AssertionError(f"{page.name}: what is a block of {language!r}?")
    return names, commands


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder to work in, on the path as the current one is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in ("my_module", "my_company", "my_partition", "around_query", "leader_gat"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    importlib.invalidate_caches()
    return tmp_path


@pytest.fixture
def budget(workshop):
    """What is added to a command so that it takes seconds."""
    return [one for one in workshop if not one.startswith("data.queries.test=")] + ["data.queries.test=2"]


def arguments(command: str, script: str) -> list[str]:
    """Return what is typed behind the name of a script."""
    python, file, *options = shlex.split(command)
    assert (python, file) == ("python", f"experiments/{script}")
    return options


def searched(options: list[str]) -> list[str]:
    """Return options for ``compose``, which takes a folder of one's own, ``--config-dir``, as a place to search."""
    if "--config-dir" not in options:
        return options
    place = options.index("--config-dir")
    folder = Path(options[place + 1]).resolve().as_uri()
    return [*options[:place], *options[place + 2 :], f"hydra.searchpath=['{folder}']"]


def compare(command: str, budget: list[str], unused: str = "window=") -> str:
    """Do what a command of experiments/compare.py does, without the option that no row uses; return the table."""
    less = [one for one in budget if not one.startswith(unused)]
    if unused == "window=":  # the readings take a sentence encoder, of the same word pieces
        less += [f"sentence_{one.removeprefix('model.')}" for one in budget if one.startswith("model.backbone=")]
    call("compare", *arguments(command, "compare.py"), "measures=[RR@10]", *less)
    (table,) = Path().rglob("table.md")
    return table.read_text()


def rows_of(command: str) -> list[str]:
    """Return what a command of experiments/compare.py would run; each is configured, none is run."""
    options = arguments(command, "compare.py")
    with configuration():
        config = configured("compare", *searched(varied_as_one(options)))
        rows, place = product_rows(config.varied, []), [one for one in searched(options) if "searchpath" in one]
        for row in rows:
            composed([*place, *typed(), *row.overrides])
    return [f"{row.label}, {seed}" for row in rows for seed in config.seeds]


def test_your_own_partition(workplace, budget):
    names, commands = follow(ROOT / "docs" / "your-own-partition.md", workplace)
    assert names["ours"]["circles"] == 4
    assert names["ours"]["leaders_spread"] > 2 * names["theirs"]["leaders_spread"]  # the page says what to look for
    assert (workplace / "spread-leaders.png").stat().st_size > 10_000
    mine = names["SpreadLeaders"](k=3)
    spread = mine(names["graph"].edge_index, names["graph"].input_ids * 0, 1)[1] * 3 // names["graph"].num_nodes
    assert spread.tolist() == [0, 1, 2]  # a leader in each third
    assert len(commands) == 3
    table = compare(commands[0], budget)
    for row in ("edge", "my_module.SpreadLeaders"):
        assert f"| {row} " in table
    mine = [f"my_module.SpreadLeaders, partition.k={k}, 0" for k in (2, 4, 8)]
    assert rows_of(commands[1])[3:] == mine
    assert rows_of(commands[2])[3:] == [f"my_module.SpreadLeaders, {seed}" for seed in range(3)]


def test_your_own_edge_pattern(workplace, budget):
    names, commands = follow(ROOT / "docs" / "your-own-edge-pattern.md", workplace)
    assert names["ours"]["density"] == pytest.approx(names["random"]["density"], abs=0.005)
    assert names["ours"]["clustering"] > 2 * names["random"]["clustering"]  # the page says so
    assert (workplace / "echo.png").stat().st_size > 10_000
    graph = names["graph"]
    same = graph.input_ids[graph.edge_index[0]] == graph.input_ids[graph.edge_index[1]]
    word = graph.input_ids[:, None] == graph.input_ids
    assert same.sum() > 0.95 * (word.sum() - len(word))  # nearly all repetitions are friends
    assert len(commands) == 3
    table = compare(commands[0], budget)
    for row in ("social", "random", "my_module.Echo"):
        assert f"| {row} " in table
    ours = [f"my_module.Echo, edges.sparsity={sparsity}, 0" for sparsity in (0.9, 0.97)]
    assert rows_of(commands[1])[2:] == ours
    with configuration():
        options = spelled_out(arguments(commands[2], "run.py"))
        edges = instantiate(configured("run", *options, *budget[3:4]).edges)
    assert list(edges.patterns)[-1] == "echo"
    assert len(edges.patterns) == 5


def test_your_own_model(workplace, budget):
    names, commands = follow(ROOT / "docs" / "your-own-model.md", workplace)
    assert names["ranked"][0][0] == 0  # not the soup
    assert names["again"].model.sharpness == 2.0
    assert len(commands) == 4
    table = compare(commands[0], budget, unused="partition.max_size=")
    assert all(f"| {row} " in table for row in ("maxp", "soft-maxp"))
    assert rows_of(commands[1]) == [f"recipe.model.sharpness={value}, 0" for value in (1, 2, 4)]
    with configuration():
        assert configured("run", *searched(arguments(commands[2], "run.py"))).recipe.name == "SoftMaxP"
        system = System(configured("run", *arguments(commands[3], "run.py"), budget[3]))
    assert system.model.sharpness == 2


def test_the_page_about_the_ranker(workplace):
    names, commands = follow(ROOT / "docs" / "ranker.md", workplace)
    assert all(vars(parser().parse_args(shlex.split(command)[1:])) for command in commands)
    assert names["path"].stat().st_size > 10_000
    assert names["network"].number_of_nodes() == names["graph"].num_nodes
    named = re.findall(r"^\| `([\w./]+)`(?:, `([\w.]+)`)? \|", (ROOT / "docs" / "ranker.md").read_text(), re.MULTILINE)
    listed = {name.rstrip("/") for row in named for name in row if "." in name or "/" in name}
    assert listed == {file.name for file in (workplace / "saved").iterdir()}


def test_the_readme(workplace):
    names, _ = follow(ROOT / "README.md", workplace)
    ranking = names["ranker"].rank("copy a file with its permissions", names["texts"])
    assert [place for place, _ in ranking] == [1, 0]
    two_stars = torch.tensor([[0, 1, 0, 2, 3, 4, 3, 5, 2, 3], [1, 0, 2, 0, 4, 3, 5, 3, 3, 2]])
    two_stars = two_stars[:, (two_stars[0] * 6 + two_stars[1]).argsort()]
    cells = importlib.import_module("my_module").VoronoiCells(k=2)
    circles, leaders = cells(two_stars, torch.zeros(6).long(), 1)
    assert circles.tolist() == [[2, 3, 4, 5, 0, 1], [0, 0, 0, 0, 1, 1]]
    assert leaders.tolist() == [3, 0]


def test_the_page_about_running(workplace, capsys):
    names, _ = follow(ROOT / "docs" / "running.md", workplace)
    assert "DocumentGraphBatch" in capsys.readouterr().out
    assert names["graph"].number_of_nodes() == 2048
    assert names["model"](names["batch"]).isfinite().all()


def test_the_page_about_inspection(workplace, capsys):
    names, _ = follow(ROOT / "docs" / "inspection.md", workplace)
    assert (workplace / "document-graph.png").stat().st_size > 10_000
    assert "clustering: 0." in capsys.readouterr().out
    assert names["g"].number_of_edges() == names["graph"].edge_index.size(1) // 2


def test_the_page_about_recipes(workplace):
    names, _ = follow(ROOT / "docs" / "recipes.md", workplace)
    assert names["model"](names["batch"]).shape == (2,)
