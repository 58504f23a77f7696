"""The page of all options, docs/options.md: ``python docs/site/options.py > docs/options.md``."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments"))

from hydra import compose, initialize_config_dir
from lab.options.commands import COMMANDS
from lab.options.groups import Run
from lab.options.help import SHARED, files_of, rows_of, words
from lab.options.kinds import Option, inner, written
from omegaconf import OmegaConf

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


if __name__ == "__main__":
    with initialize_config_dir(str(ROOT / "experiments" / "conf"), version_base="1.3"):
        print(page(), end="")
