"""A page about a pair, which can be kept, opened, or shown in a notebook."""

from __future__ import annotations

import html
import os
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch.nn import Module

from socialgraph.data import Document, Tokens
from socialgraph.data.files import atomic_write
from socialgraph.edges import SocialEdges
from socialgraph.inspect.report import View, report
from socialgraph.nn.keyb import KeyB
from socialgraph.nn.whole_document import WholeDocument


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


def page_of(
    views: Sequence[View], query: str, document: Document, tokens: Tokens, model: Module | None,
    edges: SocialEdges | None, evidence: tuple[int, int] | None,
) -> Page:  # fmt: skip
    """Return the page of a query and a document, with what is read of them.

    Args:
        views: of the pair, see :func:`~socialgraph.inspect.report`, as the rest.
        query: its text.
        document: all of it, however much is read.
        tokens: what made the word pieces.
        model: which ranks the pair; None: none does.
        edges: what drew the graph.
        evidence: the nodes where the answer stands.
    """
    graph = views[0].graph
    words, asked = tokens.words(graph.input_ids), tokens.words(graph.query_ids)
    whole = tokens.whole_length(document.full_text), tokens.whole_length(query)
    return Page(report(views, words, query, edges, asked, evidence, whole, _given(model)))


def _given(model: Module | None) -> str | None:
    """Return what a model reads of a circle: KeyB joins circles, and an encoder of whole documents reads none."""
    if isinstance(model, KeyB | WholeDocument):
        return None
    return "apart" if getattr(model, "segments", 2) == 1 else "together"
