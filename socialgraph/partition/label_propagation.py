"""Label propagation: everybody joins the community of most of its friends."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from socialgraph.partition.communities import Communities, disjoint, friends_of


class LabelPropagation(Communities):
    """Each node starts with a label of its own and takes the one most common among its friends, until all have it.

    Usha Nandini Raghavan, Réka Albert and Soundar Kumara, "Near linear time algorithm to detect community structures in
    large-scale networks", Physical Review E 76, 2007; in the form without random choices of Gennaro Cordasco and Luisa
    Gargano, "Community detection via semi-synchronous label propagation algorithms", BASNA 2010: nodes are coloured so
    that friends differ, those of a colour choose at the same time, and of labels equally common a node keeps its own,
    or takes the highest. The same communities as networkx's ``label_propagation_communities``.

    Unlike friend circles, each word has one circle, and the number of communities is found, not asked for. Weights are
    not looked at. In graphs as dense as the paper's, one label usually wins everywhere: the document then has one
    circle, of the ``max_size`` words with most friends. That is what the method has to say.

    Colouring is a loop over the words in Python.

    Args:
        k: number of circles of a document at most.
        max_size: members of a circle at most; see :class:`Communities`.

    Raises:
        OptionError: see :class:`Communities`.
    """

    def communities(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        """Return the communities; see :meth:`Communities.communities`."""
        row, column = edge_index.numpy()
        colour = greedy_colours(row, column, num_nodes)
        order = np.argsort(colour[row], kind="stable")
        bounds = np.searchsorted(colour[row[order]], np.arange(colour.max() + 2))
        turns = [(row[order[a:b]], column[order[a:b]]) for a, b in pairwise(bounds.tolist())]
        label = np.arange(num_nodes)
        while (most_common(row, column, label)[1] != label).any():
            for one, other in turns:
                node, chosen = most_common(one, other, label)
                label[node] = chosen
        return disjoint(torch.from_numpy(label))


def greedy_colours(row: np.ndarray, column: np.ndarray, num_nodes: int) -> np.ndarray:
    """Return a colour for each node, ``[n]``: the lowest that no friend has yet, those with most friends first.

    Args:
        row: one end of each edge in both directions, sorted, ``[E]``.
        column: the other end.
        num_nodes: number of nodes.
    """
    degree, friends = friends_of(row, column, num_nodes)
    colour = np.full(num_nodes, -1)
    taken = np.zeros(degree.max() + 2, dtype=bool)  # the last place is that of friends without a colour
    for node in np.argsort(-degree, kind="stable").tolist():
        seen = colour[friends[node]]
        taken[seen] = True
        colour[node] = taken.argmin()
        taken[seen] = False
    return colour


def most_common(row: np.ndarray, column: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return some nodes and the label that each would have, as most of its friends have it.

    Of labels equally common a node keeps its own, or else takes the highest.

    Args:
        row: the nodes, each as often as it has friends, sorted, ``[E]``.
        column: their friends.
        label: of each node of the graph, ``[n]``.
    """
    size = label.size
    pair, times = np.unique(row * size + label[column], return_counts=True)
    first = np.flatnonzero(np.diff(pair // size, prepend=-1))
    best = times == np.repeat(np.maximum.reduceat(times, first), np.diff(first, append=pair.size))
    pair = pair[best]  # sorted: the last of each node is its highest label
    node = pair // size
    last = np.flatnonzero(np.diff(node, append=size))
    node, highest = node[last], pair[last] % size
    own = node * size + label[node]
    place = np.searchsorted(pair, own)
    keeps = pair[np.minimum(place, pair.size - 1)] == own
    return node, np.where(keeps, label[node], highest)
