"""Three patterns against the paper's formulas, written as full matrices in reference.py.

The fourth: test_dynamic_centrality.py. What is asked of all: tests/testing/test_pattern.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
import reference
import torch
from graphs import document, random_document
from torch_geometric.data import Batch, Data

from socialgraph.edges import DynamicDistance, Pattern, StaticCentrality, StaticDistance

ATOL = 1e-5  # the package rounds to multiples of 2^-18 = 4e-6, so that every device agrees


def static_distance(data: Data, p: float = 50.0) -> np.ndarray:
    return reference.static_distance(len(data.input_ids), p)


def static_centrality(data: Data) -> np.ndarray:
    return reference.static_centrality(data.tfidf.tolist())


def dynamic_distance(data: Data, p: float = 50.0) -> np.ndarray:
    return reference.dynamic_distance(data.input_ids.tolist(), data.query_ids.tolist(), p)


PATTERNS: dict[str, tuple[Pattern, Callable[[Data], np.ndarray]]] = {
    "static distance": (StaticDistance(), static_distance),
    "static distance, p = 3": (StaticDistance(p=3.0), functools.partial(static_distance, p=3.0)),
    "static centrality": (StaticCentrality(), static_centrality),
    "dynamic distance": (DynamicDistance(), dynamic_distance),
    "dynamic distance, p = 0.5": (DynamicDistance(p=0.5), functools.partial(dynamic_distance, p=0.5)),
}
patterns = pytest.mark.parametrize("name", PATTERNS)

DOCUMENTS: dict[str, Data] = {
    "no token": document([], [7]),
    "one token": document([7], [7], [3.0]),
    "two tokens": document([7, 8], [7], [3.0, 1.0]),
    "three tokens": document([7, 8, 9], [9], [1.0, 2.0, 3.0]),
    "no match": document([7, 8, 9, 7, 8], [1, 2], [1.0, 4.0, 0.0, 2.0, 9.0]),
    "everything matches": document([7] * 9, [7], [0.5] * 9),
    "the last token matches": document([*range(10, 70), 7], [7]),
    "a query word said twice counts once": document([7, 8, 9, 8, 8, 7, 9], [7, 9, 7, 7]),
    "equal weights": document(range(20), [3], [2.5] * 20),
    "no weight at all": document(range(20), [3], [0.0] * 20),
    "two celebrities": document(range(20), [3], [0.0] * 11 + [5.0, 7.0] + [0.0] * 7),
    "all equal but one": document(range(20), [3], [1.0] * 19 + [1.5]),
    "nearly equal": document(range(30), [3], [1 + 1e-6 * (i * 7 % 30) for i in range(30)]),
    "tiny weights": document(range(30), [3], [1e-9 * (1 + i * 7 % 30) for i in range(30)]),
    "large weights": document(range(30), [3], [1e6 * (1 + i * 7 % 30) for i in range(30)]),
    "random": random_document(90, 2),
    "random, rare match": random_document(230, 4, vocabulary=300, query_length=2),
}


def dense(pattern: Pattern, graph: Data) -> list[np.ndarray]:
    return [matrix.double().numpy() for matrix in pattern(graph).dense()]


# --- the reference itself, by hand ----------------------------------------------------------------


def test_reference_by_hand() -> None:
    law = np.array([[0, 1 / 4, 1 / 9], [1 / 4, 0, 1 / 4], [1 / 9, 1 / 4, 0]])
    assert reference.static_distance(3, p=1.0) == pytest.approx(law)
    # sqrt of 1 * 4, 1 * 9, 4 * 9 is 2, 3, 6; min-max makes 0, 1/4, 1
    assert reference.f([1, 4, 9]) == pytest.approx(np.array([[0, 0, 1 / 4], [0, 0, 1], [1 / 4, 1, 0]]))
    # heads at 0 and 3: (1 + 1/4) / 2, (1/2 + 1/3) / 2, the same mirrored
    assert reference.dynamic_distance_weights([7, 8, 8, 9], [9, 7, 9], p=1.0) == pytest.approx(
        [5 / 8, 5 / 12, 5 / 12, 5 / 8]
    )
    # attention 1 : 3 at positions 2 and 0, which had 0.3 + 0.1 together
    assert reference.dynamic_centrality_weights([0.1, -0.2, 0.3, 0.05], [2, 0], [0.01, 0.03]) == pytest.approx(
        [0.3, 0.0, 0.1, 0.05]
    )
    assert reference.most_relevant([0.1, 0.5, -0.2, 0.5], 3) == [1, 3, 0]
    both = reference.mean([np.full((2, 2), 1.0), np.full((2, 2), 4.0)], [2, 1])
    assert both == pytest.approx(np.full((2, 2), 2.0))


# --- the package ----------------------------------------------------------------------------------


@patterns
@pytest.mark.parametrize("which", DOCUMENTS)
def test_dense_is_the_formula(name: str, which: str) -> None:
    pattern, formula = PATTERNS[name]
    (found,) = dense(pattern, DOCUMENTS[which])
    want = formula(DOCUMENTS[which])
    assert found.shape == want.shape
    assert found == pytest.approx(want, abs=ATOL)
    assert not found.diagonal().any()
    assert (found == found.T).all()
    assert found.min(initial=0.0) > -ATOL
    assert found.max(initial=0.0) < 1 + ATOL


@patterns
def test_many_random_documents(name: str) -> None:
    pattern, formula = PATTERNS[name]
    data = [random_document(seed % 41, seed, vocabulary=3 + seed % 50, query_length=seed % 6) for seed in range(200)]
    for one, found in zip(data, dense(pattern, Batch.from_data_list(data)), strict=True):
        assert found == pytest.approx(formula(one), abs=ATOL)


@patterns
def test_row_sums_and_pair_are_parts_of_dense(name: str) -> None:
    pattern, _ = PATTERNS[name]
    data = list(DOCUMENTS.values())
    affinity = pattern(Batch.from_data_list(data))
    matrices = affinity.dense()
    assert affinity.row_sums() == pytest.approx(torch.cat([matrix.sum(1) for matrix in matrices]), rel=1e-6, abs=2e-5)
    start = 0
    for matrix in matrices:
        length = len(matrix)
        ids = torch.arange(start, start + length)
        i, j = torch.meshgrid(ids, ids, indexing="ij")
        pairs = affinity.pair(i, j).fill_diagonal_(0)
        assert torch.equal(pairs, affinity.pair(ids[:, None], ids[None, :]).fill_diagonal_(0)), "broadcasting"
        assert torch.equal(pairs, matrix)
        if length > 2:
            assert affinity.pair(ids[0], ids[2]) == matrix[0, 2]
        start += length
