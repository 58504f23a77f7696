"""A Wikipedia page as text: from the HTML of 2014, a line for each paragraph, heading, list item and row of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: classes of what is no text of the article: navigation, edit links, references, notes to editors, players of sounds
_DROPPED = {
    *("navbox", "vertical-navbox", "toc", "editsection", "mw-editsection", "reference", "references", "reflist"),
    *("metadata", "ambox", "mbox-small", "noprint"),
}
_HIDDEN = re.compile(r"display:\s*none")
#: elements that begin and end a line
_LINES = {
    *("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "li", "dt", "dd"),
    *("div", "blockquote", "center", "pre", "table", "caption", "hr"),
}
#: elements that part words, where a line holds them
_WORDS = _LINES | {"br", "tbody", "tr", "td", "th"}


@dataclass
class PageText:
    """A page's lines, and where its data tables (class `wikitable`, in the order of the page) stand among them.

    A table that the text leaves out has None.
    """

    lines: list[str] = field(default_factory=list)
    tables: list[tuple[int, int] | None] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The lines, joined."""
        return "\n".join(self.lines)

    def place(self, table: int) -> tuple[int, int] | None:
        """Return the characters of the text that a table fills, or None."""
        span = self.tables[table] if table < len(self.tables) else None
        if span is None or span[0] == span[1]:
            return None
        start = sum(len(line) + 1 for line in self.lines[: span[0]])
        return start, start + sum(len(line) + 1 for line in self.lines[slice(*span)]) - 1


def page_text(html: str) -> PageText:
    """Return the text of a page.

    A row of a table is its cells that are not empty, joined by `` | ``. A row of a nested table stands in the row
    around it, and once more as a line of its own. A table that only arranges others on the page, which is one that
    holds tables and is neither a data table nor an infobox, is no table here: what is in it is read like the page.
    """
    from lxml.html import fromstring

    reader = _Reader()
    page = fromstring(f"<div>{html}</div>")
    reader.read(page)
    reader.end_line()
    spans = [reader.spans.get(table) for table in page.iter("table") if "wikitable" in _classes(table)]
    return PageText(reader.lines, spans)


class _Reader:
    """Walks through a page and keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.spans: dict[Any, tuple[int, int]] = {}  # table -> its first line, and the line after its last
        self._line: list[str] = []

    def read(self, element: Any) -> None:
        """Read what is in an element; text that nothing encloses is a line up to the next one."""
        self._line.append(element.text or "")
        for child in element:
            if _is_dropped(child):
                pass
            elif child.tag == "table":
                self._table(child)
            elif child.tag in _LINES:
                self.end_line()
                self.read(child)
                self.end_line()
            else:
                blank = " " if child.tag in _WORDS else ""
                self._line.append(blank)
                self.read(child)
                self._line.append(blank)
            self._line.append(child.tail or "")

    def end_line(self) -> None:
        """End the line that is being read."""
        self._add("".join(self._line))
        self._line.clear()

    def _add(self, line: str) -> None:
        if words := line.split():
            self.lines.append(" ".join(words))

    def _table(self, table: Any) -> None:
        self.end_line()
        first = len(self.lines)
        if next(table.iterdescendants("table"), None) is not None and not _classes(table) & {"wikitable", "infobox"}:
            self.read(table)
            self.end_line()
            return
        for caption in table.iterchildren("caption"):
            self._add(_inner(caption))
        for row in table.iter("tr"):  # those of nested tables too
            cells = (_inner(cell) for cell in row.iterchildren("td", "th") if not _is_dropped(cell))
            self._add(" | ".join(cell for cell in cells if cell))
        self.spans[table] = first, len(self.lines)


def _classes(element: Any) -> set[str]:
    return set((element.get("class") or "").split())


def _is_dropped(element: Any) -> bool:
    if not isinstance(element.tag, str) or element.tag in ("script", "style"):  # a comment's tag is no string
        return True
    return bool(_classes(element) & _DROPPED or _HIDDEN.search(element.get("style") or ""))


def _inner(element: Any) -> str:
    """Return all text in an element on one line."""
    return " ".join("".join(_parts(element)).split())


def _parts(element: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if not _is_dropped(child):
            blank = " " if child.tag in _WORDS else ""
            yield blank
            yield from _parts(child)
            yield blank
        yield child.tail or ""
