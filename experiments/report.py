"""From finished rows to a table: Markdown, LaTeX (booktabs) and CSV."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from omegaconf import DictConfig

from socialgraph.ranking import paired_t_test
from socialgraph.ranking.evaluate import holm

#: row id -> its JSON, one for each seed
Finished = dict[str, list[dict[str, Any]]]


@dataclass
class Line:
    """A line of the table. None: not there, or not known."""

    row: str
    group: str
    label: str
    length: int | None
    window: int | None
    measures: dict[str, float]
    differences: dict[str, float | None]
    parameters: float | None  # millions
    training: float | None  # seconds
    seconds: float | None  # for each document
    memory: float | None  # GB, 10^9 bytes
    paper: dict[str, float | None]
    p_values: dict[str, float] = field(default_factory=dict)  # adjusted
    marked: list[str] = field(default_factory=list)  # measures that differ significantly


def lines(config: DictConfig, finished: Finished) -> list[Line]:
    """Return the lines of the rows that are finished, in the order of the configuration."""
    table = config.table
    labels = {row: entry.label for group in table.groups.values() for row, entry in group.items()}
    values = {row: per_query(seeds) for row, seeds in finished.items()}
    means = {row: {name: fmean(v.values()) for name, v in measured.items()} for row, measured in values.items()}
    result = []
    for group, entries in table.groups.items():
        for row, entry in entries.items():
            if row not in finished:
                continue
            seeds = finished[row]
            recipe = seeds[0]["config"]["recipe"]
            result.append(
                Line(
                    row, str(group), entry.label,
                    None if recipe["first_stage"] else recipe["document_length"],
                    entry.get("window", config.window),
                    {name: means[row][name] for name in config.measures},
                    {
                        f"{one.measure} vs {labels[one.to]} %": relative(
                            means[row][one.measure], means[one.to][one.measure] if one.to in means else None
                        )
                        for one in table.differences
                    },
                    scaled(max, [one["parameters"] for one in seeds], 1e6),
                    scaled(fmean, [one["training_seconds"] for one in seeds], 1),
                    scaled(fmean, [one["seconds_per_document"] for one in seeds], 1),
                    scaled(max, [one["peak_memory_bytes"] for one in seeds], 1e9),
                    dict(zip(table.paper, entry.get("paper") or [None] * len(table.paper), strict=True)),
                )
            )  # fmt: skip
    mark(config, result, values)
    return result


def per_query(seeds: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return measure -> query -> mean over seeds."""
    return {
        name: {query: fmean(one["measures"][name][query] for one in seeds) for query in measured}
        for name, measured in seeds[0]["measures"].items()
    }


def relative(value: float, to: float | None) -> float | None:
    """Return the difference in % of ``to``."""
    return None if not to else 100 * (value - to) / to


def scaled(together: Any, values: list[float | None], unit: float) -> float | None:
    """Return the seeds' values as one, in a unit; None if one is not known."""
    return None if any(value is None for value in values) else together(values) / unit


def mark(config: DictConfig, table: list[Line], values: dict[str, dict[str, dict[str, float]]]) -> None:
    """Test every line against the reference; for each measure, p values are adjusted over the lines."""
    test = config.table.significance
    others = [line for line in table if line.row != test.to]
    if test.to not in values or len(next(iter(values[test.to].values()))) < 2:
        return
    for measure in test.measures:
        measured = {row: value[measure] for row, value in values.items()}
        p_values = adjusted(measured, test.to, [line.row for line in others])
        for line in others:
            line.p_values[measure] = p_values[line.row]
            if p_values[line.row] < test.level:
                line.marked.append(measure)


def adjusted(values: dict[str, dict[str, float]], to: str, rows: list[str]) -> dict[str, float]:
    """Return how likely each row's difference from ``to`` is by chance: a paired t-test over queries, Holm over rows.

    Args:
        values: row -> query -> value.
        to: the row of reference.
        rows: those that are tested.
    """
    p_values = holm([paired_t_test(values[row], values[to]).p_value for row in rows])
    return dict(zip(rows, p_values, strict=True))


