"""What each command takes beside what all of them take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from hydra import compose
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from lab.options.groups import FILLED, ONCE, Above0, Count, Label, Name, Names, Positive, Rate, Run, Seed, Share
from lab.options.kinds import OPTIONAL, Built, Group, Only, between, check_config
from lab.overrides import subject
from socialgraph.errors import OptionError, suggestion
from socialgraph.recipes.typed import refuse_empty_tables

RISING = Only("that rises", lambda values: values == sorted(set(values)))
Value = Name | float | bool | None  # of any option
Seeds = Annotated[list[Seed], FILLED, ONCE]
Level = Literal["evidence", "reading", "training"]
EvidenceMeasure = Literal["lift", "best circle", "best two", "run", "sequences", "words"]
ReadingMeasure = Literal[
    "RR@10 encoder mean", "RR@10 encoder max", "RR@10 reader mean", "RR@10 reader max",
    "nDCG@10 encoder mean", "nDCG@10 encoder max", "nDCG@10 reader mean", "nDCG@10 reader max", "sequences",
]  # fmt: skip
CircleReader = Literal["encoder", "reader"]
ColumnName = Literal[
    "model", "options", "length", "window", "seeds", "measures", "differences", "interval", "gain", "own_interval",
    "power", "p", "mixed", "weight", "untrained", "untrained_mixed", "trained", "trained_mixed", "statistics", "budget",
    "parameters", "training", "seconds", "graph", "circles", "read", "memory", "device", "paper",
]  # fmt: skip


class Difference(Group):
    """A column of differences."""

    measure = Name, "of the column"
    to = Name, "row from which the others differ"


class Significance(Group):
    """Paired t-test over queries, Holm over the rows."""

    to = Names, "the reference: the first of these rows that the table has", OPTIONAL
    measures = Names, "those that are tested"
    level = Annotated[float, between(0, 1, above=True)], "p values below it are marked", OPTIONAL


class Report(Group):
    """How a table is made of finished runs."""

    columns = Annotated[list[ColumnName], FILLED, ONCE], "of the table, from left to right"
    differences = list[Difference] | None, "relative, in %; null: of the first measure, to the reference", OPTIONAL
    significance = Significance, "what the daggers mean"


class Size(Group):
    """How long documents are and how much is trained (size=cpu or gpu)."""

    name = Name, "of the size"
    short = Positive, "word pieces of a document, where the paper reads 512"
    long = Positive, "and where it reads 2048"
    original = Positive, "and where PARADE's own paper draws its passages from all of it"
    whole = Positive, "and where an encoder of today (long_backbone) reads all at once"
    short_circles = Positive, "friend circles at most of short documents"
    long_circles = Positive, "and of long ones"
    compared = Positive, "word pieces of a document in level=training of compare.py"
    compared_circles = Positive, "its friend circles at most"
    overrides = list[Name], "options of every row"


class RunCommand(Run):
    """run.py."""

    rows = Names, "recipes, each with options of its own behind it if it has some; of two of one recipe the last counts"
    report = Report, "the table"


class SeveralSeeds(Run):
    """What the commands take whose rows are run with several seeds, in a folder that stays."""

    seeds = Seeds, "measures are averaged over them, query by query"
    results = Name, "folder of results"
    size = Size, "lengths and budget; of compare.py in level=training"
    report = Report, "columns of the table; of compare.py in level=training"


class Entry(Group):
    """A row of a table."""

    label = Name, "what it is called"
    overrides = list[Name], "what one would type to run.py"
    window = Positive | None, "what the column says", OPTIONAL
    paper = list[float | None] | None, "the papers' figures", OPTIONAL


class Table(Group):
    """A table: rows and what papers print of them (table=table1 or table2, the Socialformer paper's)."""

    name = Name, "of its files"
    differences = list[Difference] | None, "as report.differences"
    paper = list[Name], "what the papers' figures are"
    groups = dict[str, dict[str, Entry]], "heading: rows"


class TableCommand(SeveralSeeds):
    """table.py."""

    rows = Names | None, "these only; null: all"
    keep_models = bool, "keep trained models"
    pack = bool, "keep all finished runs of the folder in one file"
    table = Table, "the table"


class StudyCommand(SeveralSeeds):
    """study.py."""

    rows = Names | None, "of Tables 1 and 2; null: all"
    collections = Names, "wtq, fairytale"
    minutes = Rate | None, "begin no run that would not end within so many; null: no limit"
    tables = bool, "write the tables and figures of what is finished"
    work = Name, "folder of what later seeds need not compute again"
    data_root = Name | None, "folder of the collections; null: the cache"
    tests = dict[str, Names], "collection: splits that a run ranks at the end"
    bounds = Annotated[list[Positive], RISING], "word pieces at which a new bucket begins"
    drawn = list[Name], "rows of Figure 6"


class Evidence(Group):
    """What circles hold of the known answer; no model reads them."""

    amount = Positive, "questions whose evidence is known"
    measures = Annotated[list[EvidenceMeasure], FILLED], "of the level; the first one is compared"
    report = Report, "its columns"


class Reading(Group):
    """How circles read, by models that nothing has trained here."""

    amount = Positive, "questions with a relevant document among their candidates"
    skipped = Count, "such questions that are left out first: those that other looks have asked"
    readers = Annotated[list[CircleReader], FILLED, ONCE], "who scores circles: a sentence encoder, a BERT reader"
    measures = Annotated[list[ReadingMeasure], FILLED], "of the level; the first one is compared"
    report = Report, "its columns"


class Levels(Group):
    """What trains nothing."""

    overrides = list[Name], "options of every row"
    evidence = Evidence, "what circles hold of the known answer"
    reading = Reading, "how circles read"


class CompareCommand(SeveralSeeds):
    """compare.py."""

    varied = Names, "what is compared, if no values with commas are typed"
    beside = list[Name], "further rows: what one would type for each, with spaces between"
    level = Level | Annotated[list[Level], FILLED, ONCE], "how strategies are judged, from cheap to dear"
    baseline = Value | list[Value] | None, "what the others are tested against; null: the first"
    name = Label, "of the folder within it"
    sample = Positive, "test candidates whose graphs are described"
    statistics = dict[str, Name], "what describe() calls it: heading of a column"
    bounds = Annotated[list[Positive], RISING], "word pieces at which a new bucket begins"
    drawn = list[Name], "of more than 8 strategies these are drawn"
    levels = Levels, "what trains nothing"


class Source(Group):
    """A collection of the reader's training."""

    share = Above0, "how often it is asked"
    made_up = Count, "questions that are made from its text"
    collection = Built, "what loads it"


class Teachers(Group):
    """What the score that the reader learns is made of (lab/reader/pool.py)."""

    cosine = Rate, "weight of the sentence encoder's cosine"
    cover = Rate, "weight of the share of the query's BM25 that a passage covers"
    evidence = Rate, "weight of the share of the evidence that a passage holds"


class Teaching(Group):
    """The reader's training (lab/reader/training.py)."""

    steps = Positive, "of the training"
    learning_rate = Rate, "of AdamW"
    short = Share, "share of the steps, at the beginning, that read short passages only"
    seed = Seed, "of what is drawn"
    questions = Positive, "of a step"
    passages = Positive, "of a question"
    warm_up = Positive, "steps in which the learning rate rises"
    decay = Share, "share of the steps at the end in which it falls to 0"
    circles = Share, "share of groups whose passages are not contiguous"
    leaders = Share, "share of those that are scored from a word in place of [CLS]"
    pooled = Rate, "weight of the divergence of passages put together"
    margin = Rate, "weight of the squared differences"
    average = Share, "of the weights that are kept, from step to step"
    made_up = Share, "share of questions that are made from the text"
    teachers = Teachers, "what it learns from"


class ReaderCommand(Group):
    """reader.py."""

    folder = Name, "passages, checkpoints, log and the backbone that was taught; a killed training goes on in it"
    threads = Positive, "of the CPU"
    data_root = Name, "folder of the collections"
    collections = Annotated[dict[str, Source], FILLED], "what is read"
    training = Teaching, "how it is taught"
    rank = Positive, "of each linear layer's change in the file that is shipped"


COMMANDS: dict[str, type[Group]] = {
    "run": RunCommand, "table": TableCommand, "compare": CompareCommand, "study": StudyCommand, "reader": ReaderCommand,
}  # fmt: skip


def check_command(config: DictConfig, name: str) -> None:
    """Hold a command's configuration against its options, and the columns of its table against its measures and rows.

    Raises:
        OptionError: see :func:`lab.options.kinds.check_config`; or a column of a measure that is not measured, a row
            that is not in the table, a collection without splits that are ranked, or a table without entries.
    """
    check_config(config, COMMANDS[name])
    typed = list(HydraConfig.get().overrides.task)
    refuse_empty_tables(typed, config)
    if name == "reader":
        return
    check_references(config, name, {subject(one) for one in typed})
    for i, data in enumerate(config.collections if name == "study" else ()):
        if data not in config.tests:
            raise OptionError(f"collections[{i}] must be one of tests ({', '.join(config.tests)}), got {data!r}")
    report, measures = config.report, list(config.measures)
    for column, option, wanted in (
        ("differences", "report.differences[{}].measure", [one.measure for one in report.differences or ()]),
        ("p", "report.significance.measures[{}]", report.significance.measures),
    ):
        for i, measure in enumerate(wanted if column in report.columns else ()):
            if measure not in measures:
                known = ", ".join(measures)
                raise OptionError(f"{option.format(i)} must be one of measures ({known}), got {measure!r}")


def check_references(config: DictConfig, name: str, typed: Iterable[str]) -> None:
    """Hold the rows from which others differ against the rows of the table, where they are typed.

    Those of the configuration's files may name a row that somebody has left out.

    Raises:
        OptionError: the table has no such row; or compare.py is told one, which has its baseline.
    """
    rows = row_names(config, name)
    named = {
        "report.significance.to": list(config.report.significance.get("to") or ()),
        "report.differences": [one.to for one in config.report.differences or ()],
    }
    for option, wanted in named.items():
        is_typed = any(option == one or (option.startswith(f"{one}.") and "." in one) for one in typed)
        if is_typed and name == "compare" and option == "report.significance.to":
            raise OptionError(f"{option} is not read here: baseline=... says what the others are tested against")
        for row in wanted if is_typed and name != "compare" else ():
            if row not in rows:
                raise OptionError(f"{option}: the table has no row {row!r}; {suggestion(row, rows)}")


def row_names(config: DictConfig, name: str) -> list[str]:
    """Return the names of all rows that a command's table may have; none of compare.py, which makes them of options."""
    if name == "compare":
        return []
    if name == "run":
        return list(config.rows)
    tables = [config.table] if name == "table" else [compose("table", [f"table=table{i}"]).table for i in (1, 2)]
    return list(dict.fromkeys(str(row) for table in tables for rows in table.groups.values() for row in rows))
