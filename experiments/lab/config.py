"""The options: their types, and how they are typed, ``partition.k=4`` or ``partition=my_module.Mine``.

Hydra holds what is typed, and what stands in conf/, against these classes. Values stand in conf/ and in the recipes,
with what each option is for. ``Any`` is the place of a class and its arguments, ``{_target_: ..., ...}``, which its
constructor checks. Nothing here is slow to import.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import MISSING

from lab.command import in_one_line
from socialgraph.errors import OptionError
from socialgraph.recipes.typed import quoted


@dataclass
class Trainer:
    """How much is trained, and in which batches; trainer=FILE."""

    groups: int = MISSING
    negatives: int = MISSING
    token_budget: int = MISSING
    save_every: int = MISSING
    bf16: Any = "auto"
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass
class Splits:
    """Names of a collection's splits."""

    train: str = MISSING
    dev: str = MISSING
    test: str = MISSING


@dataclass
class Queries:
    """How many queries are ranked; None: all."""

    dev: int | None = None
    test: int | None = None
    found: bool = False


@dataclass
class Data:
    """What is ranked; data=FILE. A file may have more options, to which these refer."""

    label: str = MISSING
    collection: dict[str, Any] = MISSING
    retriever: dict[str, Any] | None = None
    depth: int = MISSING
    runs: dict[str, str] = field(default_factory=dict)
    splits: Splits = MISSING
    queries: Queries = field(default_factory=Queries)
    path: str | None = None


@dataclass
class Difference:
    """A column: the difference of a measure from a row."""

    measure: str = MISSING
    to: str = MISSING


@dataclass
class Significance:
    """A paired t-test over queries against a row."""

    to: list[str] = MISSING
    measures: list[str] = MISSING
    level: float = 0.05


@dataclass
class Report:
    """How a table is made of finished runs."""

    columns: list[str] = MISSING
    differences: list[Difference] = field(default_factory=list)
    significance: Significance = MISSING


@dataclass
class Options:
    """What a run depends on; conf/config.yaml and socialgraph/recipes/options.yaml."""

    edges: Any = MISSING
    partition: Any = MISSING
    model: Any = MISSING
    training: Any = MISSING
    recipe: dict[str, Any] = MISSING
    data: dict[str, Any] = MISSING
    trainer: Trainer = MISSING
    backbone: str = MISSING
    long_backbone: str = MISSING
    sentence_backbone: str = MISSING
    seed: int = MISSING
    document_length: int = MISSING
    k: int = MISSING
    query_length: int = MISSING
    window: int = MISSING
    measures: list[str] = MISSING
    classes: list[str] = MISSING
    check: bool = True


@dataclass
class Several(Options):
    """What run.py and compare.py share."""

    seeds: list[int] = MISSING
    results: str | None = None
    size: dict[str, int] = field(default_factory=dict)
    report: Report = MISSING


@dataclass
class Table:
    """Rows that stand in a file; table=FILE.

    ``groups`` is heading -> row -> its label and overrides, and perhaps the papers' figures and window.
    """

    name: str = "table"
    paper: list[str] = field(default_factory=list)
    groups: dict[str, Any] = field(default_factory=dict)


@dataclass
class Run(Several):
    """run.py."""

    rows: list[str] | None = None
    untrained: bool = False
    keep_models: bool = False
    pack: bool = False
    report: Report = field(default_factory=Report)
    table: Table = field(default_factory=Table)


@dataclass
class Level:
    """A level of compare.py that trains nothing."""

    amount: int = MISSING
    measures: list[str] = MISSING
    report: Report = MISSING
    skipped: int = 0
    readers: list[str] = field(default_factory=list)


@dataclass
class Levels:
    """The levels that train nothing."""

    overrides: list[str] = MISSING
    evidence: Level = MISSING
    reading: Level = MISSING


@dataclass
class Compare(Several):
    """compare.py."""

    varied: list[str] = MISSING
    beside: list[str] = field(default_factory=list)
    level: Any = MISSING  # one or several
    baseline: Any = None
    name: str = MISSING
    levels: Levels = MISSING


@dataclass
class Pair:
    """table.py."""

    folder: list[str] = MISSING
    rows: list[str] = MISSING
    measure: str = "RR@10"
    seeds: list[int] | None = None
    mixed: bool = False
    collection: str | None = None
    bounds: list[int] = MISSING


@dataclass
class Figures(Options):
    """figures.py."""

    figure: int = MISSING
    output: str = MISSING
    dpi: int = 100
    query: str | None = None
    document: str | None = None
    documents: int = 20
    sparsity: list[float] = MISSING
    partitions: list[str] = MISSING
    rows: list[str] = MISSING
    measure: str = "RR@100"
    bounds: list[int] = MISSING
    results: str = MISSING


