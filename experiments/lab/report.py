"""A table of finished runs with declared columns: Markdown, LaTeX (booktabs) and CSV.

A configuration names the columns of its table (``report.columns``); lab.columns says what each one holds. The CSV has
all digits, and what is too long for a page.
"""

from __future__ import annotations

import csv
import io
import logging
import re
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from lab.columns import COLUMNS, NOTES, Column
from lab.comparison import Comparison, Line
from lab.files import write_text
from lab.plan import Run, by_row
from socialgraph.data.files import file_name
from socialgraph.ranking import processes

log = logging.getLogger("socialgraph")


def lines_of(runs: Iterable[Run], untrained: Iterable[Run] = (), split: str | None = None) -> list[Line]:
    """Return the lines of the rows that are finished, in the order in which they are first named.

    Args:
        runs: of all rows and seeds.
        untrained: the same without training, where they are shown.
        split: the test split; None: the first.
    """
    before = by_row(untrained)
    lines = [
        Line(row, finished_values(some, split), finished_values(before.get(row, []), split))
        for row, some in by_row(runs).items()
    ]
    left_out = [line.row.name for line in lines if not line.seeds]
    if left_out:
        log.info("not finished under this configuration, so not in the table: %s", ", ".join(left_out))
    return [line for line in lines if line.seeds]


def finished_values(runs: Sequence[Run], split: str | None) -> list[dict[str, Any]]:
    """Return the JSON of those runs that are finished."""
    values = [run.finished() for run in runs]
    return [next(iter(value.values())) if split is None else value[split] for value in values if value]


def write_table(
    of: Comparison, run: DictConfig, folder: Path, name: str, more: str = "", beside: Sequence[Column] = ()
) -> None:
    """Write a table in three formats and print it.

    Args:
        of: its lines.
        run: the configuration of one of the runs.
        folder: where it goes.
        name: of its files.
        more: what comes after it in Markdown.
        beside: columns beside those that the configuration declares.
    """
    report = Report(of, notes_on(run, of.lines), beside)
    text = report.markdown() + more
    for suffix, content in ((".md", text), (".tex", report.latex()), (".csv", report.csv())):
        write_text(folder / f"{file_name(name)}{suffix}", content)
    if processes.is_first():
        print(f"\n{text}", flush=True)
    log.info("written to %s: %s.md, .tex and .csv", folder, name)


def notes_on(run: DictConfig, lines: Sequence[Line]) -> str:
    """Return what is the same for all rows."""
    data, seeds = run.data, sorted({seed["config"]["seed"] for line in lines for seed in line.seeds})
    splits = dict.fromkeys(seed["config"]["data"]["splits"]["test"] for line in lines for seed in line.seeds)
    queries = len(next(iter(lines[0].measures().values()))) if lines else 0
    answerable = ", the relevant one among them" if data.queries.get("found", False) else ""
    return (
        f"{data.label}, split {', '.join(splits)}: {queries} queries, their first {data.depth} candidates at "
        f"most{answerable}, the same for all rows. Backbone {run.backbone}, "
        f"{'mean ± standard deviation of the seeds' if len(seeds) > 1 else 'seed'} {', '.join(map(str, seeds))}."
    )


class Report:
    """A table as text.

    Args:
        of: its lines.
        about: what one must know of the runs to read it.
        beside: further columns.
    """

    def __init__(self, of: Comparison, about: str = "", beside: Sequence[Column] = ()) -> None:
        self.of, self.lines, self.about = of, of.lines, about
        self.declared = {name: COLUMNS[name](of) for name in of.config.report.columns} if of.lines else {}
        self.columns = [*chain.from_iterable(self.declared.values()), *beside]
        self.on_page = [column for column in self.columns if column.where != "csv"]

    def notes(self) -> str:
        """Return what one must know to read the table."""
        test, to = self.of.config.report.significance, self.of.label(self.of.to)
        daggers = (
            f"†: differs from {to} in {' or '.join(test.measures)} (paired t-test over queries, seeds averaged, "
            f"two-sided, Holm over the rows, p < {test.level})."
            if self.of.to in self.of.by_name
            else f"Nothing is tested: the table has no row {to} (report.significance.to)."
        )
        notes = (NOTES[name] for name, columns in self.declared.items() if columns and name in NOTES)
        return " ".join([self.about, daggers, *notes])

    def markdown(self) -> str:
        """Return the table as Markdown."""
        if not self.lines:
            return "No row is finished.\n"
        text = markdown_head([column.heading for column in self.on_page])
        for group, lines in groupby(self.lines, lambda line: line.row.group):
            text += [f"| **{group}** |{' |' * (len(self.on_page) - 1)}"] if group else []
            text += [markdown_line(column.text(line, " †") for column in self.on_page) for line in lines]
        return "\n".join([*text, "", self.notes()]) + "\n"

    def latex(self) -> str:
        """Return the table as LaTeX; it needs the package booktabs."""
        if not self.lines:
            return "% No row is finished.\n"
        columns = self.on_page
        text = [f"% {self.notes()}", f"\\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}", "\\toprule"]
        text.append(" & ".join(escaped(column.heading) for column in columns) + r" \\")
        for group, lines in groupby(self.lines, lambda line: line.row.group):
            heading = f"\\multicolumn{{{len(columns)}}}{{l}}{{\\textit{{{escaped(group)}}}}} \\\\"
            text += [r"\midrule", heading] if group else []
            text += [" & ".join(escaped(column.text(line, "†")) for column in columns) + r" \\" for line in lines]
        return "\n".join([*text, r"\bottomrule", r"\end{tabular}"]) + "\n"

    def csv(self) -> str:
        """Return the table with all digits."""
        named = [Column("Row", lambda line: line.row.name), Column("Group", lambda line: line.row.group)]
        columns = [*named, *(column for column in self.columns if column.where != "page")]
        cells = ([column.value(line) for column in columns] for line in self.lines)
        return csv_text([column.heading for column in columns], cells)


def markdown_head(headings: Sequence[str]) -> list[str]:
    """Return the first lines of a table in Markdown: names on the left, numbers on the right."""
    return [markdown_line(headings), f"|---|{'---:|' * (len(headings) - 1)}"]


def markdown_line(cells: Iterable[str]) -> str:
    """Return a line of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Return text as LaTeX shows it."""
    text = re.sub(r"([&%$#_{}])", r"\\\1", text)
    return text.replace("†", r"$^{\dagger}$").replace("Δ", r"$\Delta$").replace("±", r"$\pm$")


def csv_text(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Return lines as CSV; nothing stands where a value is not known."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    for line in lines:
        writer.writerow(["" if value is None else value for value in line])
    return file.getvalue()