def header(table: list[Line]) -> list[str]:
    """Return the names of the columns."""
    first = table[0]
    return [
        "Model", "Doc. length", "Window", *first.measures, *(f"Δ {name}" for name in first.differences),
        "Parameters (M)", "Training (s)", "s / document", "Memory (GB)", *(f"paper: {name}" for name in first.paper),
    ]  # fmt: skip


def cells(line: Line, dagger: str) -> list[str]:
    """Return what stands in the columns."""
    return [
        line.label, number(line.length, ""), number(line.window, ""),
        *(f"{value:.4f}" + dagger * (name in line.marked) for name, value in line.measures.items()),
        *(number(value, "+.2f") for value in line.differences.values()),
        number(line.parameters, ".1f"), number(line.training, ".0f"), number(line.seconds, ".4f"),
        number(line.memory, ".2f"),
        *(number(value, ".4f") for value in line.paper.values()),
    ]  # fmt: skip


def number(value: float | None, form: str) -> str:
    """Return a number as text, or a dash."""
    return "-" if value is None else format(value, form)


def notes(config: DictConfig) -> str:
    """Return what one must know to read the table."""
    test = config.table.significance
    labels = {row: entry.label for group in config.table.groups.values() for row, entry in group.items()}
    return (
        f"{config.data.label}, split {config.data.splits.test}, {config.backbone}, "
        f"{'mean of the seeds' if len(config.seeds) > 1 else 'seed'} {', '.join(map(str, config.seeds))}. "
        f"All rows rank the same candidates. †: {' or '.join(test.measures)} differs from {labels[test.to]}'s "
        f"(paired t-test over queries, two-sided, Holm over the rows, p < {test.level}). "
        "The columns of the paper are its own printed figures, on other data and with other models. "
        "s / document: of re-ranking, as it was in that run, whatever else the machine did; benchmarks/rerank.py "
        "compares systems in turn. "
        "Memory: peak while the row was trained and ranked, of the GPU, or without one of the whole process."
    )


def markdown(config: DictConfig, table: list[Line]) -> str:
    """Return the table as Markdown."""
    if not table:
        return "No row is finished.\n"
    names, text, group = header(table), [], None
    text += [f"| {' | '.join(names)} |", f"|---|{'---:|' * (len(names) - 1)}"]
    for line in table:
        if line.group != group:
            group = line.group
            text.append(f"| **{group}** |{' |' * (len(names) - 1)}")
        text.append(f"| {' | '.join(cells(line, ' †'))} |")
    return "\n".join([*text, "", notes(config)]) + "\n"


def latex(config: DictConfig, table: list[Line]) -> str:
    """Return the table as LaTeX; it needs the package booktabs."""
    if not table:
        return "% No row is finished.\n"
    names, text, group = header(table), [], None
    text += [f"% {notes(config)}", f"\\begin{{tabular}}{{l{'r' * (len(names) - 1)}}}", "\\toprule"]
    text.append(" & ".join(map(escaped, names)) + r" \\")
    for line in table:
        if line.group != group:
            group = line.group
            text += [r"\midrule", f"\\multicolumn{{{len(names)}}}{{l}}{{\\textit{{{escaped(group)}}}}} \\\\"]
        text.append(" & ".join(map(escaped, cells(line, "†"))) + r" \\")
    return "\n".join([*text, r"\bottomrule", r"\end{tabular}"]) + "\n"


def escaped(text: str) -> str:
    """Return text as LaTeX shows it."""
    text = re.sub(r"([&%$#_{}])", r"\\\1", text)
    return text.replace("†", r"$^{\dagger}$").replace("Δ", r"$\Delta$")


def csv_table(table: list[Line]) -> str:
    """Return the table with all digits, and the adjusted p values."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    if table:
        tested = list(dict.fromkeys(name for line in table for name in line.p_values))
        first, *names = header(table)
        writer.writerow(["Row", "Group", first, *names, *(f"p of {name}" for name in tested)])
    for line in table:
        values = [
            line.row, line.group, line.label, line.length, line.window, *line.measures.values(),
            *line.differences.values(), line.parameters, line.training, line.seconds, line.memory, *line.paper.values(),
            *(line.p_values.get(name) for name in tested),
        ]  # fmt: skip
        writer.writerow(["" if value is None else value for value in values])
    return file.getvalue()