@dataclass
class Teachers:
    """Weights of the scores that the reader learns."""

    cosine: float = MISSING
    cover: float = MISSING
    evidence: float = MISSING


@dataclass
class Teaching:
    """The reader's training."""

    steps: int = MISSING
    learning_rate: float = MISSING
    seed: int = MISSING
    questions: int = MISSING
    warm_up: int = MISSING
    decay: float = MISSING
    circles: float = MISSING
    pooled: float = MISSING
    margin: float = MISSING
    repeats: float = MISSING
    others: float = MISSING
    encoded: int = MISSING
    report: int = MISSING
    teachers: Teachers = field(default_factory=Teachers)


@dataclass
class Reader:
    """reader.py."""

    folder: str = MISSING
    threads: int = MISSING
    data_root: str = MISSING
    sources: list[str] = MISSING
    tests: dict[str, list[str]] = MISSING
    collections: dict[str, Any] = MISSING
    training: Teaching = field(default_factory=Teaching)
    rank: int = MISSING


SCHEMAS = {"run": Run, "compare": Compare, "table": Pair, "figures": Figures, "reader": Reader}


def register() -> None:
    """Let conf/<command>.yaml name its class, ``<command>_options``."""
    for name, kind in SCHEMAS.items():
        ConfigStore.instance().store(name=f"{name}_options", node=kind)


# --- options as they are typed ----------------------------------------------------------------------------------------

#: groups that take a class of the user's own by its dotted name, and are varied even with a single value
OPEN = ("partition", "edges")


def parsed(override: str) -> Override:
    """Return what is typed as Hydra reads it.

    Raises:
        OptionError: it is no override.
    """
    try:
        return OverridesParser.create().parse_overrides([override])[0]
    except HydraException as error:
        raise OptionError(f"an option is written key=value: {in_one_line(error)}") from error


def key_of(override: str) -> str:
    """Return what an override is about: "partition.k" of "partition.k=4"."""
    return parsed(override).get_key_element().lstrip("+~")


def label_of(options: Mapping[str, str]) -> str:
    """Return what a row of these options is called; a partition or edges go without the option's name."""
    return ", ".join(value if key in OPEN else f"{key}={value}" for key, value in options.items())


def typed() -> list[str]:
    """Return the options that were typed and go to every row."""
    return [one for one in HydraConfig.get().overrides.task if key_of(one) not in ("rows", "seeds")]


def varied_as_one(arguments: Sequence[str]) -> list[str]:
    """Return a command's arguments with those that have several values in one, ``varied=[...]``.

    Hydra itself takes several values with ``-m`` alone, where each is a job.
    """

    def is_varied(argument: str) -> bool:
        try:
            one = parsed(argument)
        except OptionError:
            return False  # Hydra says what is wrong with it
        return one.is_sweep_override() or one.get_key_element() in OPEN

    if {"-m", "--multirun"} & set(arguments):
        return list(arguments)
    varied = [one for one in arguments if not one.startswith(("-", "hydra")) and is_varied(one)]
    others = [one for one in arguments if one not in varied]
    return [*others, f"varied=[{','.join(map(quoted, varied))}]"] if varied else others


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """Return arguments with classes of the user's own, ``partition=my_module.Mine``, as Hydra takes them.

    A pattern stands alone in SocialEdges; a sampler takes the place of SocialEdges.

    Raises:
        OptionError: there is no such class, or it is of another kind.
    """
    result = []
    for argument in arguments:
        key, _, name = argument.partition("=")
        if key not in OPEN or not re.fullmatch(r"\w+(\.\w+)+", name):
            result.append(argument)
            continue
        from socialgraph.edges import EdgeSampler, Pattern  # and with them PyTorch
        from socialgraph.partition import Partition
        from socialgraph.recipes.classes import imported

        if key == "partition":
            imported(name, Partition, option="partition=")
            result.append(f"partition._target_={name}")
            continue
        kind = imported(name, Pattern, EdgeSampler, option="edges=")
        if isinstance(kind, type) and issubclass(kind, Pattern):
            result += ["edges=random", "~edges.patterns.uniform", f"+edges.patterns.own._target_={name}"]
            continue
        taken = inspect.signature(kind).parameters
        left_out = [f"~edges.{option}" for option in ("patterns", "weights", "sparsity") if option not in taken]
        result += ["edges=random", f"edges._target_={name}", *left_out]
    return result
