"""Rows and runs: what run.py is asked for, the configuration of each, and what its result depends on."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from tqdm import tqdm

from lab.command import in_one_line
from lab.config import Options, key_of, typed
from lab.results import Results
from socialgraph.backbone import OFFLINE, READER
from socialgraph.data.files import file_name, sha256
from socialgraph.errors import OptionError
from socialgraph.recipes.classes import BACKBONE, imported
from socialgraph.recipes.compose import refuse_unnamed, tables
from socialgraph.recipes.typed import refuse_empty_tables

#: arguments of the trainer that change what is told of a training, and not what is trained
TOLD = ("report_to", "run_name", "project", "trackio_space_id", "logging_dir", "logging_first_step", "disable_tqdm")


@dataclass(frozen=True)
class Row:
    """A line of a table: a recipe, with options as one would type them to run.py."""

    name: str  # of its files
    overrides: tuple[str, ...] = ()
    label: str = ""  # what it is called; nothing: as its system
    group: str = ""  # heading of the lines that it stands with
    beside: Mapping[str, Any] = field(default_factory=dict, hash=False)  # what a table prints of it without running it


@dataclass
class Run:
    """A row with a seed."""

    row: Row
    config: DictConfig
    folder: Path
    depends: dict[str, Any]  # all that the result depends on
    kind: str = ""  # tells runs of the same row and seed apart: "untrained", or a level of compare.py

    @property
    def name(self) -> str:
        """What its files are called."""
        name = f"{self.row.name}{'-' if self.kind else ''}{self.kind}.{self.config.seed}"
        return file_name(name, also=",=")  # a row may be called partition=edge,partition.k=2

    @property
    def unfinished(self) -> Path:
        """Where it is worked on: in a folder of its name, one that no other configuration shares."""
        digest = hashlib.sha256(json.dumps(self.depends).encode()).hexdigest()
        return self.folder / ".unfinished" / self.name / digest[:16]

    def result(self) -> dict[str, Any] | None:
        """Return its JSON if it is finished."""
        return self.find()[0]

    def find(self) -> tuple[dict[str, Any] | None, str]:
        """Return its JSON, or None and why it must be executed."""
        return Results(self.folder).find(self.name, self.depends)


# --- the rows of run.py -----------------------------------------------------------------------------------------------


def plan(config: DictConfig, folder: Path) -> list[tuple[list[Run], list[Run]]]:
    """Return what run.py does: for each table that it writes the runs in it, and those of them that it executes.

    First without training, if the command asks for that, then as rows are ranked at the end. A table has rows of its
    file that were finished before, too. The last row that is asked for goes first: it is often the user's own, and a
    mistake there shows at once.

    Raises:
        OptionError: an option is wrong, or no row uses it.
    """
    wanted, known = rows(config)
    finished = Results(folder).rows()
    shown = [row for row in known if row in wanted or row.name in finished]
    stages = runs_of(config, [*shown, *(row for row in wanted if row not in known)], folder)
    asked = [[run for run in runs if run.row in wanted] for runs in stages]
    check_used(asked[-1])
    return [(runs, [mine[-1], *mine[:-1]]) for runs, mine in zip(stages, asked, strict=True)]


def rows(config: DictConfig) -> tuple[list[Row], list[Row]]:
    """Return the rows that run.py is asked for, and those of its table's file.

    ``rows`` names rows of the table, or recipes with options behind them; of two of one recipe the last one counts.
    """
    table: dict[str, Any] = OmegaConf.to_container(config.table, resolve=True)  # type: ignore[assignment]
    known = {}
    for group, entries in table["groups"].items():
        for name, entry in entries.items():
            printed = entry.get("paper") or [None] * len(table["paper"])
            beside = {
                "window": entry.get("window", config.window),
                "paper": dict(zip(table["paper"], printed, strict=True)),
            }
            known[name] = Row(name, tuple(entry["overrides"]), entry["label"], group, beside)
    if config.rows is None:
        return list(known.values()), list(known.values())
    if not config.rows:
        raise OptionError("rows=[] names no row")
    wanted = {text.split()[0]: text.split()[1:] for text in config.rows}
    chosen = [known.get(name) or Row(name, (f"recipe={name}", *own)) for name, own in wanted.items()]
    return chosen, list(known.values())


def runs_of(config: DictConfig, rows: Sequence[Row], folder: Path) -> list[list[Run]]:
    """Return the runs of rows: without training, if the command asks for these, and as they are ranked at the end.

    What is typed for all rows counts more than what a table's file says of a row, and less than a row's own options.
    """
    untrained, runs = list[Run](), list[Run]()
    for row in tqdm(rows, "options of rows", delay=2, leave=False, disable=None):
        overrides = [*row.overrides, *typed()] if row.label else [*typed(), *row.overrides]
        overrides = [one for one in overrides if key_of(one) != "recipe" or one in row.overrides]
        final = composed(overrides, row.name)
        is_trained = final.recipe.first_stage is None and final.recipe.training is not None and final.trainer.groups > 0
        before = []
        if config.untrained:
            plain = composed([*overrides, "trainer.groups=0"], row.name)
            before = [run_of(row, with_seed(plain, seed), folder, "untrained") for seed in config.seeds]
        untrained += before
        runs += (
            [run_of(row, with_seed(final, seed), folder) for seed in config.seeds]
            if is_trained or not before
            else before
        )
    return [untrained, runs] if untrained and untrained != runs else [runs]


def run_of(row: Row, config: DictConfig, folder: Path, kind: str = "") -> Run:
    """Return the run of a row by its configuration."""
    return Run(row, config, folder, identity(config), kind)


def by_row(runs: Iterable[Run]) -> dict[Row, list[Run]]:
    """Return row -> its runs, in their order."""
    rows: dict[Row, list[Run]] = {}
    for run in runs:
        rows.setdefault(run.row, []).append(run)
    return rows


def check_used(runs: Sequence[Run]) -> None:
    """Refuse an option that no row uses: what was typed would change nothing, and nobody would be told.

    Raises:
        OptionError: there is one.
    """
    if HydraConfig.get().mode == RunMode.MULTIRUN:
        return  # each job has a part of the rows
    known = {option.name for option in fields(Options)} - {"data", "measures", "seed", "classes"}
    used = {path for run in runs for path in paths_used(run)}
    for one in typed():
        key = key_of(one).split("@")[0]
        if key == "recipe":
            is_used = any(one in run.row.overrides for run in runs) or "rows" not in runs[0].config  # compare.py
        elif key.split(".")[0] in known or key.startswith("size."):
            is_used = any(f"{path}.".startswith(f"{key}.") or f"{key}.".startswith(f"{path}.") for path in used)
        else:
            is_used = True
        if not is_used:
            names = ", ".join(dict.fromkeys(run.row.name for run in runs))
            raise OptionError(f"{one}: no row uses it ({names}); leave it out, or name a row that does")


def paths_used(run: Run) -> set[str]:
    """Return the options that a run depends on: those of its recipe, and all to which these refer."""
    config, seen = run.config, set[str]()
    is_first_stage = config.recipe.first_stage is not None
    waiting = ["recipe.first_stage"] if is_first_stage else ["recipe", "trainer", "check", "query_length"]
    waiting += ["table"] if "table" in config else []  # rows of a table refer to lengths, ${size.long}
    waiting += ["backbone", "sentence_backbone"] if run.kind == "reading" else []
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        group, _, name = path.rpartition(".")
        parent = OmegaConf.select(config, group) if group else config
        raw = OmegaConf.to_container(parent, resolve=False) if OmegaConf.is_config(parent) else {}
        waiting += re.findall(r"\$\{([\w.]+)\}", str(raw.get(name) if isinstance(raw, dict) else raw))
    return seen


# --- configuration ----------------------------------------------------------------------------------------------------


def composed(overrides: Iterable[str], row: str = "") -> DictConfig:
    """Return a row's configuration, the command's with these options; of two on the same matter the last one counts.

    Raises:
        OptionError: there is no such option, its value is of another kind, or a file names a class of a module that
            the user has not typed; it names the row.
    """
    latest = list({key_of(override): override for override in overrides}.values())
    try:
        config = compose(HydraConfig.get().job.config_name, latest)
        refuse_empty_tables(latest, config)
        # what refers to nothing shows here
        parts = [OmegaConf.to_container(config[name], resolve=True) for name in ("recipe", "data")]
        refuse_unnamed(parts, HydraConfig.get().overrides.task)
    except (HydraException, OmegaConfBaseException, OptionError) as error:
        message = in_one_line(error)
        raise OptionError(f"{row}: {message}" if row else message) from error
    return config


def with_seed(config: DictConfig, seed: int) -> DictConfig:
    """Return a run's configuration with another seed; to compose it again would take longer."""
    if not 0 <= seed < 1 << 32:
        raise OptionError(f"a seed is a whole number from 0 to 2^32 - 1, got {seed}")
    seeded = copy.deepcopy(config)
    seeded.seed = seed
    return seeded


