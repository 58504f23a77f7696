"""One page about one document: its text, its circles and each word's friends, as a single HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import re
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from socialgraph.data import Document, Tokens
from socialgraph.data.files import atomic_write
from socialgraph.data.graph import DocumentGraph
from socialgraph.edges.social import SocialEdges
from socialgraph.errors import InputError
from socialgraph.inspect.describe import MEANINGS, describe
from socialgraph.inspect.names import circle_names, query_nodes, query_pieces
from socialgraph.inspect.networkx import circle_numbers, circles_of, edges_inside, friendships, node_weights, one_graph
from socialgraph.inspect.patterns import pattern_shares
from socialgraph.nn.keyb import KeyB
from socialgraph.nn.whole_document import WholeDocument

#: the parts of the page's script, in their order
SCRIPTS = ("data", "view", "circles", "word", "reader")


@dataclass(frozen=True)
class View:
    """What a page shows of one partition.

    Attributes:
        graph: one pair, with its edges (``GraphBuilder(..., keep_edges=True)``); of a batch, take ``batch[i]``.
        name: of the partition; needed where a page shows two.
        score: the document's score, see :func:`~socialgraph.inspect.leave_one_out.scores_without`.
        without: the score without each circle, ``[C]`` in the order of ``graph.leader_index``; None: not known.
        statistics: names and numbers to show; by default those of :func:`~socialgraph.inspect.describe.describe`.
    """

    graph: DocumentGraph
    name: str = ""
    score: float | None = None
    without: Tensor | None = None
    statistics: Mapping[str, Any] | None = None


def report(
    views: DocumentGraph | View | Sequence[View],
    words: Sequence[str],
    query: str = "",
    edges: SocialEdges | None = None,
    query_words: Sequence[str] | None = None,
    evidence: tuple[int, int] | None = None,
    whole: tuple[int, int] | None = None,
    given: str | None = "together",
) -> str:
    """Return an HTML page about one document's social graph; write it to a file and open it in any browser.

    The page shows the text with its circles as coloured lines, marks leaders, and tells of every word who its friends
    are, with which probability, where in the document, and which pattern a tie is owed to (see
    :func:`~socialgraph.inspect.patterns.pattern_shares`).

    The page needs no network and no other file. The text of a document is hostile: words travel as JSON, stand on the
    page as text and nothing else, and a content security policy with the hashes of the page's own script and style
    lets no other run. Probabilities are rounded to multiples of 1/65535, shares to multiples of 1/255.

    Args:
        views: a graph, a view of one, or two views of the same pair under two partitions, to stand side by side; the
            friendships that are shown are those of the first.
        words: the word pieces, one for each node, as ``Tokens.words(graph.input_ids)`` gives them.
        query: the query's text.
        edges: what drew the graph: the page then says which pattern a tie is owed to.
        query_words: the query's word pieces, ``Tokens.words(graph.query_ids)``; by default the words of ``query``.
        evidence: the nodes where the answer stands, from and to before, where it is known; see
            :func:`~socialgraph.data.evidence.evidence_nodes`.
        whole: word pieces of the whole document, and of the whole query, of which only the first may have been read.
        given: what BERT reads of a circle: "together": query and circle as one sequence; "apart": the circle alone;
            None: not one sequence a circle, so the page does not show any.

    Raises:
        InputError: a whole batch, a number of words that is not the number of nodes, edges that were never drawn, or
            a number of scores ``without`` that is not the number of circles.
    """
    shown = [views] if isinstance(views, View) else [View(views)] if isinstance(views, Data) else list(views)
    pieces = one_graph(shown[0].graph, words)[1] or []
    asked = query_pieces(query) if query_words is None else list(query_words)
    first = shown[0].graph
    data = {
        "query": query,
        "query_id": str(first.query_id),
        "document_id": str(first.document_id),
        "words": pieces,
        "asked": asked,
        "given": given,
        "whole": whole,
        "evidence": evidence,
        "matches": query_nodes(pieces, asked),
        "weights": {
            name: [_number(value) for value in values.tolist()] for name, values in node_weights(first).items()
        },
        "edges": _edges(first, edges),
        "views": [_view(view, pieces, edges) for view in shown],
    }
    return page(data)


def _view(view: View, pieces: list[str], edges: SocialEdges | None) -> dict[str, Any]:
    """Return what the page tells of one partition."""
    graph, _ = one_graph(view.graph, pieces)
    circle_index, leader_index, passage_mask = circles_of(graph)
    amount = leader_index.numel()
    without = [math.nan] * amount if view.without is None else view.without.tolist()
    if len(without) != amount:
        raise InputError(f"expected a score without each of the {amount} circles of the graph, got {len(without)}")
    numbers = circle_numbers(passage_mask).tolist()
    members = [circle_index[0, circle_index[1] == circle].tolist() for circle in range(amount)]
    friends = (~passage_mask).nonzero().flatten().tolist()
    names = dict(zip(friends, circle_names(pieces, [members[circle] for circle in friends]), strict=True))
    ties = dict(zip(friends, map(len, edges_inside(graph, friendships(graph)[0])), strict=True))
    statistics = describe(view.graph, edges=edges) if view.statistics is None else view.statistics
    return {
        "name": view.name,
        "score": _number(view.score),
        "circles": [
            {
                "number": numbers[circle],
                "name": names.get(circle, ""),
                "passage": circle not in names,
                "leader": int(leader_index[circle]),
                "members": members[circle],
                "ties": ties.get(circle),
                "without": _number(without[circle]),
            }
            for circle in range(amount)
        ],
        "statistics": [
            [str(name).replace("_", " "), _shown(value), MEANINGS.get(name, "")] for name, value in statistics.items()
        ],
    }


def _edges(original: DocumentGraph, edges: SocialEdges | None) -> dict[str, Any]:
    """Return the friendships as the page reads them."""
    graph, _ = one_graph(original, None)
    ends, weight = friendships(graph)
    shares = {} if edges is None else pattern_shares(original, edges, ends.to(original.input_ids.device))
    size = int(graph.num_nodes or 0)
    # A weight is a probability, but there are edges with costs.
    step = max(1.0, float(weight.max()) if weight.numel() else 0.0) / 65535
    return {
        # of each node the number of friends after it in the text, then those friends, node by node
        "count": _base64(torch.bincount(ends[0], minlength=size), "<u4"),
        "friend": _base64(ends[1], "<u4" if size > 1 << 16 else "<u2"),
        "wide": size > 1 << 16,
        "weight": _base64((weight.double() / step).round(), "<u2"),
        "step": step,
        "shares": {name: _base64((share.cpu() * 255).round(), "u1") for name, share in shares.items()},
    }


def page(data: Mapping[str, Any]) -> str:
    """Return the page around the data: template, style and script in one, with the policy that allows no other."""
    template, style = _part("report.html"), _part("report.css")
    # one function around all parts of the script: what they define is seen by the others, and by nobody else
    script = '"use strict";\n(() => {\n' + "".join(_part(f"report_{name}.js") for name in SCRIPTS) + "})();\n"
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'"
    )
    parts = {"policy": policy, "style": style, "script": script, "data": embedded_json(data)}
    # One pass over the template alone: what is put in is never searched for more to fill.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def embedded_json(data: Any) -> str:
    """Return JSON that may stand inside a ``<script>``: ASCII, and without a character that HTML reads."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _part(name: str) -> str:
    return resources.files("socialgraph.inspect").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _base64(values: Tensor, kind: str) -> str:
    return base64.b64encode(values.numpy().astype(kind).tobytes()).decode()


def _number(value: float | None) -> float | None:
    # Enough digits for a page; JSON has no infinity.
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    if isinstance(value, float) and not math.isfinite(value):
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


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
