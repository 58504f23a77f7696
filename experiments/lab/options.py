"""Types of the options: Hydra holds what is typed, and what stands in conf/, against these classes.

Default values stand in conf/ and in the recipes, with what each option is for. ``Any`` is the place of a class and its
arguments, ``{_target_: ..., ...}``, which its constructor checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


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
    splits: Splits = field(default_factory=Splits)
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
    significance: Significance = field(default_factory=Significance)


@dataclass
class Size:
    """How long documents are; size=cpu or gpu."""

    short: int = MISSING
    long: int = MISSING
    original: int = MISSING
    whole: int = MISSING
    short_circles: int = MISSING
    long_circles: int = MISSING
    compared: int = MISSING
    compared_circles: int = MISSING


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
    check: bool = True


@dataclass
class Several(Options):
    """What run.py and compare.py share."""

    seeds: list[int] = MISSING
    results: str | None = None
    size: Size = field(default_factory=Size)
    report: Report = field(default_factory=Report)


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
    table: Table = field(default_factory=Table)


@dataclass
class Level:
    """A level of compare.py that trains nothing."""

    amount: int = MISSING
    measures: list[str] = MISSING
    report: Report = field(default_factory=Report)
    skipped: int = 0
    readers: list[str] = field(default_factory=list)


@dataclass
class Levels:
    """The levels that train nothing."""

    overrides: list[str] = MISSING
    evidence: Level = field(default_factory=Level)
    reading: Level = field(default_factory=Level)


@dataclass
class Compare(Several):
    """compare.py."""

    varied: list[str] = MISSING
    beside: list[str] = field(default_factory=list)
    level: Any = MISSING  # one or several
    baseline: Any = None
    name: str = MISSING
    levels: Levels = field(default_factory=Levels)


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
    short: float = MISSING
    seed: int = MISSING
    questions: int = MISSING
    passages: int = MISSING
    warm_up: int = MISSING
    decay: float = MISSING
    circles: float = MISSING
    leaders: float = MISSING
    pooled: float = MISSING
    margin: float = MISSING
    average: float = MISSING
    made_up: float = MISSING
    teachers: Teachers = field(default_factory=Teachers)


@dataclass
class Reader:
    """reader.py."""

    folder: str = MISSING
    threads: int = MISSING
    data_root: str = MISSING
    collections: dict[str, Any] = MISSING
    training: Teaching = field(default_factory=Teaching)
    rank: int = MISSING


SCHEMAS = {"run": Run, "compare": Compare, "table": Pair, "figures": Figures, "reader": Reader}


def register() -> None:
    """Let conf/<command>.yaml name its class, ``<command>_options``."""
    for name, kind in SCHEMAS.items():
        ConfigStore.instance().store(name=f"{name}_options", node=kind)