def results_folder(config: DictConfig) -> Path:
    """Return the folder of the results of a collection's test split."""
    return Path(config.results) / file_name(config.data.label) / file_name(config.data.splits.test)


def identity(config: DictConfig) -> dict[str, Any]:
    """Return what a run's result depends on.

    Where folders lie is not part of it: built collections and local backbones are there by name, so that a run stays
    what it is on another machine.

    Raises:
        OptionError: see :func:`sources`.
    """
    names = ("backbone", "data", "measures", "query_length", "seed", "trainer", "recipe")
    kept: dict[str, Any] = {
        name: OmegaConf.to_container(config[name], resolve=True) if OmegaConf.is_config(config[name]) else config[name]
        for name in names
    }
    kept["trainer"].pop("save_every")  # changes times, not results
    for part in (kept["trainer"], kept["recipe"]["training"] or {}):
        part["arguments"] = {key: value for key, value in part.get("arguments", {}).items() if key not in TOLD}
    root, path = kept["data"].get("root"), kept["data"].get("path")
    label = kept["data"].pop("label")
    kept["data"]["splits"] = {name: str(one) for name, one in kept["data"]["splits"].items()}  # typed as a number, too
    if own := sources(config):
        kept["sources"] = own
    backbones = {one["backbone"] for one in tables(kept) if one.get("backbone")}
    if config.recipe.first_stage is not None:
        kept.pop("backbone")
    places = {backbone: backbone_name(backbone) for backbone in backbones}
    if root is not None:
        places |= {root: "collections", path: label}
    text = json.dumps(kept)
    for place, name in places.items():
        text = text.replace(json.dumps(place), json.dumps(name))
    return json.loads(text)


