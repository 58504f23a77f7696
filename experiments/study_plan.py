"""What a study consists of: its options, and a cell for each collection, row and seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from tables import latest, topic

from socialgraph.errors import OptionError

CONF = Path(__file__).resolve().parent / "conf"
TRIES = "tries"
#: options of the study that have parts of their own
PARTS = ("lengths", "parts", "significance", "tests", "tried", "warm_up")


@dataclass(frozen=True)
class Entry:
    """A row of the study, as a table names it."""

    row: str
    group: str
    label: str
    window: int | None
    overrides: tuple[str, ...]
    paper: tuple[tuple[str, float], ...] = ()  # measure, value
    expected: str = ""  # of a try


@dataclass(frozen=True)
class Cell:
    """What is run at once: a row on a collection, with a seed."""

    data: str
    entry: Entry
    seed: int

    @property
    def name(self) -> str:
        """What its folders are called."""
        return f"{self.data}.{self.entry.row}.{self.seed}"


@dataclass
class Study:
    """Its options (conf/study.yaml and conf/study/<size>.yaml), its cells, and what goes to every row."""

    config: DictConfig
    cells: list[Cell]
    theirs: list[str]
    warm_ups: dict[str, DictConfig] = field(default_factory=dict)

    @property
    def tries(self) -> bool:
        """Whether variants are tried on dev, and test is not looked at."""
        return self.config.part == TRIES

    def compose(self, cell: Cell, backbone: str) -> DictConfig:
        """Return the configuration of run.py that a cell is run with."""
        own = [*self.config.overrides, *cell.entry.overrides, *(self.config.tried.overrides if self.tries else [])]
        one = self._compose([*own, f"seed={cell.seed}"], cell.data, backbone)
        if self.tries:  # test is not looked at: dev stands in its place, and nothing is chosen
            OmegaConf.update(one, "data.splits.test", one.data.splits.dev)
            OmegaConf.update(one, "data.queries.test", one.data.queries.dev)
            OmegaConf.update(one, "data.queries.dev", 1)
        return one

    def compose_warm_up(self, data: str) -> DictConfig:
        """Return the configuration of run.py that a collection's backbone is warmed up with."""
        if data not in self.warm_ups:
            self.warm_ups[data] = self._compose_warm_up(data)
        return self.warm_ups[data]

    def _compose_warm_up(self, data: str) -> DictConfig:
        length = self.config.warm_up.passage
        own = [*self.config.warm_up.overrides, f"trainer.groups={self.config.warm_up.groups}"]
        own += ["recipe=firstp", f"recipe.document_length={length}", "seed=0"]
        return self._compose(own, data, self.config.backbone, [t for t in self.theirs if topic(t) != "trainer.groups"])

    def _compose(self, own: Sequence[str], data: str, backbone: str, theirs: Sequence[str] | None = None) -> DictConfig:
        root = self.config.data_root
        where = [f"data={data}"] if root is None else [f"data={data}", f"data.root={quoted(root)}"]
        tests = self.config.tests.get(data)
        where += [f"data.splits.test={list(tests)}"] if tests else []
        where += [f"model.backbone={quoted(backbone)}", f"measures={list(self.config.measures)}"]
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return compose("config", latest([*where, *own, *(self.theirs if theirs is None else theirs)]))


def read_study(overrides: Sequence[str]) -> Study:
    """Return the study that the command's options describe.

    Args:
        overrides: ``key=value``; keys of the study, all others go to every row.

    Raises:
        OptionError: no such size, part, row or collection.
    """
    config = OmegaConf.load(CONF / "study.yaml")
    try:
        mine = [one for one in overrides if topic(one) in config or topic(one).split(".")[0] in PARTS]
    except HydraException as error:
        raise OptionError(f"an option is written key=value: {str(error).splitlines()[0]}") from error
    typed = OmegaConf.from_dotlist(mine)
    sizes = sorted(path.stem for path in (CONF / "study").glob("*.yaml") if path.stem != TRIES)
    size = typed.get("size", config.size)
    if size not in sizes:
        raise OptionError(f"size must be one of {', '.join(sizes)}, got {size!r}")
    whole = OmegaConf.merge(config, OmegaConf.load(CONF / "study" / f"{size}.yaml"))
    OmegaConf.set_struct(whole, True)
    config = OmegaConf.merge(whole, typed)
    assert isinstance(config, DictConfig)
    cells = list(tried(config) if config.part == TRIES else planned(config))
    theirs = [one for one in overrides if one not in mine]
    return Study(config, cells, theirs)


