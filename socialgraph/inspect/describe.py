"""One document's social graph in numbers: the network, its circles, and how news of the query travels in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tqdm import tqdm

from socialgraph.data.graph import DocumentGraph
from socialgraph.edges.layout import documents
from socialgraph.edges.social import SocialEdges
from socialgraph.errors import OptionError
from socialgraph.inspect.networkx import circles_of, friendships, one_graph
from socialgraph.query_match import query_match

if TYPE_CHECKING:
    import pandas

Array = NDArray[Any]

#: nodes from which paths are measured; of a longer document as many are drawn, always the same ones
SOURCES = 256
#: numbers that a block of rows may take at once
CELLS = 1 << 22


def describe(graph: DocumentGraph, blocks: int = 3, edges: SocialEdges | None = None) -> dict[str, float]:
    r"""Return the statistics of one document's social graph, by name. What is not defined is NaN.

    The network (l nodes, edges without direction):

    * ``nodes``, ``edges``, ``density``: edges by pairs; ``degree_mean``, ``degree_sd`` (of the population) and
      ``degree_max``.
    * ``clustering`` C: mean over nodes of the share of pairs of their friends that are friends, 0 for a node with
      fewer than two (Watts and Strogatz, "Collective dynamics of 'small-world' networks", Nature, 1998). Exact.
    * ``path_length`` L: mean number of hops on the shortest path from one node to another, and ``unreachable``: share
      of the pairs that no path joins, which L leaves out. Paths begin at every node; of a document of more than
      256 nodes at 256 of them, drawn without repetition and with a fixed seed.
    * ``small_world`` sigma = (C / C_rand) / (L / L_rand) (Humphries and Gurney, "Network 'small-world-ness'", PLoS ONE,
      2008): C_rand is the density, which is what to expect where every pair is an edge with that probability, L_rand
      is measured on one such graph, drawn with a fixed seed. ``random_path_length`` is L_rand.

    The circles (friend circles; passages are not counted here):

    * ``circles``, ``circle_size_mean``.
    * ``nodes_kept``, ``edges_kept``: share of nodes in a circle, and of edges with both ends in one circle.
    * ``overlap``: circles of a node that is in one, on average.
    * ``reach_mean``, ``reach_max``: how far into the document circles reach: the part of it that ends with a circle's
      last member.
    * ``leaders_spread``: deviation of the leaders' places, in parts of the document; 0.29 if they stand evenly.

    The query's words, the nodes that are one of its tokens (not the answer's; everything is NaN where there is none):

    * ``query_matches``: how many there are; ``query_kept``: share of them in a friend circle (compare ``nodes_kept``);
      ``query_by_circle``: share of them in one friend circle, on average.
    * ``hops_to_query``: mean number of hops along edges from a node to the nearest of them, where there is a path.
    * ``met_query_n``: share of nodes that have heard of any of them after block n, and ``heard_query_n``: share
      of them that a node has heard of, on average over all nodes, for n = 1 ... ``blocks``.

    News travels as in :class:`~socialgraph.nn.Socialformer`. In a block, whoever shares a circle or passage hears all
    that its members know; then the leaders of all circles and passages hear all that any of them knows, and tell their
    circle in the next block. A node knows what any of its states knows, a node in no circle and no passage knows
    nothing. So block 1 is about circles, and from block 2 on everybody knows all that circles and passages hold:
    only ``..._1`` can tell patterns and partitions apart. The query itself is read along in every circle, in no hop.

    * ``readout``: share of nodes that the readout hears of, which is those in any circle or passage, after any number
      of blocks, with or without the leaders' talk.

    Given ``edges``:

    * ``friends_met``: share of a node's expected friends that it meets in a friend circle, on average over nodes,

      .. math:: \frac{1}{l} \sum_i \frac{\sum_{j \in circles(i)} \min(1, P_{ij} / \mu)}{\sum_{j \ne i} P_{ij} / \mu}

      whatever the coins said. (Nodes that expect nobody are left out. Where P / mu exceeds 1 the share is a bit low.)

    At the paper's density of 0.07 every two nodes are one or two hops apart, and path lengths are those of random
    edges. What tells patterns apart is ``edges_kept`` beside ``nodes_kept``, ``friends_met``, ``query_kept`` and
    ``heard_query_1``: compare with the same document under :class:`~socialgraph.edges.Uniform`.

    Args:
        graph: one pair; of a batch, take ``batch[i]``. Built with ``GraphBuilder(..., keep_edges=True)``.
        blocks: up to which block news is followed.
        edges: what drew the graph.

    Raises:
        InputError: a whole batch, or a graph whose edges were never drawn.
        OptionError: blocks < 1.
    """
    if blocks < 1:
        raise OptionError(f"blocks must be at least 1, got {blocks}")
    expected = None if edges is None else edges.sampled(graph)
    graph, _ = one_graph(graph, None)
    friend, member, leader, is_passage, match = _matrices(graph)
    circles = member[:, ~is_passage]
    result = network(friend) | _circles(friend, circles, leader[~is_passage])
    result |= _query(friend, member, leader, is_passage, match, blocks)
    result["readout"] = _ratio((member.sum(1) > 0).sum(), len(match))
    if expected is not None:
        node, other = _meetings(circles)
        place = expected.ptr.new_tensor(np.stack([node, other]))
        met = np.bincount(node, expected.weight(*place).double().cpu().numpy(), minlength=len(match))
        total = expected.expected.cpu().numpy()
        result["friends_met"] = _mean(met[total > 0] / total[total > 0])
    return result


def describe_all(
    graphs: Iterable[DocumentGraph], blocks: int = 3, edges: SocialEdges | None = None
) -> pandas.DataFrame:
    """Return the statistics of many documents: a row for each, named by query and document.

    ``describe_all(batch.to_data_list()).median()`` is what a collection looks like.

    Args:
        graphs: single pairs.
        blocks: see :func:`describe`, as the rest.
        edges: what drew the graphs.

    Raises:
        InputError: see :func:`describe`.
        OptionError: see :func:`describe`, or pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise OptionError("describe_all needs pandas: pip install 'socialgraph-ir[inspect]'") from None
    names, rows = [], []
    for graph in tqdm(graphs, "describing", unit="graph", disable=None, leave=False):
        rows.append(describe(graph, blocks, edges))
        names.append((graph.query_id, graph.document_id))
    index = pandas.MultiIndex.from_tuples(names, names=["query", "document"])
    return pandas.DataFrame(rows, index=index)


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

    Gaps between edges are drawn, not coins (Batagelj and Brandes, "Efficient generation of large random networks",
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


def _matrices(graph: DocumentGraph) -> tuple[csr_array, csr_array, Array, Array, Array]:
    # Who is whose friend [l, l] and in which circle or passage [l, C], sparse; the leaders and which are passages
    # [C]; which nodes are the query's words [l].
    friendships(graph)  # refuses a graph that was never drawn
    size = int(graph.num_nodes or 0)
    ends = graph.edge_index.numpy() if "edge_index" in graph else np.zeros((2, 0), dtype=np.int64)
    (node, circle), leader, is_passage = (part.numpy() for part in circles_of(graph))
    member = csr_array((np.ones(len(node), dtype=np.float32), (node, circle)), shape=(size, len(leader)))
    return _symmetric(ends, size), member, leader, is_passage, query_match(graph, documents(graph)[0]).numpy()


def _symmetric(ends: Array, size: int) -> csr_array:
    both = np.concatenate([ends, ends[::-1]], 1)
    friend = csr_array((np.ones(both.shape[1], dtype=np.float32), (both[0], both[1])), shape=(size, size))
    friend.sum_duplicates()
    friend.data[:] = 1.0
    return friend


def _meetings(member: csr_array) -> tuple[Array, Array]:
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


def _query(
    friend: csr_array, member: csr_array, leader: Array, is_passage: Array, match: Array, blocks: int
) -> dict[str, float]:
    size, amount = len(match), int(match.sum())
    circles = member[:, ~is_passage]
    result = {"query_matches": float(amount)}
    held = circles[match]
    result["query_kept"] = _ratio((held.sum(1) > 0).sum(), amount)
    result["query_by_circle"] = _mean(held.sum(0) / amount) if amount else math.nan
    reached = [len(new) for new in _hops(friend, [np.flatnonzero(match)])]
    result["hops_to_query"] = _ratio(np.dot(np.arange(len(reached)), reached), sum(reached[1:]))
    known = member[match].toarray().T  # [C, matches]: what the members of each circle know
    rows = max(1, CELLS // max(1, amount))
    for block in range(1, blocks + 1):
        parts = [member[first : first + rows] @ known for first in range(0, size, rows)]
        heard = np.concatenate([np.zeros(0), *((part > 0).sum(1) for part in parts)])
        everything = known.max(0, initial=0)
        heard[leader[~is_passage]] = everything.sum()
        known = np.broadcast_to(everything, known.shape)  # the leaders tell it in the next block
        result[f"met_query_{block}"] = _mean(heard > 0) if amount else math.nan
        result[f"heard_query_{block}"] = _mean(heard / amount) if amount else math.nan
    return result


def _mean(values: Array) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else math.nan
