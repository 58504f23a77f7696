"""What a ranker makes of a query and a text, as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from socialgraph.data.graph import DocumentGraph
from socialgraph.data.texts import Text, as_document
from socialgraph.edges import SocialEdges
from socialgraph.inspect.leave_one_out import scores_without
from socialgraph.inspect.page import Page, page_of
from socialgraph.inspect.report import View
from socialgraph.partition import Partition
from socialgraph.partition.resolver import with_k

if TYPE_CHECKING:
    from socialgraph.ranker import Ranker


def explain(
    ranker: Ranker, query: str, text: Text, beside: str | type[Partition] | Partition | None,
    evidence: tuple[int, int] | None,
) -> Page:  # fmt: skip
    """Return the page; see :meth:`socialgraph.Ranker.explain`."""
    graphs = {_name(ranker.parts.circles): ranker.graph(query, text)}
    if beside is not None:
        other = with_k(beside, getattr(ranker.parts.circles, "k", None))  # as many circles where both have a k
        name = beside if isinstance(beside, str) else _name(other)
        graphs[name if name not in graphs else f"{name} (2)"] = ranker.graph(query, text, other)
    views = [_view(ranker, query, text, name if beside is not None else "", one) for name, one in graphs.items()]
    edges = ranker.parts.edges if isinstance(ranker.parts.edges, SocialEdges) else None
    return page_of(views, query, as_document(text)[1], ranker.tokens, ranker.model, edges, evidence)


def _view(ranker: Ranker, query: str, text: Text, name: str, graph: DocumentGraph) -> View:
    graph.document_id = getattr(text, "doc_id", "")  # what a text is called here tells nobody anything
    if "circle_index" in graph:
        score, without = scores_without(ranker.model, graph)
        return View(graph.cpu(), name, score, without)
    return View(graph.cpu(), name, float(ranker.predict([(query, text)])[0]))


def _name(circles: Partition | None) -> str:
    return type(circles).__name__.removesuffix("Circles").lower() if circles is not None else "passages"
