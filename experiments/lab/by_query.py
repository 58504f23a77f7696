"""The first measure by a property of the query: length of what is to be found, where its evidence starts, anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure
from omegaconf import DictConfig

from lab.comparison import Comparison, Line
from lab.files import write_figure, write_text
from lab.paper_figures import Bucket, draw_by_length, measures_by_length
from lab.report import csv_text, markdown_head, markdown_line
from lab.task import task_of, whole_texts
from socialgraph.data import Collection, Tokens
from socialgraph.data.evidence import read_flags

#: systems that a figure holds; of more, those in ``drawn``
MOST = 8


@dataclass
class Section:
    """A property of the query, and the measure in each of its buckets."""

    name: str  # of files
    title: str
    axis: str
    buckets: list[Bucket]


def write_sections(of: Comparison, run: DictConfig, split: str, folder: Path) -> str:
    """Write ``buckets.csv`` and a figure for each property; return the tables as Markdown."""
    if not of.lines:
        return ""
    names, measure, text = unique_names(of.lines), of.measures[0], [""]
    sections = sections_of(of, run, split, names)
    for section in sections:
        text += [f"## {section.title}: {measure}", ""]
        text += markdown_head(["Model", *(f"{bucket.name} ({len(bucket.queries)})" for bucket in section.buckets)])
        for name in names.values():
            means = [bucket.means.get(name) for bucket in section.buckets]
            text.append(markdown_line([name, *("-" if mean is None else f"{mean:.4f}" for mean in means)]))
        text.append("")
        shown, about = in_figure(names, of.config.drawn), f"{run.data.label}, split {split}"
        write_figure(folder / f"{section.name}.png", 100, drawn, section, shown, measure, about)
    header = ["By", "Bucket", "Queries", "Model", measure, "Standard error"]
    cells = (
        [section.name, bucket.name, len(bucket.queries), system, mean, bucket.errors.get(system)]
        for section in sections
        for bucket in section.buckets
        for system, mean in bucket.means.items()
    )
    write_text(folder / "buckets.csv", csv_text(header, cells))
    return "\n".join(text)


def unique_names(lines: Sequence[Line]) -> dict[str, str]:
    """Return row -> its label; the length that is read tells rows of the same label apart."""
    labels = [line.label for line in lines]
    return {
        line.row.name: line.label
        if labels.count(line.label) == 1
        else f"{line.label} {line.config['recipe']['document_length']}"
        for line in lines
    }


def sections_of(of: Comparison, run: DictConfig, split: str, names: dict[str, str]) -> list[Section]:
    """Return the first measure by length, by where the evidence starts, and by whether the question is anchored."""
    measured = {names[line.row.name]: line.measures()[of.measures[0]] for line in of.lines}
    queries, task = list(next(iter(measured.values()))), task_of(run)
    relevant = {query: task.collection[split].relevant(query) for query in queries}
    evidence, flags = task.evidence, read_flags(task.folder)
    starts = {q: evidence[q].start for q in queries if q in evidence and evidence[q].document_id in relevant[q]}
    lengths = lengths_of(relevant, task.collection, whole_texts(task.collection, of.config.backbone))
    anchored = {query: int(flags[query]) for query in queries if query in flags}
    sections = []
    for name, title, axis, place, bounds in (
        ("by-length", "By length of the relevant document", "word pieces of the relevant document", lengths,
         of.config.bounds),
        ("by-evidence", "By where the evidence starts", "word piece at which the evidence starts", starts,
         of.config.bounds),
        ("by-anchor", "Anchored questions (share a rare word with their document)", "question", anchored, [1]),
    ):  # fmt: skip
        if place:
            inside = {system: {query: values[query] for query in place} for system, values in measured.items()}
            sections.append(Section(name, title, axis, measures_by_length(inside, place, list(bounds))))
    if anchored:
        low, high = sections[-1].buckets
        sections[-1].buckets = [replace(low, name="not anchored"), replace(high, name="anchored")]
    return sections


def lengths_of(relevant: dict[str, list[str]], collection: Collection, tokens: Tokens) -> dict[str, int]:
    """Return the length of the shortest document that is relevant to each query, in word pieces of the whole text.

    A judged document that the collection does not hold has none.
    """
    there = {query: [d for d in documents if d in collection.documents] for query, documents in relevant.items()}
    ids = sorted({document for documents in there.values() for document in documents})
    length = dict(zip(ids, tokens.lengths(ids, collection.documents), strict=True))
    return {query: min(length[d] for d in documents) for query, documents in there.items() if documents}


def in_figure(names: dict[str, str], drawn: Sequence[str]) -> list[str]:
    """Return the systems of a figure: all of a table, or if they are too many the rows of ``drawn``.

    Args:
        names: row -> name, in the table's order.
        drawn: rows.
    """
    chosen = [name for row, name in names.items() if row in drawn]
    return chosen if len(names) > MOST and len(chosen) > 1 else list(names.values())[:MOST]


def drawn(section: Section, shown: Sequence[str], measure: str, name: str) -> Figure | None:
    """Return a section's figure, of some systems and in Figure 6's form; None if they have no query in it."""
    if not any(system in bucket.means for bucket in section.buckets for system in shown):
        return None
    note = f"{name}; lines: one standard error over queries"
    return draw_by_length(section.buckets, measure, note, shown, section.axis)
