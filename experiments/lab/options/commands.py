"""What each command takes beside what all of them take."""

# ruff: noqa: RUF009 (about() makes a dataclass's field, as field() does)
from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from omegaconf import DictConfig

from lab.options.groups import FILLED, Above0, Count, Label, Name, Names, Positive, Rate, Run, Seed, Share
from lab.options.kinds import Built, Only, about, between, check_config
from socialgraph.errors import OptionError

RISING = Only("that rises", lambda values: values == sorted(set(values)))
ONCE = Only("has none twice", lambda values: len(set(values)) == len(values))
Seeds = Annotated[list[Seed], FILLED, ONCE]
Level = Literal["evidence", "reading", "training"]
EvidenceMeasure = Literal["lift", "best circle", "best two", "run", "sequences", "words"]
ReadingMeasure = Literal[
    "RR@10 encoder mean", "RR@10 encoder max", "RR@10 reader mean", "RR@10 reader max",
    "nDCG@10 encoder mean", "nDCG@10 encoder max", "nDCG@10 reader mean", "nDCG@10 reader max", "sequences",
]  # fmt: skip
ColumnName = Literal[
    "model", "options", "length", "window", "seeds", "measures", "differences", "interval", "gain", "own_interval",
    "power", "p", "mixed", "weight", "untrained", "untrained_mixed", "trained", "trained_mixed", "statistics", "budget",
    "parameters", "training", "seconds", "graph", "circles", "read", "memory", "device", "paper",
]  # fmt: skip


@dataclass(kw_only=True)
class Difference:
    """A column of differences."""

    measure: Name = about("of the column")
    to: Name = about("row from which the others differ")


@dataclass(kw_only=True)
class Significance:
    """Paired t-test over queries, Holm over the rows."""

    to: Names = about("the reference: the first of these rows that the table has", optional=True)
    measures: Names = about("those that are tested")
    level: Annotated[float, between(0, 1, above=True)] = about("p values below it are marked", optional=True)


@dataclass(kw_only=True)
class Report:
    """How a table is made of finished runs."""

    columns: Annotated[list[ColumnName], FILLED] = about("of the table, from left to right")
    differences: list[Difference] | None = about(
        "relative, in %; null: of the first measure, to the reference", optional=True
    )
    significance: Significance = about("what the daggers mean")


@dataclass(kw_only=True)
class Size:
    """How long documents are and how much is trained (size=cpu or gpu)."""

    name: Name = about("of the size")
    short: Positive = about("word pieces of a document, where the paper reads 512")
    long: Positive = about("and where it reads 2048")
    original: Positive = about("and where PARADE's own paper draws its passages from all of it")
    whole: Positive = about("and where an encoder of today (long_backbone) reads all at once")
    short_circles: Positive = about("friend circles at most of short documents")
    long_circles: Positive = about("and of long ones")
    compared: Positive = about("word pieces of a document in level=training of compare.py")
    compared_circles: Positive = about("its friend circles at most")
    overrides: list[Name] = about("options of every row")


@dataclass(kw_only=True)
class RunCommand(Run):
    """run.py."""

    rows: Names = about("recipes that are compared")
    report: Report = about("the table")


@dataclass(kw_only=True)
class SeveralSeeds(Run):
    """What the commands take whose rows are run with several seeds, in a folder that stays."""

    seeds: Seeds = about("measures are averaged over them, query by query")
    results: Name = about("folder of results")
    size: Size = about("lengths and budget; of compare.py in level=training")
    report: Report = about("columns of the table; of compare.py in level=training")


@dataclass(kw_only=True)
class Entry:
    """A row of a table."""

    label: Name = about("what it is called")
    overrides: list[Name] = about("what one would type to run.py")
    window: Positive | None = about("what the column says", optional=True)
    paper: list[float | None] | None = about("the papers' figures", optional=True)


@dataclass(kw_only=True)
class Table:
    """A table of the paper (table=table1 or table2)."""

    name: Name = about("of its files")
    differences: list[Difference] | None = about("as report.differences")
    paper: list[Name] = about("what the papers' figures are")
    groups: dict[str, dict[str, Entry]] = about("heading: rows")


@dataclass(kw_only=True)
class TableCommand(SeveralSeeds):
    """table.py."""

    rows: Names | None = about("these only; null: all")
    keep_models: bool = about("keep trained models")
    pack: bool = about("keep all finished runs of the folder in one file")
    table: Table = about("the table")


@dataclass(kw_only=True)
class StudyCommand(SeveralSeeds):
    """study.py."""

    rows: Names | None = about("of Tables 1 and 2; null: all")
    collections: Names = about("wtq, fairytale")
    minutes: Rate | None = about("begin no run that would not end within so many; null: no limit")
    tables: bool = about("write the tables and figures of what is finished")
    work: Name = about("folder of what later seeds need not compute again")
    data_root: Name | None = about("folder of the collections; null: the cache")
    tests: dict[str, Names] = about("collection: splits that a run ranks at the end")
    bounds: Annotated[list[Positive], RISING] = about("word pieces at which a new bucket begins")
    drawn: list[Name] = about("rows of Figure 6")


