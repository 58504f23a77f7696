"""Blocks by hand and against a literal dynamic programme; sentences by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graphs import HARD, Graph, collate, from_dense, from_pairs

from socialgraph.partition.blocks import Blocks, Sentences


def chain(weights: list[float]) -> Graph:
    """A text whose i-th tie, behind token i, has the i-th weight."""
    length = len(weights) + 1
    adjacency, weight = np.zeros((length, length), dtype=bool), np.zeros((length, length))
    for i, w in enumerate(weights):
        adjacency[i, i + 1], weight[i, i + 1] = True, w
    return from_dense(adjacency, weight)


def possible_ends(weights: list[float], size: int, forced: float) -> list[tuple[int, float]]:
    """(last token of a block, weight of the tie behind it), in order; the end of the text is the last."""
    ends: list[tuple[int, float]] = []
    former = -1
    for token, weight in enumerate([*weights, 0.0]):
        at_end = token == len(weights)
        if weight < forced or at_end:
            ends.append((token, weight))
            former = token
        elif (token - former) % size == 0:
            ends.append((token, weight))
    return ends


def programme(weights: list[float], size: int, segment: float, forced: float) -> list[int]:
    """The last token of each block, by a literal dynamic programme from left to right, near ends first."""
    ends = [(-1, 0.0), *possible_ends(weights, size, forced)]
    total, former = [0.0], [0]
    for i in range(1, len(ends)):
        total.append(float("inf"))
        former.append(-1)
        for j in range(i - 1, -1, -1):
            if ends[i][0] - ends[j][0] <= size and total[j] + ends[i][1] + segment < total[i]:
                total[i], former[i] = total[j] + ends[i][1] + segment, j
    last, i = [], len(ends) - 1
    while i > 0:
        last.append(ends[i][0])
        i = former[i]
    return last[::-1]


def cut(graphs: list[Graph], *, weighted: bool = True, **options: float) -> list[list[int]]:
    """The last token of each block of each graph; checks the form on the way."""
    edge_index, batch, batch_size, edge_weight = collate(graphs)
    blocks = Blocks(**options)  # type: ignore[arg-type]
    circle_index, leader_index = blocks(edge_index, batch, batch_size, edge_weight if weighted else None)
    assert circle_index.dtype == leader_index.dtype == torch.int64
    assert circle_index[0].tolist() == list(range(batch.numel())), "every token once, in order"
    circle = circle_index[1]
    assert set(circle.diff().tolist()) <= {0, 1}
    first = torch.ones_like(circle, dtype=torch.bool)
    first[1:] = circle.diff() == 1
    assert leader_index.tolist() == first.nonzero().squeeze(-1).tolist()
    found: list[list[int]] = [[] for _ in graphs]
    last = [*(leader_index[1:] - 1).tolist(), batch.numel() - 1] if batch.numel() else []
    starts = np.cumsum([0, *(graph.num_nodes for graph in graphs)])
    for node in last:
        owner = int(batch[node])
        found[owner].append(node - int(starts[owner]))
    return found


def test_by_hand() -> None:
    # "a b . c d , e" with blocks of 4: after the full stop costs 1, after the comma 2, elsewhere 8
    weights = [8.0, 8.0, 1.0, 8.0, 8.0, 2.0]
    assert cut([chain(weights)], size=4) == [[2, 6]]
    assert cut([chain(weights)], size=3) == [[2, 5, 6]]
    # eleven words without punctuation: forced, at multiples of the size
    assert cut([chain([8.0] * 10)], size=4) == [[3, 7, 10]]
    # ".", then nine words: forced ends are counted from it
    assert cut([chain([8.0, 1.0, *[8.0] * 8])], size=4) == [[1, 5, 9, 10]]
    # a segment of its own costs, so sentences share a block while they fit
    assert cut([chain([8.0, 1.0, 8.0, 1.0, 8.0])], size=6) == [[5]]
    # full stops are cheaper than commas, and among equals the last block is the shortest
    assert cut([chain([8.0, 1.0, 2.0, 8.0, 8.0])], size=4) == [[1, 5]]
    assert cut([chain([8.0, 1.0, 1.0, 8.0, 8.0])], size=4) == [[2, 5]]


@pytest.mark.parametrize(("size", "segment", "forced"), [(63, 4.0, 8.0), (7, 0.0, 1.5), (20, 0.25, 100.0)])
def test_as_the_programme_in_a_batch(size: int, segment: float, forced: float) -> None:
    rng = np.random.default_rng(0)
    lengths = [0, 300, 1, 2, 0, 64, 63, 150, 0]
    texts = [rng.choice([1.0, 2.0, 8.0], max(n - 1, 0), p=[0.05, 0.05, 0.9]).tolist() for n in lengths]
    graphs = [chain(text) if n else from_pairs(0, []) for n, text in zip(lengths, texts, strict=True)]
    options = {"size": size, "segment": segment, "forced": forced}
    expected = [programme(text, **options) if n else [] for n, text in zip(lengths, texts, strict=True)]
    assert cut(graphs, **options) == expected
    assert [cut([graph], **options)[0] for graph in graphs] == expected
    assert any(len(last) > 5 for last in expected)


@pytest.mark.parametrize("weighted", [True, False])
def test_any_graph_can_be_cut(weighted: bool) -> None:
    graphs = list(HARD.values())
    expected = []
    for graph in graphs:
        adjacency, weight = graph.dense()
        strength = weight if weighted else adjacency
        ties = [float(strength[i, i + 1]) for i in range(graph.num_nodes - 1)]  # 0 where strangers meet
        expected.append(programme(ties, 5, 0.5, 0.9) if graph.num_nodes else [])
    assert cut(graphs, weighted=weighted, size=5, segment=0.5, forced=0.9) == expected


def sentences(partition: Sentences, *texts: str) -> list[str]:
    """The sentences of documents of one letter a token."""
    cost = {".": 1.0, "?": 1.0, "!": 1.0, ",": 2.0}
    graphs = [chain([cost.get(letter, 8.0) for letter in text[:-1]]) if text else from_pairs(0, []) for text in texts]
    (node, circle), leader = partition(*collate(graphs))
    letters = "".join(texts)
    assert leader.tolist() == [int(node[circle == c][0]) for c in range(leader.numel())]
    return ["".join(letters[i] for i in node[circle == c].tolist()) for c in range(leader.numel())]


def test_sentences_by_hand() -> None:
    text = "ab,cd.efg?h!ij.klm"
    assert sentences(Sentences(), text) == ["ab,cd.", "efg?", "h!", "ij.", "klm"]
    assert sentences(Sentences(k=3), text, "", "x", "xy") == ["ab,cd.", "efg?", "ij.", "xy"]
    # too long: cut at the comma; no comma: cut after so many tokens
    assert sentences(Sentences(5), text) == ["ab,", "cd.", "efg?", "h!", "ij.", "klm"]
    assert sentences(Sentences(4), "abcdefg.hi.") == ["abcd", "efg.", "hi."]
    assert sentences(Sentences(), "ab...cd.") == ["ab.", "cd."]  # a full stop by itself is no circle
