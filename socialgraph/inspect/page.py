"""A page that can be kept, opened, or shown in a notebook."""

from __future__ import annotations

import html
import os
import webbrowser
from dataclasses import dataclass, field
from pathlib import Path

from socialgraph.data.files import atomic_write


@dataclass(frozen=True)
class Page:
    """An HTML page, as :func:`~socialgraph.inspect.report` writes it.

    Attributes:
        html: all of it.
    """

    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it to a file and return where that is."""
        with atomic_write(path) as file:
            file.write(self.html)
        return Path(path).resolve()

    def open(self, path: str | os.PathLike[str] = "page.html") -> None:
        """Write it to a file and open that in the browser."""
        webbrowser.open(self.save(path).as_uri())

    def _repr_html_(self) -> str:
        """Return it for a notebook: in a frame of its own, whose script reaches nothing outside of it."""
        source = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{source}" sandbox="allow-scripts" style="width:100%;height:720px;border:0"></iframe>'
