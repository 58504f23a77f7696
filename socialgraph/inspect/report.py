"""One page about one document: its text, its circles and each word's friends, as a single HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import torch
from torch import Tensor

from socialgraph.data.graph import DocumentGraph
from socialgraph.edges.layout import documents
from socialgraph.edges.social import SocialEdges
from socialgraph.errors import InputError
from socialgraph.inspect.describe import describe
from socialgraph.inspect.networkx import circles_of, friendships, meetings, node_weights, one_graph, pattern_parts
from socialgraph.query_match import query_match


def report(
    graph: DocumentGraph,
    words: Sequence[str],
    query: str = "",
    edges: SocialEdges | None = None,
    score: float | None = None,
    without: Mapping[int, float] | None = None,
    statistics: Mapping[str, Any] | None = None,
) -> str:
    r"""Return an HTML page about one document's social graph; write it to a file and open it in any browser.

    The page shows the text with its circles as coloured lines, marks leaders, and tells of every word who its friends
    are, with which probability, and where in the document. Of a tie between i and j the pattern x has the share

    .. math:: \lambda_x P_x(i, j) \, / \, \sum_y \lambda_y P_y(i, j)

    The page needs no network and no other file. The text of a document is hostile: words travel as JSON, stand on the
    page as text and nothing else, and a content security policy with the hashes of the page's own script and style
    lets no other run. Probabilities are rounded to multiples of 1/65535, shares to multiples of 1/255.

    Args:
        graph: one pair, with its edges (``GraphBuilder(..., keep_edges=True)``); of a batch, take ``batch[i]``.
        words: the word pieces, one for each node, as ``Tokens.words(graph.input_ids)`` gives them.
        query: the query's text.
        edges: what drew the graph: the page then says which pattern a tie is owed to.
        score: the document's score, see :func:`~socialgraph.inspect.leave_one_out.scores_without`.
        without: the score without a circle, by the circle's number in ``graph.circle_index``.
        statistics: names and numbers to show; by default those of :func:`~socialgraph.inspect.describe.describe`.

    Raises:
        InputError: a whole batch, a number of words that is not the number of nodes, edges that were never drawn, or
            ``without`` names a circle that the graph does not have.
    """
    original = graph
    graph, pieces = one_graph(graph, words)
    ends, weight = friendships(graph)
    circle_index, leader_index, passage_mask = circles_of(graph)
    unknown = sorted(set(without or {}) - set(range(leader_index.numel())))
    if unknown:
        raise InputError(f"scores name circle {unknown[0]}, but the graph has {leader_index.numel()} circles")
    ties = {number: inside.numel() for number, inside in meetings(graph, ends)}
    shares = {} if edges is None else pattern_shares(original, edges, ends.to(original.input_ids.device))
    size = int(graph.num_nodes or 0)
    # A weight is a probability, but there are edges with costs.
    step = max(1.0, float(weight.max()) if weight.numel() else 0.0) / 65535
    data = {
        "query": query,
        "query_id": str(graph.query_id),
        "document_id": str(graph.document_id),
        "words": pieces,
        "matches": query_match(graph, documents(graph)[0]).nonzero().flatten().tolist(),
        "weights": {
            name: [_number(value) for value in values.tolist()] for name, values in node_weights(graph).items()
        },
        "circles": [
            {
                "number": number,
                "passage": bool(passage_mask[number]),
                "leader": int(leader_index[number]),
                "members": circle_index[0, circle_index[1] == number].tolist(),
                "ties": ties.get(number),
                "without": _number((without or {}).get(number)),
            }
            for number in range(leader_index.numel())
        ],
        "edges": {
            # of each node the number of friends after it in the text, then those friends, node by node
            "count": _base64(torch.bincount(ends[0], minlength=size), "<u4"),
            "friend": _base64(ends[1], "<u4" if size > 1 << 16 else "<u2"),
            "wide": size > 1 << 16,
            "weight": _base64((weight.double() / step).round(), "<u2"),
            "step": step,
            "shares": {name: _base64((share * 255).round(), "u1") for name, share in shares.items()},
        },
        "score": _number(score),
        "statistics": _told(describe(original, edges=edges) if statistics is None else statistics),
    }
    return page(data)


def page(data: Mapping[str, Any]) -> str:
    """Return the page around the data: template, style and script in one, with the policy that allows no other."""
    template, style, script = (_part(f"report.{kind}") for kind in ("html", "css", "js"))
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'"
    )
    parts = {"policy": policy, "style": style, "script": script, "data": embedded_json(data)}
    # One pass over the template alone: what is put in is never searched for more to fill.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def embedded_json(data: Any) -> str:
    """Return JSON that may stand inside a ``<script>``: ASCII, and without a character that HTML reads."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text)


def pattern_shares(graph: DocumentGraph, edges: SocialEdges, ends: Tensor) -> dict[str, Tensor]:
    """Return each pattern's share in the probability of each pair, ``[F]`` in [0, 1] and on the CPU.

    Args:
        graph: one pair's graph, with what the patterns need.
        edges: whose patterns, with their weights lambda.
        ends: node ids of the pairs, lower first, ``[2, F]``.

    Returns:
        A share for each name, see :func:`report`; all 0 where every pattern abstains.
    """
    parts = pattern_parts(graph, edges, ends)
    total = parts.sum(0)
    shares = (parts / torch.where(total > 0, total, 1.0)).cpu()
    return dict(zip(edges.patterns, shares, strict=True))


def _part(name: str) -> str:
    return resources.files("socialgraph.inspect").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _base64(values: Tensor, kind: str) -> str:
    return base64.b64encode(values.numpy().astype(kind).tobytes()).decode()


def _number(value: float | None) -> float | None:
    # Enough digits for a page; JSON has no infinity.
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None


def _told(statistics: Mapping[str, Any]) -> list[list[str]]:
    return [[str(name).replace("_", " "), _shown(value)] for name, value in statistics.items()]


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    if isinstance(value, float) and not math.isfinite(value):
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