@cache
def backbone_name(backbone: str) -> str:
    """Return a backbone's name; of a folder its own and a hash of its files, since another may take its place."""
    folder = Path(backbone).resolve()
    if backbone in (OFFLINE, READER) or not folder.is_dir():  # the former are the package's, whatever lies around
        return backbone
    read = ("*.safetensors", "*.json", "*.txt", "1_Pooling/config.json")  # weights, config, tokenizer
    files = sorted(path for pattern in read for path in folder.glob(pattern))
    hashes = "".join(f"{json.dumps(sha256(path))}\n" for path in files)
    return f"{folder.name} {hashlib.sha256(hashes.encode()).hexdigest()[:16]}"


def sources(config: DictConfig) -> dict[str, str]:
    """Return hashes of the files that define classes from outside the package: an edited class is another run.

    Raises:
        OptionError: there is no such class.
    """
    recipe: dict[str, Any] = OmegaConf.to_container(config.recipe, resolve=True)  # type: ignore[assignment]
    named = {str(one[key]) for one in tables(recipe) for key in ("_target_", "loss") if one.get(key)}
    return {
        name: sha256(source(name.removesuffix(BACKBONE)))
        for name in sorted(named)
        if "." in name and name.split(".")[0] != "socialgraph"
    }


def source(name: str) -> str:
    """Return the file that defines a class or function, or whose module has another thing that makes an object."""
    made = imported(name)
    is_defined = isinstance(made, type) or inspect.isroutine(made)
    return inspect.getfile(made if is_defined else import_module(name.rpartition(".")[0]))
