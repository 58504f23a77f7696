"""Rows and runs: what a command names, the configuration of each, and what its result depends on."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lab.mistakes import whole_message
from lab.options import groups
from lab.options.classes import check_parts, typed_as
from lab.options.kinds import check_config
from lab.overrides import latest, subject
from lab.store import Store
from lab.task import test_split
from socialgraph.backbone import OFFLINE, READER
from socialgraph.data.files import file_name, sha256
from socialgraph.errors import OptionError
from socialgraph.ranker.files import tables
from socialgraph.ranking.identity import LOGGING, digest
from socialgraph.recipes.classes import BACKBONE, imported
from socialgraph.recipes.typed import refuse_empty_tables


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
    """A row on a task with a seed, both in its configuration."""

    row: Row
    config: DictConfig  # of conf/config.yaml
    folders: dict[str, Path]  # test split -> folder of the store
    identities: dict[str, dict[str, Any]]  # test split -> all that the result depends on
    kind: str = ""  # tells runs of the same row and seed apart: "untrained", or the level that it belongs to
    keep_model: bool = False
    asked: Mapping[str, Any] = field(default_factory=dict)  # options of a level: amount, skipped, readers; or sample
    weights: Path | None = None  # folder with weights of costly patterns that other runs have computed

    @property
    def name(self) -> str:
        """What its files are called."""
        name = f"{self.row.name}{'-' if self.kind else ''}{self.kind}.{self.config.seed}"
        return file_name(name, also=",=")  # a row may be called partition=edge,partition.k=2

    @property
    def folder(self) -> Path:
        """Folder of its results on the first test split; trained models, and what is unfinished, lie there too."""
        return next(iter(self.folders.values()))

    def stored(self) -> dict[str, tuple[dict[str, Any] | None, str]]:
        """Return, for each test split, what is stored of it, and why it must be executed if nothing is."""
        return {split: Store(folder).find(self.name, self.identities[split]) for split, folder in self.folders.items()}

    def reason(self) -> str | None:
        """Return why it must be executed; None if it is finished."""
        return next((reason for value, reason in self.stored().values() if value is None), None)

    def finished(self) -> dict[str, dict[str, Any]] | None:
        """Return its JSON for each test split, or None."""
        values = {split: value for split, (value, _) in self.stored().items() if value is not None}
        return values if len(values) == len(self.folders) else None


def by_row(runs: Iterable[Run]) -> dict[Row, list[Run]]:
    """Return row -> its runs."""
    rows: dict[Row, list[Run]] = {}
    for run in runs:
        rows.setdefault(run.row, []).append(run)
    return rows


def named_run(row: Row, config: DictConfig, folder: Path, **options: Any) -> Run:
    """Return the run of a row whose results lie in one folder.

    Args:
        row: the row.
        config: of the run.
        folder: of the store.
        options: others of a run.

    Raises:
        OptionError: several test splits, which a study alone takes.
    """
    split = test_split(config.data)
    return Run(row, config, {split: folder}, {split: identity(config)}, **options)


def results_folder(config: DictConfig) -> Path:
    """Return the folder of the results of a collection's test split."""
    return Path(config.results) / file_name(config.data.label) / file_name(test_split(config.data))


def identity(config: DictConfig, split: str | None = None) -> dict[str, Any]:
    """Return what a run's result depends on.

    Where folders lie is not part of it: built collections and local backbones are there by name, so that a run stays
    what it is on another machine.

    Args:
        config: of the run.
        split: the one of several test splits that it is about; None: there is one.

    Raises:
        OptionError: see :func:`sources`.
    """
    whole: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    kept = {
        key: copy.deepcopy(whole[key])
        for key in ("backbone", "data", "measures", "query_length", "seed", "trainer", "recipe")
    }
    for how in ("save_every", "compile"):  # these change times, not results
        kept["trainer"].pop(how)
    for part in (kept["trainer"], kept["recipe"].get("training") or {}):
        for how in LOGGING:
            part.get("arguments", {}).pop(how, None)
    kept["data"].pop("label")
    named = {name: str(one) for name, one in kept["data"]["splits"].items()}  # also what was typed as a number
    kept["data"]["splits"] = {**named, "test": test_split(config.data) if split is None else split}
    if own := sources(config):
        kept["sources"] = own
    if config.recipe.first_stage is not None:
        kept.pop("backbone")
    backbones = {one["backbone"] for one in (whole, *tables(whole)) if one.get("backbone")}
    names = {backbone: backbone_name(backbone) for backbone in backbones}
    if "root" in whole["data"]:
        names |= {whole["data"]["root"]: "collections", whole["data"]["path"]: whole["data"]["label"]}
    text = json.dumps(kept)
    for place, name in names.items():
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
    return f"{folder.name} {digest(map(sha256, files))[:16]}"


