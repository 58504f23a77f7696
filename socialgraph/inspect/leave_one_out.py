"""What each circle is worth to a model: the document's score with it and without it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Batch
from tqdm import tqdm

from socialgraph.data.graph import DocumentGraph
from socialgraph.errors import InputError, OptionError
from socialgraph.nn.hub_ranker import evaluating
from socialgraph.nn.selection import select


def scores_without(model: torch.nn.Module, graph: DocumentGraph, batch_size: int = 8) -> tuple[float, Tensor]:
    """Return a document's score, and for each of its circles the score of the document without that circle.

    A circle that is left out is not read at all; the others keep their members and their leaders. A score that falls
    without a circle says that the model found something there. The whole document and its variants are scored side by
    side, with the model in evaluation mode.

    (Leaving parts of the input out to explain a score: Robnik-Šikonja and Kononenko, Explaining Classifications For
    Individual Instances, IEEE TKDE 2008. Here the part is a circle.)

    Args:
        model: makes of a batch of graphs a score each, ``[B]``, as :class:`socialgraph.nn.BertRanker` does.
        graph: one pair; of a batch, take ``batch[i]``. On the model's device.
        batch_size: variants that are scored at once.

    Returns:
        The score, and the score without each circle, passages too: ``[C]`` in the order of ``graph.leader_index``, on
        the CPU. Those of friend circles are ``without[~graph.passage_mask]``.

    Raises:
        InputError: a whole batch, or a graph without circles to leave out.
        OptionError: batch_size < 1.
    """
    if isinstance(graph, Batch):
        raise InputError(f"expected one document's graph, got a batch of {graph.num_graphs}: take batch[i]")
    if "circle_index" not in graph:
        raise InputError("this graph has no circles to leave out: build it with circles or passages")
    if batch_size < 1:
        raise OptionError(f"batch_size must be at least 1, got {batch_size}")
    # The first row keeps every circle, each other row all but one.
    keep = torch.ones(graph.num_circles + 1, graph.num_circles, dtype=torch.bool, device=graph.leader_index.device)
    keep[1:].fill_diagonal_(False)
    with evaluating(model):
        scores = [
            # `select` gives plain Data, which would not count circles on in a batch.
            model(Batch.from_data_list([DocumentGraph(**select(graph, row).to_dict()) for row in rows])).float().cpu()
            for rows in tqdm(torch.split(keep, batch_size), "leaving circles out", disable=None, leave=False)
        ]
    every = torch.cat(scores)
    return float(every[0]), every[1:]
