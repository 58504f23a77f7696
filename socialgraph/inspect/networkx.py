"""A document's social graph for networkx, with names for everything that is known about a token."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import cumsum

from socialgraph.data.files import atomic_write
from socialgraph.data.graph import DocumentGraph
from socialgraph.edges.layout import documents
from socialgraph.edges.social import SocialEdges
from socialgraph.errors import InputError
from socialgraph.inspect.patterns import pattern_probabilities
from socialgraph.query_match import query_match

#: what XML 1.0 does not allow, not even as a reference: control characters, halves of a pair, two non-characters
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_networkx(graph: DocumentGraph, words: Sequence[str] | None = None, edges: SocialEdges | None = None) -> nx.Graph:
    """Return one document's social graph as an undirected ``networkx.Graph``.

    All values are plain Python ones, so that ``json.dumps(networkx.node_link_data(...))`` works. Friend circles are
    numbered from 0 in the order of ``graph.leader_index[~graph.passage_mask]``, and passages from 0 likewise.

    Nodes are the positions ``0 ... L - 1``, with the attributes

    * ``word``: the word piece, if ``words`` is given;
    * ``position``: the place in the document, which is the node itself;
    * every node weight of the graph under its name: ``tfidf``, ``dynamic_distance``, ...;
    * ``circles``: numbers of its friend circles, ascending;
    * ``leads``: numbers of the friend circles it leads;
    * ``passage``: number of its passage (the first one, should there be more), or None;
    * ``query_match``: whether the token is one of the query's.

    Edges are the friendships, with ``weight``, the probability the edge had, ``circles``, the numbers of the friend
    circles in which both ends meet, and, if ``edges`` is given,

    * ``p_NAME`` for each pattern: P(i, j) as that pattern sees it, see
      :func:`~socialgraph.inspect.pattern_probabilities`;
    * ``pattern``: the name of the pattern with the largest share in ``weight`` (largest lambda P(i, j); of equals the
      first), or None where every pattern abstains.

    The graph has ``query_id``, ``document_id``, ``num_circles`` (friend circles) and ``num_passages``.

    Args:
        graph: one pair; of a batch, take ``batch[i]``. Edges and circles may be missing.
        words: the word pieces, one for each node, as ``Tokens.words(graph.input_ids)`` gives them.
        edges: what drew the graph: the ``SocialEdges`` that its builder got, ``ranker.parts.edges`` of a ranker.

    Raises:
        InputError: a whole batch, a number of words that is not the number of nodes, or edges that were not kept.
    """
    original = graph
    graph, words = one_graph(graph, words)
    size = int(graph.num_nodes or 0)
    circle_index, leader_index, passage_mask = circles_of(graph)
    number = circle_numbers(passage_mask)
    node, circle = circle_index
    is_passage = passage_mask[circle]

    columns: dict[str, Sequence[Any]] = {} if words is None else {"word": words}
    columns["position"] = range(size)
    columns |= {name: weight.tolist() for name, weight in node_weights(graph).items()}
    columns["circles"] = _lists(node[~is_passage], number[circle[~is_passage]], size)
    columns["leads"] = _lists(leader_index[~passage_mask], number[~passage_mask], size)
    passages = _lists(node[is_passage], number[circle[is_passage]], size)
    columns["passage"] = [numbers[0] if numbers else None for numbers in passages]
    columns["query_match"] = query_match(graph, documents(graph)[0]).tolist()

    counts = {"num_circles": int((~passage_mask).sum()), "num_passages": int(passage_mask.sum())}
    result = nx.Graph(query_id=graph.query_id, document_id=graph.document_id, **counts)
    rows = zip(*columns.values(), strict=True)
    result.add_nodes_from((node, dict(zip(columns, row, strict=True))) for node, row in enumerate(rows))

    ends, weights = friendships(graph)
    met = edges_inside(graph, ends)
    inside = torch.cat([ends.new_empty(0), *met])
    circles = torch.repeat_interleave(torch.tensor([edges.numel() for edges in met], dtype=torch.long))
    qualities: dict[str, Sequence[Any]] = {"weight": weights.tolist()}
    qualities["circles"] = _lists(inside, circles, weights.numel())
    if edges is not None:
        pairs = ends.to(original.input_ids.device)
        probabilities = pattern_probabilities(original, edges, pairs)
        qualities |= {f"p_{name}": probability.tolist() for name, probability in probabilities.items()}
        parts = torch.stack([edges.weights[name] * probability for name, probability in probabilities.items()])
        names = [*probabilities, None]
        strongest = torch.where(parts.amax(0) > 0, parts.argmax(0), len(probabilities))
        qualities["pattern"] = [names[place] for place in strongest.tolist()]
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
        OutputError: the file cannot be written.
    """
    with atomic_write(path, "wb") as file:
        nx.write_graphml(_for_xml(to_networkx(graph, words, edges)), file)


