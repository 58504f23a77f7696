"""One table of the levels that train nothing: what each strategy's circles hold, how they read, what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from lab.columns import Column
from lab.comparison import Comparison, Line
from lab.levels.runs import random_order
from lab.plan import Run
from lab.report import Report, notes_on, write_table

#: measures beside the first one of each level
ALSO = ("sequences", "words", "RR@10 reader mean")


def write_summary(finished: Mapping[str, Comparison], run: Run, folder: Path) -> None:
    """Write ``summary.md`` and so on, once both levels are there: a line for each strategy.

    Args:
        finished: level -> its comparison.
        run: one of those of reading.
        folder: where it goes.
    """
    if set(finished) != {"evidence", "reading"} or not all(of.lines for of in finished.values()):
        return
    evidence = narrowed(finished["evidence"], ["options", "measures", "gain", "p", "power"])
    reading = narrowed(finished["reading"], ["measures", "gain", "p", "power", "circles"], evidence.measures)
    known = {column.heading for column in Report(evidence).columns}
    beside = [of_row(column, reading, known) for column in Report(reading).columns]
    told = Report(reading, f"Reading: {notes_on(run.config, reading.lines)}").notes()
    more = f"\n{told}\n\n{random_order(run)} Circles of random members have no lift.\n"
    write_table(evidence, run.config, folder, "summary", more, beside)


def narrowed(of: Comparison, columns: list[str], without: list[str] | None = None) -> Comparison:
    """Return a level's comparison with these columns, of the measures that the summary has of it."""
    wanted = [name for name in of.measures if name == of.measures[0] or name in ALSO]
    measures = [name for name in wanted if name not in (without or ())]
    config: Any = OmegaConf.merge(of.config, {"measures": measures, "report": {"columns": columns}})
    return Comparison(config, of.lines, of.to)


def of_row(column: Column, of: Comparison, known: set[str]) -> Column:
    """Return a column that says of a line what another comparison says of the same row."""

    def there(read: Callable[[Line], Any]) -> Callable[[Line], Any]:
        return lambda line: read(of.by_name[line.row.name]) if line.row.name in of.by_name else None

    heading = f"{column.heading} (reading)" if column.heading in known else column.heading
    return replace(column, heading=heading, value=there(column.value), mark=there(column.mark))
