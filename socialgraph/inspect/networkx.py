"""A document's social graph for networkx, with names for everything that is known about a token."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import cumsum

from socialgraph.data.files import atomic_write
from socialgraph.data.graph import DocumentGraph
from socialgraph.edges.layout import documents
from socialgraph.edges.pattern import Pattern
from socialgraph.edges.social import SocialEdges
from socialgraph.errors import InputError
from socialgraph.query_match import query_match

#: what XML 1.0 does not allow, not even as a reference: control characters, halves of a pair, two non-characters
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_networkx(graph: DocumentGraph, words: Sequence[str] | None = None, edges: SocialEdges | None = None) -> nx.Graph:
    """Return one document's social graph as an undirected ``networkx.Graph``.

    All values are plain Python ones, so that ``json.dumps(networkx.node_link_data(...))`` works. Circles keep
    the numbers they have in ``graph.circle_index``, where passages count too.

    Nodes are the positions ``0 ... L - 1``, with the attributes

    * ``word``: the word piece, if ``words`` is given;
    * ``position``: the place in the document, which is the node itself;
    * every node weight of the graph under its name: ``tfidf``, ``dynamic_distance``, ...;
    * ``circles``: numbers of its friend circles, ascending;
    * ``leads``: numbers of the friend circles it leads;
    * ``passage``: number of its passage (the first one, should there be more), or None;
    * ``query_match``: whether the token is one of the query's.

    Edges are the friendships, with ``weight``, the probability the edge had, ``circles``, the numbers of the friend
    circles in which both ends meet, and, if ``edges`` is given, ``pattern``, the name of the pattern that most explains
    the edge (see :func:`strongest_patterns`), or None where every pattern abstains.

    The graph has ``query_id``, ``document_id`` and ``num_circles``.

    Args:
        graph: one pair; of a batch, take ``batch[i]``. Edges and circles may be missing.
        words: the word pieces, one for each node, as ``Tokens.words(graph.input_ids)`` gives them.
        edges: what drew the graph.

    Raises:
        InputError: a whole batch, or a number of words that is not the number of nodes.
    """
    original = graph
    graph, words = one_graph(graph, words)
    size = int(graph.num_nodes or 0)
    circle_index, leader_index, passage_mask = circles_of(graph)
    is_passage = passage_mask[circle_index[1]]
    passage: list[int | None] = [None] * size
    for node, number in reversed(list(zip(*circle_index[:, is_passage].tolist(), strict=True))):
        passage[node] = number
    leads = (~passage_mask).nonzero().flatten()

    columns: dict[str, Sequence[Any]] = {} if words is None else {"word": words}
    columns["position"] = range(size)
    columns |= {name: weight.tolist() for name, weight in node_weights(graph).items()}
    columns["circles"] = _lists(circle_index[0, ~is_passage], circle_index[1, ~is_passage], size)
    columns["leads"] = _lists(leader_index[leads], leads, size)
    columns["passage"] = passage
    columns["query_match"] = query_match(graph, documents(graph)[0]).tolist()

    result = nx.Graph(query_id=graph.query_id, document_id=graph.document_id, num_circles=graph.num_circles)
    rows = zip(*columns.values(), strict=True)
    result.add_nodes_from((node, dict(zip(columns, row, strict=True))) for node, row in enumerate(rows))

    ends, weights = friendships(graph)
    met = list(meetings(graph, ends))
    none = [torch.empty(0, dtype=torch.long)]
    inside = torch.cat(none + [edges for _, edges in met])
    number = torch.cat(none + [torch.full_like(edges, number) for number, edges in met])
    circles = _lists(inside, number, weights.numel())
    qualities: dict[str, Sequence[Any]] = {"weight": weights.tolist(), "circles": circles}
    if edges is not None:
        names = [*edges.patterns, None]  # place -1 is None
        strongest = strongest_patterns(original, edges, ends.to(original.input_ids.device))
        qualities["pattern"] = [names[number] for number in strongest.tolist()]
    values = zip(*qualities.values(), strict=True)
    attributes = (dict(zip(qualities, value, strict=True)) for value in values)
    result.add_edges_from(zip(*ends.tolist(), attributes, strict=True))
    return result


def to_graphml(
    graph: DocumentGraph,
    path: str | os.PathLike[str],
    words: Sequence[str] | None = None,
    edges: SocialEdges | None = None,
) -> None:
    """Write one document's social graph as GraphML, which Gephi, Cytoscape and yEd open.

    The attributes are those of :func:`to_networkx`, with what the format asks for: lists become text with commas
    (circles 5 and 7 are ``5,7``), None and empty lists are left out, and characters that XML forbids are taken out of
    words and ids. A node's word is also its ``label``, which is what Gephi shows. The file appears whole or not at all.

    Args:
        graph: see :func:`to_networkx`, as the rest.
        path: of the file.
        words: word pieces.
        edges: what drew the graph.

    Raises:
        InputError: see :func:`to_networkx`.
    """
    result = to_networkx(graph, words, edges)
    for attributes in (result.graph, *result.nodes.values(), *result.edges.values()):
        if "word" in attributes:
            attributes["label"] = attributes["word"]
        for name, value in list(attributes.items()):
            value = ",".join(map(str, value)) if isinstance(value, list) else value
            value = NOT_XML.sub("", value) if isinstance(value, str) else value
            attributes[name] = value
            if value is None or value == "":
                del attributes[name]
    with atomic_write(path, "wb") as file:
        nx.write_graphml(result, file)


@torch.no_grad()
def pattern_parts(graph: DocumentGraph, edges: SocialEdges, ends: Tensor) -> Tensor:
    """Return what each pattern adds to each pair, lambda_x P_x(i, j): ``[patterns, F]``, in the order of ``edges``.

    Args:
        graph: one pair's graph, with what the patterns need.
        edges: whose patterns, with their weights lambda.
        ends: node ids of the pairs, ``[2, F]``.
    """
    lowest, highest = ends.amin(0), ends.amax(0)
    parts = [
        edges.weights[name] * cast(Pattern, pattern)(graph).pair(lowest, highest)
        for name, pattern in edges.patterns.items()
    ]
    return torch.stack(parts).clamp(min=0.0)


def strongest_patterns(graph: DocumentGraph, edges: SocialEdges, ends: Tensor) -> Tensor:
    """Return which pattern most explains each pair: that of largest lambda_x P_x(i, j); of equals, the first.

    Args:
        graph: see :func:`pattern_parts`, as the rest.
        edges: whose patterns.
        ends: node ids of the pairs.

    Returns:
        Places in ``edges.patterns``, ``[F]``; -1 where all patterns are 0.
    """
    part = pattern_parts(graph, edges, ends)
    return torch.where(part.amax(0) > 0, part.argmax(0), -1)


def one_graph(graph: DocumentGraph, words: Sequence[str] | None) -> tuple[DocumentGraph, list[str] | None]:
    """Return the graph on the CPU and its words as a list; refuse a batch, and words that do not fit.

    Raises:
        InputError: see :func:`to_networkx`.
    """
    if isinstance(graph, Batch):
        raise InputError(f"expected one document's graph, got a batch of {graph.num_graphs}: take batch[i]")
    size = int(graph.num_nodes or 0)
    if words is not None and len(words) != size:
        pair = f"query {graph.query_id!r}, document {graph.document_id!r}"
        raise InputError(f"{pair}: expected a word for each of its {size} nodes, got {len(words)}")
    return copy.copy(graph).cpu(), None if words is None else list(words)


def node_weights(graph: DocumentGraph) -> dict[str, Tensor]:
    """Return what patterns know of each token, ``[L]`` each: ``tfidf`` and the weights of every pattern."""
    return {
        key: value
        for key, value in graph.to_dict().items()
        if isinstance(value, Tensor) and value.is_floating_point() and "edge" not in key
        if value.size() == (graph.num_nodes,)
    }


def friendships(graph: DocumentGraph) -> tuple[Tensor, Tensor]:
    """Return each edge once, lower end first: ``[2, E / 2]``, and the probabilities they had, ``[E / 2]``.

    Raises:
        InputError: friend circles were gathered without drawing the graph.
    """
    if "edge_index" not in graph:
        if not bool(circles_of(graph)[2].all()):
            raise InputError("the edges of this graph were not kept: build it with GraphBuilder(..., keep_edges=True)")
        return torch.empty(2, 0, dtype=torch.long), torch.empty(0)
    once = graph.edge_index[0] < graph.edge_index[1]
    return graph.edge_index[:, once], graph.edge_weight[once]


def circles_of(graph: DocumentGraph) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``circle_index``, ``leader_index`` and ``passage_mask``, empty where nobody has gathered."""
    if "circle_index" not in graph:
        none = torch.empty(0, dtype=torch.long)
        return none.new_empty(2, 0), none, none.bool()
    return graph.circle_index, graph.leader_index, graph.passage_mask


def meetings(graph: DocumentGraph, ends: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield each friend circle's number, and which of the edges ``ends [2, F]`` lie between its members."""
    circle_index, _, passage_mask = circles_of(graph)
    for number in (~passage_mask).nonzero().flatten().tolist():
        member = torch.zeros(int(graph.num_nodes or 0), dtype=torch.bool)
        member[circle_index[0, circle_index[1] == number]] = True
        yield number, member[ends].all(0).nonzero().flatten()


def _lists(key: Tensor, value: Tensor, size: int) -> list[list[int]]:
    # The values by key: one list, in their order, for each of the keys 0 ... size - 1.
    values = value[torch.argsort(key, stable=True)].tolist()
    ptr = cumsum(torch.bincount(key, minlength=size)).tolist()
    return [values[start:end] for start, end in pairwise(ptr)]
