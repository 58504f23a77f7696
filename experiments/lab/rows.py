"""Rows and runs: what a command names, the configuration of each, and what its result depends on."""

from __future__ import annotations

import copy
import hashlib
import inspect
import itertools
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
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from tqdm import tqdm

from lab.command import in_one_line
from lab.options import Options
from lab.results import Results
from lab.typed import OPEN, key_of, spelled_out, typed
from socialgraph.backbone import OFFLINE, READER
from socialgraph.data.files import file_name, sha256
from socialgraph.errors import OptionError
from socialgraph.recipes.classes import BACKBONE, imported
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
    keep_model: bool = False
    level: Mapping[str, Any] = field(default_factory=dict)  # options of compare.py's levels
    weights: Path | None = None  # folder with weights of costly patterns, which the runs of a row share

    @property
    def name(self) -> str:
        """What its files are called."""
        name = f"{self.row.name}{'-' if self.kind else ''}{self.kind}.{self.config.seed}"
        return file_name(name, also=",=")  # a row may be called partition=edge,partition.k=2

    def result(self) -> dict[str, Any] | None:
        """Return its JSON if it is finished."""
        return self.find()[0]

    def find(self) -> tuple[dict[str, Any] | None, str]:
        """Return its JSON, or None and why it must be executed."""
        return Results(self.folder).find(self.name, self.depends)


def runs_of(config: DictConfig, rows: Sequence[Row], folder: Path) -> tuple[list[Run], list[Run]]:
    """Return the runs of rows without training, if the command asks for these, and as they are ranked at the end.

    What is typed for all rows counts more than what a table's file says of a row, and less than a row's own options.
    """
    untrained, runs = [], []
    for row in tqdm(rows, "options of rows", delay=2, leave=False, disable=None):
        options = {"folder": folder, "weights": folder / ".weights" / file_name(row.name) if config.untrained else None}
        overrides = [*row.overrides, *typed()] if row.label else [*typed(), *row.overrides]
        overrides = [one for one in overrides if key_of(one) != "recipe" or one in row.overrides]
        final = composed(overrides, row.name)
        is_trained = final.recipe.first_stage is None and final.recipe.training is not None and final.trainer.groups > 0
        before = composed([*overrides, "trainer.groups=0"], row.name) if config.untrained else None
        for seed in config.seeds:
            if before is not None:
                one = with_seed(before, seed)
                untrained.append(Run(row, one, depends=identity(one), kind="untrained", **options))
            if before is None or is_trained:
                one = with_seed(final, seed)
                runs.append(Run(row, one, depends=identity(one), keep_model=config.keep_models, **options))
            else:
                runs.append(untrained[-1])
    return untrained, runs


def by_row(runs: Iterable[Run]) -> dict[Row, list[Run]]:
    """Return row -> its runs, in their order."""
    rows: dict[Row, list[Run]] = {}
    for run in runs:
        rows.setdefault(run.row, []).append(run)
    return rows


# --- rows -------------------------------------------------------------------------------------------------------------


def rows(config: DictConfig) -> tuple[list[Row], list[Row]]:
    """Return the rows that run.py is asked for, and those of its table's file.

    ``rows`` names rows of the table, or recipes with options behind them; of two of one recipe the last one counts.
    """
    table: dict[str, Any] = OmegaConf.to_container(config.table, resolve=True)  # type: ignore[assignment]
    known = {
        name: Row(
            name, tuple(entry["overrides"]), entry["label"], group,
            {
                "window": entry.get("window", config.window),
                "paper": dict(zip(table["paper"], entry.get("paper") or [None] * len(table["paper"]), strict=True)),
            },
        )
        for group, entries in table["groups"].items()
        for name, entry in entries.items()
    }  # fmt: skip
    if config.rows is None:
        return list(known.values()), list(known.values())
    if not config.rows:
        raise OptionError("rows=[] names no row")
    wanted_texts = {text.split()[0]: text.split()[1:] for text in config.rows}
    wanted = [known.get(name) or Row(name, (f"recipe={name}", *own)) for name, own in wanted_texts.items()]
    return wanted, list(known.values())


def product_rows(varied: Sequence[str], beside: Sequence[str]) -> list[Row]:
    """Return all combinations of the values of some options, and a row for each list of options beside them.

    Raises:
        OptionError: a row that comes twice, or an option that is the same for all rows.
    """
    found = [row for options in (varied, *(one.split() for one in beside)) for row in combinations(options)]
    names = [row.name for row in found]
    for row in found:
        if names.count(row.name) > 1:
            raise OptionError(f"{row.label} is compared with itself: type it once")
    return found