def sources(config: DictConfig) -> dict[str, str]:
    """Return hashes of the files that define classes from outside the package: an edited class is another run.

    Raises:
        OptionError: there is no such class; it names the option.
    """
    recipe: dict[str, Any] = OmegaConf.to_container(config.recipe, resolve=True)  # type: ignore[assignment]
    for part, value in recipe.items():
        check_parts(value, typed_as(config.recipe, part))
    return {
        name: sha256(source(name.removesuffix(BACKBONE)))
        for name in sorted({one["_target_"] for one in tables(recipe)})
        if "." in name and name.split(".")[0] != "socialgraph"
    }


def source(name: str) -> str:
    """Return the file that defines a class or function, or whose module has another thing that makes an object."""
    made = imported(name)
    is_defined = isinstance(made, type) or inspect.isroutine(made)
    return inspect.getfile(made if is_defined else import_module(name.rpartition(".")[0]))


def table_rows(config: DictConfig) -> list[Row]:
    """Return the rows of a file of conf/table: what one would type, and what the papers print."""
    table: dict[str, Any] = OmegaConf.to_container(config.table, resolve=True)  # type: ignore[assignment]
    return [
        Row(
            name, (*entry["overrides"],), entry["label"], group,
            {
                "window": entry.get("window", config.window),
                "paper": dict(zip(table["paper"], entry.get("paper") or [None] * len(table["paper"]), strict=True)),
            },
        )
        for group, entries in table["groups"].items()
        for name, entry in entries.items()
    ]  # fmt: skip


def composed(overrides: Iterable[str], row: str = "") -> DictConfig:
    """Return the configuration of a run; of two overrides on the same matter the last one counts.

    Raises:
        OptionError: there is no such option, or its value is of another kind; it names the row.
    """
    try:
        config = compose("config", typed := latest(overrides))
        refuse_empty_tables(typed, config)
        check_config(config, groups.Run)
    except (HydraException, OmegaConfBaseException, OptionError, ValueError) as error:
        message = str(error) if isinstance(error, OptionError) else whole_message(error)
        raise OptionError(f"{row}: {message}" if row else message) from error
    return config


def with_seed(config: DictConfig, seed: int) -> DictConfig:
    """Return a run's configuration with another seed; to compose it anew would take longer."""
    seeded = copy.deepcopy(config)
    seeded.seed = seed
    return seeded


def typed_for_rows(config: DictConfig) -> list[str]:
    """Return the overrides that go to every row: a command's measures, and all that is typed and a run itself takes."""
    known = compose("config")
    typed = [one for one in HydraConfig.get().overrides.task if subject(one).split(".")[0].split("@")[0] in known]
    return [*typed, f"measures={list(config.measures)}"]


def own_options(config: DictConfig) -> list[str]:
    """Return the options of a command that a run does not take."""
    known = compose("config")
    return [str(key) for key in config if key not in known]


def selected(rows: Sequence[Row], names: Sequence[str] | None, where: str) -> list[Row]:
    """Return the rows of these names, in the order of the rows; all for None.

    Raises:
        OptionError: there is no such row.
    """
    known = [row.name for row in rows]
    for name in names or ():
        if name not in known:
            raise OptionError(f"{where} has no row {name!r}; there are: {', '.join(known)}")
    return [row for row in rows if names is None or row.name in names]
