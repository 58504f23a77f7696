"""The options as a page, docs/options.md, and as lines of --help.

In experiments/: ``python -m lab.options.page > ../docs/options.md``
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from lab.options.commands import COMMANDS, Report, Size
from lab.options.groups import Arguments, Run, Training
from lab.options.kinds import Group, Option, inner, walk, words_of, written

HEADER = """\
# Options

This page is written from `experiments/lab/options/`, where each option has its type: what is typed is held against it
before PyTorch is loaded, and what does not fit ends in one line. Default values are those of `experiments/conf/` and
`socialgraph/recipes/`; a file of a group (`trainer=gpu`) has others. `${name}` stands for the value of another option.
An option that is not there by default is written with `+`.

`edges`, `partition`, `model`, `data.collection`, `data.retriever` and the parts of a `recipe` are classes, named by
`_target_`: the other options there are arguments of the class, which may be one of your own. A file of your own in a
group may hold further options that others refer to (`path: ${data.root}/${data.year}`).
"""


#: groups that stand in several places: each has a section of its own
SHARED = (Arguments, Training, Report, Size)


def rows_of(group: type[Group], before: str = "") -> list[tuple[str, Option]]:
    """Return the options of a group and of the groups inside it, which have no line of their own unless shared."""
    rows = walk(group, before, SHARED)
    return [(name, option) for name, option in rows if not (below := inner(option.kind)) or below[1] in SHARED]


def words(option: Option) -> str:
    """Return what an option may be, as the page has it."""
    below = inner(option.kind)
    if below is not None and below[1] in SHARED:
        return f"a group, see {below[1].__name__} below"
    return re.sub(r"from (\d) to 2147483647", r"of \1 or more", words_of(option.kind))


def default(config: Any, name: str) -> str:
    """Return what a configuration has under a dotted name, as it is written there."""
    value = config
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return ""
        value = value[part]
    if isinstance(value, dict) and value:
        return str(value["_target_"]).removeprefix("socialgraph.") if "_target_" in value else ""
    return value if isinstance(value, str) and value else written(value).replace("'", "")


def table(rows: Iterable[tuple[str, Option]], config: Any) -> list[str]:
    """Return options as a table in Markdown."""
    lines = ["", "| option | what it is for | what it may be | default |", "|---|---|---|---|"]
    for name, option in rows:
        shown = f"`{value}`" if (value := default(config, name)) else ""
        lines.append(f"| `{name}` | {option.about} | {words(option)} | {shown} |".replace("  ", " "))
    return lines


def first_sentence(kind: type) -> str:
    """Return the first line of a docstring."""
    return (kind.__doc__ or "").strip().splitlines()[0]


def page() -> str:
    """Return the page; Hydra must be initialized."""
    configs = {name: OmegaConf.to_container(compose(name), resolve=False) for name in COMMANDS}
    lines = [HEADER, "## Every command"]
    alone = ((name, option) for name, option in rows_of(Run) if "." not in name)
    lines += table(alone, configs["run"])
    for name, option in Run.options().items():
        if (below := inner(option.kind)) and below[1] not in SHARED:
            lines += ["", f"## `{name}`", "", first_sentence(below[1])]
            lines += table(rows_of(below[1], f"{name}."), configs["run"])
    for name, command in COMMANDS.items():
        own = [row for row in rows_of(command) if name == "reader" or row[0].split(".")[0] not in Run.options()]
        lines += ["", f"## `{name}.py`", *table(own, configs[name])]
    for group, place in zip(SHARED, ("trainer.arguments", "training", "report", "size"), strict=True):
        lines += ["", f"## {group.__name__}", "", first_sentence(group)]
        lines += table(((name.removeprefix(f"{place}."), option) for name, option in rows_of(group)), {})
    lines += ["", "## Files of each group", "", "| group | files |", "|---|---|"]
    files = {group: names for name in COMMANDS for group, names in files_of(name).items()}
    lines += [f"| `{group}=` | {', '.join(names)} |" for group, names in sorted(files.items())]
    return "\n".join(lines) + "\n"


def files_of(command: str) -> dict[str, list[str]]:
    """Return the files of each group that a command takes."""
    loader = GlobalHydra.instance().config_loader()
    chosen = compose(command, return_hydra_config=True).hydra.runtime.choices
    return {group: loader.get_group_options(group) for group in sorted(chosen) if "/" not in group}


def group_lines(command: str) -> str:
    """Return a line for each group of a command, as --help shows it."""
    return "".join(f"{group}: {', '.join(names)}\n" for group, names in files_of(command).items())


def help_lines(command: str) -> str:
    """Return a line for each option of a command, as --help shows it; recipes and arguments are on the page."""
    rows = [row for row in rows_of(COMMANDS[command]) if row[0].split(".")[0] not in ("recipe", "table", "levels")]
    return "\n".join(f"  {name:30} {option.about} ({words(option)})" for name, option in rows if "[" not in name)


def register_help() -> None:
    """Let ``${options:run}`` stand for these lines in the templates of conf/, and ``${groups:run}`` for the files."""
    OmegaConf.register_new_resolver("options", help_lines, replace=True)
    OmegaConf.register_new_resolver("groups", group_lines, replace=True)


if __name__ == "__main__":
    with initialize_config_dir(str(Path(__file__).resolve().parents[2] / "conf"), version_base="1.3"):
        print(page(), end="")
