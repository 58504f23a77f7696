"""The graph that is expected: the pairs of highest probability, and nothing drawn."""

from __future__ import annotations

import torch
from torch import Tensor

from socialgraph.edges.affinity import Affinity
from socialgraph.edges.draws import HASH_RANGE, constant_key

#: pairs of a document that are looked at to find its threshold
SAMPLE = 1 << 16
#: two numbers whose multiples spread evenly over the unit square (Martin Roberts, "The Unreasonable Effectiveness of
#: Quasirandom Sequences", 2018)
SPREAD = (0.7548776662466927, 0.5698402909980532)


def expected_keys(probability: Affinity, density: float, key: Tensor) -> Tensor:
    """Return keys under which the pairs of highest probability are the edges: the share ``density`` of all.

    Every pair of a document has the same hash then, a threshold: a quantile of a sample of its pairs. To count all of
    them would cost more than the circles; so the number of edges is the wanted one within some 2 %. Of pairs of equal
    probability all are edges or none. Where the highest probability alone has too many pairs, as where all are equal,
    nothing is expected more than the rest, and the document keeps its key: it is drawn.

    Args:
        probability: P / mu of each pair.
        density: share of the pairs that are edges.
        key: of each document, for those that are drawn, ``[B]``.
    """
    if probability.batch.numel() == 0:
        return key
    start, length = probability.ptr[:-1, None], probability.lengths[:, None].clamp(min=2)
    number = torch.arange(SAMPLE, dtype=torch.float64, device=key.device)
    place = (number * SPREAD[0] % 1.0 * length).long()
    distance = 1 + (number * SPREAD[1] % 1.0 * (length - 1)).long()
    last = probability.batch.numel() - 1  # documents of one node or none have no pair, and no edge whatever is found
    i, j = (start + place).clamp(max=last), (start + (place + distance) % length).clamp(max=last)
    p = probability.pair(torch.minimum(i, j), torch.maximum(i, j)) * HASH_RANGE
    threshold = p.kthvalue(SAMPLE - round(SAMPLE * density), 1).values.ceil().clamp(0, HASH_RANGE - 1)
    return torch.where(p.amax(1) > threshold, constant_key(threshold.long()), key)