def planned(config: DictConfig) -> list[Cell]:
    """Return the cells of the chosen parts: seed after seed, so that every system is there once before any is twice."""
    parts = config.parts if config.part == "all" else {config.part: config.parts.get(config.part)}
    if None in parts.values():
        raise OptionError(f"part must be one of {', '.join(config.parts)}, all, {TRIES}, got {config.part!r}")
    paper, beyond = entries(config), entries_of_tries(config, "Past the paper")
    known = {**beyond, **paper}
    named = {row for part in config.parts.values() for row in part.rows or []}
    cells = []
    for part in parts.values():
        own = part.get("overrides", [])
        rows = [
            replace(known[row], overrides=(*latest([*known[row].overrides, *own]),))
            for row in ([row for row in paper if row not in named] if part.rows is None else part.rows)
        ]
        for seed in config.seeds if config.seeds is not None else part.seeds:
            for data in part.data:
                cells += [Cell(data, row, seed) for row in rows]
    if not cells:
        part = config.part
        raise OptionError(f"part={part} has no rows yet: name some of tries.yaml, parts.{part}.rows=[...]")
    return chosen(config, cells)


def tried(config: DictConfig) -> list[Cell]:
    """Return the cells of conf/study/tries.yaml."""
    rows = entries_of_tries(config, "Tries").values()
    seeds = config.seeds if config.seeds is not None else config.tries.seeds
    return chosen(config, [Cell(data, row, seed) for seed in seeds for data in config.tries.data for row in rows])


def entries_of_tries(config: DictConfig, group: str) -> dict[str, Entry]:
    """Return the rows of conf/study/tries.yaml by name; they stand in a table's ``group``."""
    with open_dict(config):
        config.tries = OmegaConf.load(CONF / "study" / f"{TRIES}.yaml")
    tries: dict[str, Any] = OmegaConf.to_container(config.tries, resolve=True)  # type: ignore[assignment]
    return {
        row: Entry(
            row,
            group,
            row,
            None,
            (*latest([*tries["base"], *one["overrides"], *alike["overrides"]]),),
            expected=one["expected"],
        )
        for alike in tries["groups"].values()
        for row, one in alike["rows"].items()
    }


def chosen(config: DictConfig, cells: list[Cell]) -> list[Cell]:
    """Return the cells that the options ``rows`` and ``data`` leave.

    Raises:
        OptionError: the part has no such row or collection.
    """
    for option, value in (("rows", lambda cell: cell.entry.row), ("data", lambda cell: cell.data)):
        wanted, there = config[option], list(dict.fromkeys(map(value, cells)))
        if wanted is None:
            continue
        for one in wanted:
            if one not in there:
                raise OptionError(f"part={config.part} has no {one!r} for {option}; there are: {', '.join(there)}")
        cells = [cell for cell in cells if value(cell) in wanted]
    return cells


def entries(config: DictConfig) -> dict[str, Entry]:
    """Return the rows of Tables 1 and 2 by name, at the study's lengths."""
    lengths = [f"size={config.size}", *(f"size.{name}={value}" for name, value in config.lengths.items())]
    found: dict[str, Entry] = {}
    for name in ("table1", "table2"):
        with initialize_config_dir(str(CONF), version_base="1.3"):
            whole = compose(name, lengths)
        table: dict[str, Any] = OmegaConf.to_container(whole, resolve=True)["table"]  # type: ignore[call-overload,index]
        for group, rows in table["groups"].items():
            for row, one in rows.items():
                printed = dict(zip(table["paper"], one.get("paper") or [], strict=False))
                paper = tuple((measure, value) for measure, value in printed.items() if value is not None)
                group = "Ablations" if name == "table2" else group
                entry = Entry(row, group, one["label"], one.get("window", whole.window), (*one["overrides"],), paper)
                found.setdefault(row, entry)
    return found


def quoted(value: str) -> str:
    """Return a path as Hydra's command line takes it, whatever is in it."""
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