def to_gexf(
    graph: DocumentGraph,
    path: str | os.PathLike[str],
    words: Sequence[str] | None = None,
    edges: SocialEdges | None = None,
) -> None:
    """Write the same as GEXF, Gephi's own format, which has no place for attributes of the whole graph.

    See :func:`to_graphml` for the arguments and errors.
    """
    with atomic_write(path, "wb") as file:
        nx.write_gexf(_for_xml(to_networkx(graph, words, edges)), file)


def _for_xml(result: nx.Graph) -> nx.Graph:
    """Return a graph whose attributes are text, numbers and truth values that XML can hold."""
    for attributes in (result.graph, *result.nodes.values(), *result.edges.values()):
        if "word" in attributes:
            attributes["label"] = attributes["word"]
        for name, value in list(attributes.items()):
            value = ",".join(map(str, value)) if isinstance(value, list) else value
            value = NOT_XML.sub("", value) if isinstance(value, str) else value
            attributes[name] = value
            if value is None or value == "":
                del attributes[name]
    return result


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
        InputError: the graph has friend circles, and its edges were not kept.
    """
    if "edge_index" not in graph:
        if not bool(circles_of(graph)[2].all()):
            raise InputError("the edges of this graph were not kept: build it with GraphBuilder(..., keep_edges=True)")
        return torch.empty(2, 0, dtype=torch.long), torch.empty(0)
    once = graph.edge_index[0] < graph.edge_index[1]
    return graph.edge_index[:, once], graph.edge_weight[once]


def circles_of(graph: DocumentGraph) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``circle_index``, ``leader_index`` and ``passage_mask``, empty where there are none."""
    if "circle_index" not in graph:
        none = torch.empty(0, dtype=torch.long)
        return none.new_empty(2, 0), none, none.bool()
    return graph.circle_index, graph.leader_index, graph.passage_mask


def circle_numbers(passage_mask: Tensor) -> Tensor:
    """Return the number of each circle among its kind, ``[C]``: friend circles and passages each count from 0."""
    return torch.where(passage_mask, passage_mask.cumsum(0), (~passage_mask).cumsum(0)) - 1


def edges_inside(graph: DocumentGraph, ends: Tensor) -> list[Tensor]:
    """Return for each friend circle which of the edges ``ends [2, F]`` lie between its members."""
    circle_index, _, passage_mask = circles_of(graph)
    found = []
    for circle in (~passage_mask).nonzero().flatten().tolist():
        member = torch.zeros(int(graph.num_nodes or 0), dtype=torch.bool)
        member[circle_index[0, circle_index[1] == circle]] = True
        found.append(member[ends].all(0).nonzero().flatten())
    return found


def _lists(key: Tensor, value: Tensor, size: int) -> list[list[int]]:
    # The values by key: one list, in their order, for each of the keys 0 ... size - 1.
    values = value[torch.argsort(key, stable=True)].tolist()
    ptr = cumsum(torch.bincount(key, minlength=size)).tolist()
    return [values[start:end] for start, end in pairwise(ptr)]
