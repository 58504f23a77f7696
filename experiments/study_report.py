"""From the study's finished rows to tables (Markdown and CSV) and figures, for one collection and split."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from evidence import read_evidence, read_flags
from files import write_text
from omegaconf import DictConfig
from report import adjusted, number, per_query, relative, scaled
from rows import Task
from study_plan import Entry, Study

from socialgraph.data import Split, Tokens
from socialgraph.data.files import atomic_write
from socialgraph.inspect.by_length import Bucket, draw_by_length, measures_by_length
from socialgraph.ranking import paired_t_test, processes

#: what a row costs, and the unit it is shown in
COSTS = {"training_seconds": 1, "seconds_per_document": 1, "peak_memory_bytes": 1e9}

#: systems that a figure holds; of more, those in ``drawn``
MOST = 8

#: query -> value
Values = dict[str, float]


@dataclass
class Line:
    """A row of the study over its seeds. None: not there, or not known."""

    entry: Entry
    name: str  # as its label, and told from others of the same label
    length: int | None
    tokens: float | None  # word pieces that it is trained on at most, millions
    steps: int | None
    seeds: int
    measures: dict[str, float]  # means over queries and seeds
    spread: dict[str, float | None]  # standard deviation of the seeds' means
    mixed: dict[str, float] | None  # with the first stage
    weights: list[float]  # of the first stage, for each seed
    difference: float | None  # of the first measure from the reference, %
    parameters: float | None  # millions
    training: float | None  # seconds
    seconds: float | None  # for each document
    memory: float | None  # GB, 10^9 bytes
    device: str | None  # that these were measured on
    p_values: dict[str, float] = field(default_factory=dict)  # adjusted
    interval: tuple[float, float] | None = None  # of the first measure's difference from the reference


@dataclass
class Section:
    """The first measure by a property of the query."""

    name: str  # of files
    title: str
    axis: str
    buckets: list[Bucket]


def write_report(
    study: Study, folder: Path, split: str, one: DictConfig, rows: dict[str, list[dict[str, Any]]], task: Task
) -> None:
    """Write ``study.md``, ``study.csv``, ``buckets.csv`` and the figures beside a collection's results.

    Tries have a table only, in their own folder.

    Args:
        study: what is reported.
        folder: of the results.
        split: the test split.
        one: a configuration of its rows.
        rows: row -> its JSON, one for each seed.
        task: the collection and its queries.
    """
    table = lines(study, split, rows)
    names = {line.entry.row: line.name for line in table}
    found = [] if study.tries else sections(study, one, task.tests[split], rows, task, names)
    text = markdown(study, split, one, table, found, len(task.tests[split].qrels))
    write_text(folder / "study.md", text)
    write_text(folder / "study.csv", csv_table(study, table))
    if found:
        write_text(folder / "buckets.csv", csv_buckets(study.config.measures[0], found))
    shown = in_figure(names, study.config.drawn)
    for section in found:
        draw(section, shown, study.config.measures[0], f"{one.data.label}, split {split}", folder)
    if processes.is_first():
        print(f"\n{text}", flush=True)


def lines(study: Study, split: str, rows: Mapping[str, list[dict[str, Any]]]) -> list[Line]:
    """Return a line for each row, the groups of the tables together."""
    config, entry_of = study.config, {cell.entry.row: cell.entry for cell in study.cells}
    groups = dict.fromkeys(entry.group for entry in entry_of.values())
    ordered = [row for group in groups for row in rows if entry_of[row].group == group]
    labels = [entry_of[row].label for row in ordered]
    first, to = config.measures[0], reference(config, rows)
    values = {row: per_query(rows[row]) for row in ordered}
    mean_of = {row: fmean(value[first].values()) for row, value in values.items()}
    table = []
    for row in ordered:
        seeds, entry = rows[row], entry_of[row]
        means = [{name: fmean(v.values()) for name, v in one["measures"].items()} for one in seeds]
        recipe, trained = seeds[0]["config"]["recipe"], seeds[0]["parameters"] is not None
        length = recipe["document_length"] if trained else None
        chosen = [] if study.tries else [one["interpolated"] for one in seeds if one["interpolated"]]  # on dev
        mixed, weights = [one["measures"][split] for one in chosen], [one["weight"] for one in chosen]
        is_alone = labels.count(entry.label) == 1
        steps, tokens = budget(seeds[0]["config"])
        table.append(
            Line(
                entry, entry.label if is_alone else f"{entry.label} {length}", length,
                tokens / 1e6 if trained else None, steps if trained else None, len(seeds),
                {name: fmean(mean[name] for mean in means) for name in config.measures},
                {name: stdev(mean[name] for mean in means) if len(means) > 1 else None for name in config.measures},
                {name: fmean(fmean(one[name].values()) for one in mixed) for name in config.measures}
                if mixed else None,
                weights,
                relative(mean_of[row], mean_of.get(to)),
                scaled(max, [one["parameters"] for one in seeds], 1e6),
                *(scaled(max, [seeds[0][cost]], unit) for cost, unit in COSTS.items()),  # later seeds find kept weights
                seeds[0]["versions"].get("device") if trained else None,
            )
        )  # fmt: skip
    mark(config, table, values)
    return table


def budget(config: Mapping[str, Any]) -> tuple[int, int]:
    """Return a row's steps, and the word pieces of documents that they read at most.

    Word pieces: groups x (1 + negatives) documents x length.
    """
    trainer, arguments = config["trainer"], config["trainer"]["arguments"]
    batch = arguments["per_device_train_batch_size"] * arguments.get("gradient_accumulation_steps", 1)
    length = config["recipe"]["document_length"]
    return -(-trainer["groups"] // batch), trainer["groups"] * (1 + trainer["negatives"]) * length


def mark(config: DictConfig, table: Sequence[Line], values: Mapping[str, dict[str, Values]]) -> None:
    """Test every line against the reference, each measure over all lines."""
    to = reference(config, values)
    others = [line for line in table if line.entry.row != to]
    if to not in values or len(values[to][config.measures[0]]) < 2 or not others:
        return
    for measure in config.significance.measures:
        p_values = adjusted(
            {row: value[measure] for row, value in values.items()}, to, [line.entry.row for line in others]
        )
        for line in others:
            line.p_values[measure] = p_values[line.entry.row]
    first = config.measures[0]
    for line in others:
        line.interval = paired_t_test(values[line.entry.row][first], values[to][first]).interval


def sections(
    study: Study, one: DictConfig, test: Split, rows: Mapping[str, list[dict[str, Any]]], task: Task,
    names: Mapping[str, str],
) -> list[Section]:  # fmt: skip
    """Return the first measure by length, by where the evidence starts, and by whether the question is anchored."""
    config = study.config
    measured = {names[row]: per_query(rows[row])[config.measures[0]] for row in names}
    queries = list(next(iter(measured.values())))
    relevant = {query: [d for d, grade in test.qrels[query].items() if grade > 0] for query in queries}
    ids = sorted({document for documents in relevant.values() for document in documents})
    tokens = Tokens.stored(task.collection.documents, config.backbone, 1 << 30)  # whole, however much was read
    length = dict(zip(ids, tokens.lengths(ids, task.collection.documents), strict=True))
    evidence, flags = read_evidence(one.data.path), read_flags(one.data.path)
    found = []
    for name, title, axis, place, bounds in (
        ("by-length", "By length of the relevant document", "word pieces of the relevant document",
         {query: min(length[d] for d in documents) for query, documents in relevant.items() if documents},
         config.bounds),
        ("by-evidence", "By where the evidence starts", "word piece at which the evidence starts",
         {q: evidence[q].start for q in queries if q in evidence and evidence[q].document_id in relevant[q]},
         config.bounds),
        ("by-anchor", "Anchored questions (share a rare word with their document)", "question",
         {query: int(flags[query]) for query in queries if query in flags}, [1]),
    ):  # fmt: skip
        if not place:
            continue
        inside = {system: {query: values[query] for query in place} for system, values in measured.items()}
        buckets = measures_by_length(inside, place, list(bounds))
        if name == "by-anchor":
            called = ("not anchored", "anchored")
            buckets = [
                Bucket(new, old.queries, old.means, old.errors) for new, old in zip(called, buckets, strict=True)
            ]
        found.append(Section(name, title, axis, buckets))
    return found


def in_figure(names: Mapping[str, str], drawn: Sequence[str]) -> list[str]:
    """Return the systems of a figure: all of a table, or if they are too many the rows of ``drawn``.

    Args:
        names: row -> name, in the table's order.
        drawn: rows.
    """
    chosen = [name for row, name in names.items() if row in drawn]
    return chosen if len(names) > MOST and len(chosen) > 1 else list(names.values())[:MOST]


def draw(section: Section, shown: Sequence[str], measure: str, name: str, folder: Path) -> None:
    """Write a section's figure: some systems, Figure 6's form."""
    only = [
        Bucket(b.name, b.queries, *({s: v[s] for s in shown if s in v} for v in (b.means, b.errors)))
        for b in section.buckets
    ]
    if not processes.is_first() or not any(bucket.means for bucket in only):
        return
    figure = draw_by_length(only, measure, f"{name}; lines: one standard error over queries")
    figure.axes[0].set_xlabel(section.axis, size=9)
    with atomic_write(folder / f"{section.name}.png", "wb") as file:
        figure.savefig(file, format="png", dpi=100)


def header(study: Study, table: Sequence[Line]) -> list[str]:
    """Return the names of the columns."""
    measures, paper = study.config.measures, papers(table)
    return [
        "Model", "Doc. length", "Seeds", *measures,
        f"Δ {measures[0]} vs {reference_name(study, table)} %", "95 % interval of Δ",
        *(f"p of {name}" for name in study.config.significance.measures), f"+ BM25: {measures[0]}",
        "Weight of BM25", "Training pieces (M)", "Parameters (M)", "Training (s)", "s / document", "Memory (GB)",
        "Device", *(f"paper: {name}" for name in paper), *(["Expected"] if study.tries else []),
    ]  # fmt: skip


def reference(config: DictConfig, rows: Collection[str]) -> str:
    """Return the row that the others are compared with: the first of ``significance.to`` that is among them."""
    to = config.significance.to
    wanted = [to] if isinstance(to, str) else list(to)
    return next((row for row in wanted if row in rows), wanted[0])


def reference_name(study: Study, table: Sequence[Line]) -> str:
    """Return what that row is called."""
    to = reference(study.config, [line.entry.row for line in table])
    return next((cell.entry.label for cell in study.cells if cell.entry.row == to), to)


def papers(table: Sequence[Line]) -> list[str]:
    """Return what the papers print of any line."""
    return list(dict.fromkeys(name for line in table for name, _ in line.entry.paper))


def cells(study: Study, line: Line, paper: Sequence[str]) -> list[str]:
    """Return what stands in the columns."""
    config = study.config
    level = config.significance.level
    means = [
        f"{line.measures[name]:.4f}"
        + ("" if line.spread[name] is None else f" ± {line.spread[name]:.4f}")
        + " †" * (line.p_values.get(name, 1) < level)
        for name in config.measures
    ]
    return [
        line.name, number(line.length, ""), str(line.seeds), *means, number(line.difference, "+.1f"),
        "-" if line.interval is None else "{:+.3f} to {:+.3f}".format(*line.interval),
        *(p_value(line.p_values.get(name)) for name in config.significance.measures),
        number(None if line.mixed is None else line.mixed[config.measures[0]], ".4f"),
        ", ".join(f"{weight:g}" for weight in line.weights) or "-",
        number(line.tokens, ".2f"), number(line.parameters, ".1f"), number(line.training, ".0f"),
        number(line.seconds, ".4f"), number(line.memory, ".2f"), line.device or "-",
        *(number(dict(line.entry.paper).get(name), ".4f") for name in paper),
        *([line.entry.expected] if study.tries else []),
    ]  # fmt: skip


def p_value(value: float | None) -> str:
    """Return three digits of it; none of them is 0 where it is not."""
    return "<0.001" if value is not None and value < 0.0005 else number(value, ".3f")


def markdown(
    study: Study, split: str, one: DictConfig, table: Sequence[Line], found: Sequence[Section], queries: int
) -> str:
    """Return the report."""
    config = study.config
    names, paper = header(study, table), papers(table)
    text = [f"# {one.data.label}, split {split}: size={config.size}, part={config.part}", ""]
    text += [notes(study, one, table, queries), "", f"| {' | '.join(names)} |", f"|---|{'---:|' * (len(names) - 1)}"]
    group = None
    for line in table:
        if line.entry.group != group:
            group = line.entry.group
            text.append(f"| **{group}** |{' |' * (len(names) - 1)}")
        text.append(f"| {' | '.join(cells(study, line, paper))} |")
    for section in found:
        text += ["", f"## {section.title}: {config.measures[0]}", ""]
        text.append(f"| Model | {' | '.join(f'{b.name} ({len(b.queries)})' for b in section.buckets)} |")
        text.append(f"|---|{'---:|' * len(section.buckets)}")
        for line in table:
            means = [number(bucket.means.get(line.name), ".4f") for bucket in section.buckets]
            text.append(f"| {line.name} | {' | '.join(means)} |")
    return "\n".join(text) + "\n"


def notes(study: Study, one: DictConfig, table: Sequence[Line], queries: int) -> str:
    """Return what one must know to read the tables."""
    config, test = study.config, study.config.significance
    steps = sorted({line.steps for line in table if line.steps is not None})
    trained = ""
    if steps:
        *others, last = map(str, steps)
        budget = f"Budgets of {', '.join(others)} and {last}" if others else f"One budget for all: {last}"
        trained = (
            f"{budget} training step{'s' * (last != '1')} of "
            f"{one.trainer.arguments.per_device_train_batch_size} groups, each of 1 relevant document and "
            f"{one.trainer.negatives} others, cut to the length in the table; training pieces: word pieces of "
            "documents that are then read at most. "
        )
    warm = (
        f"All backbones are {config.backbone}, warmed up on {config.warm_up.groups} groups of passages of "
        f"{config.warm_up.passage} word pieces of this collection's training questions, once for all rows and seeds. "
        if config.warm_up.groups > 0
        else f"All backbones are {config.backbone}. "
    )
    seen = "Dev, on which tries are compared; test was not looked at. " if study.tries else ""
    found = ", and among them the relevant one" if one.data.queries.get("found", False) else ""
    outside = one.data.queries.get("outside")
    beside = f", none of them in {outside}" if outside else ""
    return (
        f"{seen}{queries} queries{beside}, their first {one.data.depth} candidates at most{found}, the same for all "
        f"rows. {trained}{warm}"
        f"Mean over seeds ± standard deviation of the seeds' means. †: differs from {reference_name(study, table)} "
        f"(paired t-test over queries, seeds averaged, two-sided, Holm over the rows, p < {test.level}). "
        "95 % interval: of the difference, in the measure's own units, not adjusted for the number of rows. + BM25: "
        "the scores mixed with the candidates' own, each scaled to [0, 1], with the weight that is best on dev. "
        "The columns of the paper are its own printed figures, on MS MARCO and TREC DL 2019, with larger models and "
        "budgets. "
        "Times and memory are those of the first seed; later ones, and tries, find the [CLS] attention that others "
        "have computed. "
        "Compare times of one device only. "
        "Memory: peak while the row was trained and ranked, of the GPU, or without one of the whole process."
    )


def csv_table(study: Study, table: Sequence[Line]) -> str:
    """Return the main table with all digits."""
    config, paper = study.config, papers(table)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([
        "Row", "Group", "Model", "Doc. length", "Seeds", *config.measures, *(f"sd of {m}" for m in config.measures),
        "Low of Δ", "High of Δ", *(f"p of {m}" for m in config.significance.measures),
        *(f"+ BM25: {m}" for m in config.measures),
        "Weights of BM25", "Steps", "Training pieces (M)", "Parameters (M)", "Training (s)", "s / document",
        "Memory (GB)", "Device", *(f"paper: {m}" for m in paper), "Expected",
    ])  # fmt: skip
    for line in table:
        values = [
            line.entry.row, line.entry.group, line.entry.label, line.length, line.seeds,
            *(line.measures[m] for m in config.measures), *(line.spread[m] for m in config.measures),
            *(line.interval or (None, None)), *(line.p_values.get(m) for m in config.significance.measures),
            *(None if line.mixed is None else line.mixed[m] for m in config.measures),
            " ".join(f"{weight:g}" for weight in line.weights), line.steps, line.tokens, line.parameters, line.training,
            line.seconds, line.memory, line.device, *(dict(line.entry.paper).get(m) for m in paper),
            line.entry.expected,
        ]  # fmt: skip
        writer.writerow(["" if value is None else value for value in values])
    return file.getvalue()


def csv_buckets(measure: str, found: Sequence[Section]) -> str:
    """Return all buckets, a line for each system."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["By", "Bucket", "Queries", "Model", measure, "Standard error"])
    for section in found:
        for bucket in section.buckets:
            for system, mean in bucket.means.items():
                writer.writerow(
                    [section.name, bucket.name, len(bucket.queries), system, mean, bucket.errors.get(system, "")]
                )
    return file.getvalue()