def combinations(varied: Sequence[str]) -> list[Row]:
    """Return a row for each combination of the values, those of the last option changing fastest."""
    parsed, known = OverridesParser.create().parse_overrides(list(varied)), {option.name for option in fields(Options)}
    for one in parsed:
        name = one.get_key_element().lstrip("+~")
        if name == "seed" or (name.split(".")[0] not in known and not name.startswith("size.")):
            raise OptionError(f"{name} is the same for all rows; seeds are averaged, seeds=[0,1,2]")
    each = [[(one.get_key_element(), value) for value in values_of(one)] for one in parsed]
    result = []
    for pairs in itertools.product(*each):
        values = {key.lstrip("+"): value for key, value in pairs}
        name = re.sub(r"[^\w.,=-]+", "-", ",".join(f"{key}={value}" for key, value in values.items()))
        overrides = tuple(one for key, value in pairs for one in spelled_out([f"{key}={value}"]))
        result.append(Row(name, overrides, label_of(values), beside={"options": values}))
    return result


def values_of(override: Override) -> list[str]:
    """Return the values of an override, one or several, as they are typed."""
    if override.is_sweep_override():
        return [str(value) for value in override.sweep_string_iterator()]
    return [override.get_value_element_as_str()]


def label_of(options: Mapping[str, str]) -> str:
    """Return what a row of these options is called; a partition or edges go without the option's name."""
    return ", ".join(value if key in OPEN else f"{key}={value}" for key, value in options.items())


def baseline_of(compared: Sequence[Row], named: Any) -> Row:
    """Return the first row that has all the values that the baseline names; the first one for None.

    Raises:
        OptionError: there is none.
    """
    some = [] if named is None else [named] if isinstance(named, str | int | float) else named
    values = {"null" if value is None else str(value) for value in some}
    for row in compared:
        if values <= set(row.beside["options"].values()):
            return row
    raise OptionError(f"baseline={named} is not among what is compared: {'; '.join(row.label for row in compared)}")


def check_used(runs: Sequence[Run]) -> None:
    """Refuse an option that no row uses: what was typed would change nothing, and nobody would be told.

    Raises:
        OptionError: there is one.
    """
    if HydraConfig.get().mode == RunMode.MULTIRUN:
        return  # each job has a part of the rows
    known = {option.name for option in fields(Options)} - {"data", "measures", "seed"}
    used = {path for run in runs for path in paths_used(run)}
    recipes = {one.partition("=")[2] for run in runs for one in run.row.overrides if one.startswith("recipe=")}
    for one in typed():
        key = key_of(one).split("@")[0]
        if key == "recipe":
            is_used = one.partition("=")[2] in recipes
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
        OptionError: there is no such option, or its value is of another kind; it names the row.
    """
    latest = list({key_of(override): override for override in overrides}.values())
    try:
        config = compose(HydraConfig.get().job.config_name, latest)
        refuse_empty_tables(latest, config)
        OmegaConf.to_container(config.recipe, resolve=True)  # what refers to nothing shows here
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
    kept["recipe"].pop("stored", None)  # so does this, which recipes no longer say
    for part in (kept["trainer"], kept["recipe"]["training"] or {}):
        part["arguments"] = {key: value for key, value in part.get("arguments", {}).items() if key not in TOLD}
    root, path = kept["data"].get("root"), kept["data"].get("path")
    label = kept["data"].pop("label")
    kept["data"]["splits"] = {name: str(one) for name, one in kept["data"]["splits"].items()}  # typed as a number, too
    if own := sources(config):
        kept["sources"] = own
    backbones = {one["backbone"] for one in (kept, *tables(kept)) if one.get("backbone")}
    if config.recipe.first_stage is not None:
        kept.pop("backbone")
    places = {backbone: backbone_name(backbone) for backbone in backbones}
    if root is not None:
        places |= {root: "collections", path: label}
    text = json.dumps(kept)
    for place, name in places.items():
        text = text.replace(json.dumps(place), json.dumps(name))
    return json.loads(text)


def tables(value: Any) -> Iterable[dict[str, Any]]:
    """Yield the tables inside a value, at any depth."""
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(one, dict):
            yield one
        yield from tables(one)


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
    named = {str(one["_target_"]) for one in (recipe, *tables(recipe)) if one.get("_target_")}
    named |= {loss for loss in [str((recipe["training"] or {}).get("loss"))] if "." in loss}
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
