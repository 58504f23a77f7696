"""The options as lines of --help; docs/site/options.py writes the page of all of them."""

from __future__ import annotations

import re

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from lab.options.commands import COMMANDS, Report, Size
from lab.options.groups import Arguments, Training
from lab.options.kinds import Group, Option, inner, walk, words_of

#: groups that stand in several places: each has a section of its own
SHARED = (Arguments, Training, Report, Size)


def rows_of(group: type[Group], before: str = "") -> list[tuple[str, Option]]:
    """Return the options of a group and of the groups inside it, which have no line of their own unless shared."""
    rows = walk(group, before, SHARED)
    return [(name, option) for name, option in rows if not (below := inner(option.kind)) or below[1] in SHARED]


def words(option: Option) -> str:
    """Return what an option may be."""
    below = inner(option.kind)
    if below is not None and below[1] in SHARED:
        return f"a group, see {below[1].__name__} below"
    return re.sub(r"from (\d) to 2147483647", r"of \1 or more", words_of(option.kind))


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
