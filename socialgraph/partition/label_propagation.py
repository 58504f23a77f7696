"""Label propagation: everybody joins the community of most of its friends."""

from __future__ import annotations

import networkx as nx
import torch
from torch import Tensor

from socialgraph.partition.communities import Communities, disjoint
from socialgraph.partition.louvain import weighted_graph


class LabelPropagation(Communities):
    """Each node starts with a label of its own and takes the one most common among its friends, until all have it.

    Usha Nandini Raghavan, Réka Albert and Soundar Kumara, "Near linear time algorithm to detect community structures in
    large-scale networks", Physical Review E 76, 2007; in the form without random choices of Gennaro Cordasco and Luisa
    Gargano, "Community detection via semi-synchronous label propagation algorithms", BASNA 2010. Through networkx.

    Unlike friend circles, each word has one circle, and the number of communities is found, not asked for. Weights are
    not looked at. In graphs as dense as the paper's, one label usually wins everywhere: the document then has one
    circle, of the ``max_size`` words with most friends. That is what the method has to say.

    Args:
        k: number of circles of a document at most.
        max_size: members of a circle at most; see :class:`Communities`.

    Raises:
        OptionError: see :class:`Communities`.
    """

    def communities(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        """Return the communities; see :meth:`Communities.communities`."""
        graph = weighted_graph(edge_index, None, num_nodes)
        label = torch.empty(num_nodes, dtype=torch.long)
        for number, nodes in enumerate(nx.community.label_propagation_communities(graph)):
            label[list(nodes)] = number
        return disjoint(label)