@dataclass(kw_only=True)
class Evidence:
    """What circles hold of the known answer; no model reads them."""

    amount: Positive = about("questions whose evidence is known")
    measures: Annotated[list[EvidenceMeasure], FILLED] = about("of the level; the first one is compared")
    report: Report = about("its columns")


@dataclass(kw_only=True)
class Reading:
    """How circles read, by models that nothing has trained here."""

    amount: Positive = about("questions with a relevant document among their candidates")
    measures: Annotated[list[ReadingMeasure], FILLED] = about("of the level; the first one is compared")
    report: Report = about("its columns")


@dataclass(kw_only=True)
class Levels:
    """What trains nothing."""

    overrides: list[Name] = about("options of every row")
    evidence: Evidence = about("what circles hold of the known answer")
    reading: Reading = about("how circles read")


@dataclass(kw_only=True)
class CompareCommand(SeveralSeeds):
    """compare.py."""

    varied: Names = about("what is compared, if no values with commas are typed")
    beside: list[Name] = about("further rows: what one would type for each, with spaces between")
    level: Level | Annotated[list[Level], FILLED] = about("how strategies are judged, from cheap to dear")
    baseline: Name | float | list[Name | float] | None = about("what the others are tested against; null: the first")
    name: Label = about("of the folder within it")
    sample: Positive = about("test candidates whose graphs are described")
    statistics: dict[str, Name] = about("what describe() calls it: heading of a column")
    bounds: Annotated[list[Positive], RISING] = about("word pieces at which a new bucket begins")
    drawn: list[Name] = about("of more than 8 strategies these are drawn")
    levels: Levels = about("what trains nothing")


@dataclass(kw_only=True)
class Source:
    """A collection of the reader's training."""

    share: Above0 = about("how often it is asked")
    made_up: Count = about("questions that are made from its text")
    collection: Built = about("what loads it")


@dataclass(kw_only=True)
class Teaching:
    """The reader's training (lab/reader/training.py)."""

    steps: Positive = about("of the training", default=1400)
    learning_rate: Rate = about("of AdamW", default=2e-4)
    short: Share = about("share of the steps, at the beginning, that read short passages only", default=0.85)
    seed: Seed = about("of what is drawn", default=0)
    questions: Positive = about("of a step", optional=True, default=5)
    passages: Positive = about("of a question", optional=True, default=8)
    warm_up: Positive = about("steps in which the learning rate rises", optional=True, default=100)
    decay: Share = about("share of the steps at the end in which it falls to 0", optional=True, default=0.25)
    circles: Share = about("share of groups whose passages are not contiguous", optional=True, default=0.3)
    leaders: Share = about("share of those that are scored from a word in place of [CLS]", optional=True, default=0.5)
    pooled: Rate = about("weight of the divergence of passages put together", optional=True, default=0.5)
    margin: Rate = about("weight of the squared differences", optional=True, default=0.02)
    average: Share = about("of the weights that are kept, from step to step", optional=True, default=0.995)
    made_up: Share = about("share of questions that are made from the text", optional=True, default=0.2)


@dataclass(kw_only=True)
class ReaderCommand:
    """reader.py."""

    folder: Name = about("passages, checkpoints and log; a killed training goes on in it")
    threads: Positive = about("of the CPU")
    data_root: Name = about("folder of the collections")
    collections: Annotated[dict[str, Source], FILLED] = about("what is read")
    training: Teaching = about("how it is taught")
    rank: Positive = about("of each linear layer's change in the file that is shipped")


COMMANDS: dict[str, type] = {
    "run": RunCommand, "table": TableCommand, "compare": CompareCommand, "study": StudyCommand, "reader": ReaderCommand,
}  # fmt: skip


def check_command(config: DictConfig, name: str) -> None:
    """Hold a command's configuration against its options, and the columns of its table against its measures.

    Raises:
        OptionError: see :func:`lab.options.kinds.check_config`; or a column of a measure that is not measured, or a
            collection without splits that are ranked.
    """
    check_config(config, COMMANDS[name])
    if name == "reader":
        return
    for i, data in enumerate(config.collections if name == "study" else ()):
        if data not in config.tests:
            raise OptionError(f"collections[{i}] must be one of tests ({', '.join(config.tests)}), got {data!r}")
    report, measures = config.report, list(config.measures)
    wanted = {
        "differences": {
            f"report.differences[{i}].measure": one.measure for i, one in enumerate(report.differences or ())
        },
        "p": {f"report.significance.measures[{i}]": one for i, one in enumerate(report.significance.measures)},
    }
    for column in wanted.keys() & set(report.columns):
        for option, measure in wanted[column].items():
            if measure not in measures:
                raise OptionError(f"{option} must be one of measures ({', '.join(measures)}), got {measure!r}")
