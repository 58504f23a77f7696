"""One document's social graph in numbers: the network, its circles, and how news of the query travels in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from socialgraph.data.graph import DocumentGraph
from socialgraph.edges.layout import documents
from socialgraph.edges.social import SocialEdges
from socialgraph.inspect.networkx import circles_of, friendships, one_graph
from socialgraph.query_match import query_match

Array = NDArray[Any]

#: nodes from which paths are measured; of a longer document as many are drawn, always the same ones
SOURCES = 256
#: numbers that a block of rows may take at once
CELLS = 1 << 22

#: what each number of :func:`describe` means, with its unit
MEANINGS = {
    "nodes": "word pieces of the document that are read",
    "edges": "friendships: pairs of word pieces that know each other",
    "density": "friendships by pairs of word pieces, from 0 to 1",
    "degree_mean": "friends of a word piece, on average",
    "degree_sd": "friends of a word piece: standard deviation",
    "degree_max": "friends of the word piece that has most of them",
    "clustering": "share of the pairs of a word piece's friends that are friends, on average, from 0 to 1",
    "path_length": "hops on the shortest path from one word piece to another, on average",
    "unreachable": "share of pairs that no path joins, from 0 to 1",
    "random_path_length": "path length of a random network of the same density, in hops",
    "small_world": "clustering by that of a random network, over path length by its path length; small worlds exceed 1",
    "circles": "friend circles, passages not counted",
    "circle_size_mean": "word pieces of a friend circle, on average",
    "nodes_kept": "share of the word pieces that are in a friend circle, from 0 to 1",
    "edges_kept": "share of the friendships with both ends in one friend circle, from 0 to 1",
    "overlap": "friend circles of a word piece that is in any, on average",
    "reach_mean": "part of the document that ends with a circle's last member, on average, from 0 to 1",
    "reach_max": "part of the document that ends with the last member of all circles, from 0 to 1",
    "leaders_spread": "standard deviation of the leaders' places, in parts of the document; 0.29 if they stand evenly",
    "query_matches": "word pieces of the document that are word pieces of the query, stop words too",
    "query_kept": "share of the query's word pieces in the document that are in a friend circle, from 0 to 1",
    "query_by_circle": "share of the query's word pieces in the document that one friend circle holds, on average",
    "hops_to_query": "hops from a word piece to the nearest one of the query, on average",
    "heard_query": "share of the query's word pieces that a word piece has heard of after one block, on average",
    "readout": "share of word pieces that reach the score: those in any circle or passage, from 0 to 1",
    "friends_met": "share of its expected friends that a word piece meets in a friend circle, on average, from 0 to 1",
}


def describe(graph: DocumentGraph, edges: SocialEdges | None = None) -> dict[str, float]:
    r"""Return the statistics of one document's social graph, by the names of :data:`MEANINGS`, which explains each.

    What is not defined is NaN. Of the network (l nodes, edges without direction):

    * ``clustering`` C is the mean over nodes, 0 for a node with fewer than two friends (Watts and Strogatz, "Collective
      dynamics of 'small-world' networks", Nature, 1998). Exact.
    * ``path_length`` L leaves out the pairs that no path joins. Paths begin at every node; of a document of more than
      256 nodes at 256 of them, drawn without repetition and with a fixed seed.
    * ``small_world`` sigma = (C / C_rand) / (L / L_rand) (Humphries and Gurney, "Network 'small-world-ness'", PLoS ONE,
      2008): C_rand is the density, which is what to expect where every pair is an edge with that probability, and
      L_rand, ``random_path_length``, is measured on one such graph, drawn with a fixed seed.

    Of the query's words in the document: after one block of :class:`~socialgraph.nn.Socialformer` a node has heard of
    those that share a circle or passage with it, and the leader of a friend circle of all that are in any
    (``heard_query``). After two blocks every circle has heard of all.

    Given ``edges``, ``friends_met`` is, on average over the nodes that expect somebody,

    .. math:: \frac{\sum_{j \in circles(i)} \min(1, P_{ij} / \mu)}{\sum_{j \ne i} P_{ij} / \mu}

    whatever was drawn. (Where P / mu exceeds 1 the share is a bit low.)

    Args:
        graph: one pair; of a batch, take ``batch[i]``. Built with ``GraphBuilder(..., keep_edges=True)``.
        edges: what drew the graph: the ``SocialEdges`` that its builder got, ``ranker.parts.edges`` of a ranker.

    Raises:
        InputError: a whole batch, or a graph whose edges were never drawn.
    """
    expected = None if edges is None else edges.sampled(graph)
    graph, _ = one_graph(graph, None)
    size = int(graph.num_nodes or 0)
    ends = friendships(graph)[0].numpy()
    (node, circle), leader, is_passage = (part.numpy() for part in circles_of(graph))
    friend = _symmetric(ends, size)
    member = csr_array((np.ones(len(node), dtype=np.float32), (node, circle)), shape=(size, len(leader)))
    circles, match = member[:, ~is_passage], query_match(graph, documents(graph)[0]).numpy()
    result = network(friend) | _circles(friend, circles, leader[~is_passage])
    result |= _query(friend, member, circles, leader[~is_passage], match)
    result["readout"] = _ratio((member.sum(1) > 0).sum(), size)
    if expected is not None:
        node, other = _pairs_in_circles(circles)
        place = expected.ptr.new_tensor(np.stack([node, other]))
        met = np.bincount(node, expected.weight(*place).double().cpu().numpy(), minlength=size)
        total = expected.expected.cpu().numpy()
        result["friends_met"] = _mean(met[total > 0] / total[total > 0])
    return result


def network(friend: csr_array) -> dict[str, float]:
    """Return the statistics of a network; see :func:`describe`.

    Args:
        friend: the symmetric adjacency matrix, ``[l, l]``, of ones, without diagonal.
    """
    size = friend.shape[0]
    degree = friend.sum(1, dtype=np.float64)
    density = _ratio(degree.sum(), size * (size - 1))
    clustering = _mean(clustering_of(friend))
    path_length, unreachable = path_length_of(friend)
    random, _ = path_length_of(random_network(size, density))
    return {
        "nodes": float(size),
        "edges": float(degree.sum() / 2),
        "density": density,
        "degree_mean": _mean(degree),
        "degree_sd": float(degree.std()) if size else math.nan,
        "degree_max": float(degree.max()) if size else math.nan,
        "clustering": clustering,
        "path_length": path_length,
        "unreachable": unreachable,
        "random_path_length": random,
        "small_world": _ratio(_ratio(clustering, density), _ratio(path_length, random)),
    }


def clustering_of(friend: csr_array) -> Array:
    """Return each node's clustering coefficient, ``[l]``; see :func:`describe`."""
    degree = friend.sum(1, dtype=np.float64)
    triangles = [np.zeros(0)]
    rows = max(1, CELLS // max(1, friend.shape[0]))
    for first in range(0, friend.shape[0], rows):
        part = friend[first : first + rows]
        triangles.append((part @ friend).multiply(part).sum(1))  # each of a node's triangles twice
    return np.concatenate(triangles) / np.maximum(degree * (degree - 1), 1)


def path_length_of(friend: csr_array) -> tuple[float, float]:
    """Return the mean shortest path and the share of pairs without one; see :func:`describe`."""
    size = friend.shape[0]
    sources = np.arange(size)
    if size > SOURCES:
        sources = np.random.default_rng(0).choice(size, SOURCES, replace=False)
    reached = [len(new) for new in _hops(friend, [[node] for node in sources])]  # pairs at 0, 1, 2, ... hops
    pairs = len(sources) * (size - 1)
    return _ratio(np.dot(np.arange(len(reached)), reached), sum(reached[1:])), _ratio(pairs - sum(reached[1:]), pairs)


def random_network(size: int, density: float) -> csr_array:
    """Return a network whose pairs are edges with probability ``density`` each, always the same one.

    Gaps between edges are drawn, not each pair (Batagelj and Brandes, "Efficient generation of large random networks",
    Physical Review E, 2005).
    """
    pairs = size * (size - 1) // 2
    if pairs == 0 or density == 0:
        return _symmetric(np.zeros((2, 0), dtype=np.int64), size)
    amount = int(pairs * density + 9 * math.sqrt(pairs * density) + 9)  # too few with a chance below 1e-15
    pair = np.cumsum(np.random.default_rng(0).geometric(density, amount)) - 1
    pair = pair[pair < pairs]
    # pair j (j - 1) / 2 + i is (i, j) with i < j
    high = ((1 + np.sqrt(1 + 8 * pair)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > pair
    return _symmetric(np.stack([pair - high * (high - 1) // 2, high]), size)


def _hops(friend: csr_array, starts: Iterable[Any]) -> Iterator[Array]:
    # Breadth-first searches side by side, one for each group of start nodes. Yields the (node, search) numbers
    # found after 0, 1, 2, ... hops.
    groups = [np.asarray(start, dtype=np.int64) for start in starts]
    reached = np.zeros((friend.shape[0], len(groups)), dtype=bool)
    for search, group in enumerate(groups):
        reached[group, search] = True
    new = reached.copy()
    while new.any():
        yield np.flatnonzero(new)
        new = (friend @ new.astype(np.float32) > 0) & ~reached
        reached |= new


def _symmetric(ends: Array, size: int) -> csr_array:
    both = np.concatenate([ends, ends[::-1]], 1)
    friend = csr_array((np.ones(both.shape[1], dtype=np.float32), (both[0], both[1])), shape=(size, size))
    friend.sum_duplicates()
    friend.data[:] = 1.0
    return friend


def _pairs_in_circles(member: csr_array) -> tuple[Array, Array]:
    # Every ordered pair of nodes that share a circle, once. Circles, not pairs, are walked.
    size, by_circle = max(member.shape[0], 1), member.tocsc()
    keys = [np.zeros(0, dtype=np.int64)]
    for circle in np.split(by_circle.indices.astype(np.int64), by_circle.indptr[1:-1]):
        keys.append((circle[:, None] * size + circle)[circle[:, None] != circle])
    key = np.unique(np.concatenate(keys))
    return key // size, key % size


def _circles(friend: csr_array, member: csr_array, leader: Array) -> dict[str, float]:
    size, amount = member.shape
    of_node, of_circle = member.sum(1), member.sum(0)
    node, other = friend.nonzero()
    together = member[node].multiply(member[other]).sum(1) > 0
    last = np.zeros(amount)
    place, circle = member.nonzero()
    np.maximum.at(last, circle, place + 1.0)
    return {
        "circles": float(amount),
        "circle_size_mean": _mean(of_circle),
        "nodes_kept": _ratio((of_node > 0).sum(), size),
        "edges_kept": _ratio(together.sum(), len(node)),
        "overlap": _ratio(of_node.sum(), (of_node > 0).sum()),
        "reach_mean": _mean(last / max(size, 1)),
        "reach_max": float(last.max() / size) if amount else math.nan,
        "leaders_spread": float(leader.std() / size) if amount else math.nan,
    }


def _query(friend: csr_array, member: csr_array, circles: csr_array, leader: Array, match: Array) -> dict[str, float]:
    amount = int(match.sum())
    held = circles[match]
    reached = [len(new) for new in _hops(friend, [np.flatnonzero(match)])]
    heard = ((member @ member[match].T) > 0).sum(1)
    heard[leader] = (member[match].sum(1) > 0).sum()
    return {
        "query_matches": float(amount),
        "query_kept": _ratio((held.sum(1) > 0).sum(), amount),
        "query_by_circle": _mean(held.sum(0) / amount) if amount else math.nan,
        "hops_to_query": _ratio(np.dot(np.arange(len(reached)), reached), sum(reached[1:])),
        "heard_query": _mean(heard / amount) if amount else math.nan,
    }


def _mean(values: Array) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else math.nan
