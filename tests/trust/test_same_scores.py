"""Scores are the same to 1e-5 whatever computes them: every attention backend, batch, budget and amount of padding."""

import tempfile
from functools import cache
from pathlib import Path

import pytest
import torch
from conftest import shaken, write_tiny_bert
from hypothesis import given, settings
from hypothesis import strategies as st
from tales import random_texts

from socialgraph.data import Document, GraphBuilder, TermStatistics, Tokens
from socialgraph.edges import SocialEdges, StaticCentrality, StaticDistance
from socialgraph.edges.sparse import BigBirdEdges, LongformerEdges
from socialgraph.nn import Socialformer
from socialgraph.nn.late_interaction import ColBERT
from socialgraph.nn.sparse_transformer import SparseTransformer
from socialgraph.partition import NodeCircles, Windows
from socialgraph.ranking import rerank
from socialgraph.ranking.rerank import LOWEST

SEGMENTS = ("padded", "edges")  # socialgraph.nn.attention
EDGES = ("dense", "edges", "flex")  # socialgraph.nn.masked_attention
CASES = {"socialformer": SEGMENTS, "colbert": SEGMENTS, "longformer": EDGES, "bigbird": EDGES}
#: documents by their lengths, and the pairs that are asked for: (query, document)
LENGTHS = st.lists(st.integers(0, 90), min_size=1, max_size=6)
QUERIES = {"q0": "w1", "q1": "w2 w3 w4", "q2": "w5 w6 w7 w8 w9 w10 w11"}


@cache
def model_of(kind):
    """Return a model whose weights have all left their start, and what its graphs are made with."""
    with tempfile.TemporaryDirectory() as folder:
        write_tiny_bert(Path(folder))
        family, options = {
            "socialformer": (Socialformer, {}), "colbert": (ColBERT, {}),
            "longformer": (SparseTransformer, {"max_positions": 128}),
            "bigbird": (SparseTransformer, {"max_positions": 128}),
        }[kind]  # fmt: skip
        model, tokens = shaken(family.from_backbone(folder, **options)).eval(), Tokens(folder)
    if kind in ("longformer", "bigbird"):
        model.score.weight.data *= 10  # scores of about 1, so that 1e-5 is little
    parts = {
        "socialformer": lambda: {
            "edges": SocialEdges([StaticDistance(), StaticCentrality()], sparsity=0.5),
            "circles": NodeCircles(k=3), "passages": Windows(24),
        },
        "colbert": lambda: {"passages": Windows(24)},
        "longformer": lambda: {"edges": LongformerEdges(16, query=True), "joint": True},
        "bigbird": lambda: {"edges": BigBirdEdges(8), "joint": True},
    }[kind]()  # fmt: skip
    return model, tokens, parts


def documents_of(lengths, seed):
    texts = random_texts(lengths, seed=seed)
    return {f"d{i}-{seed}": Document(f"d{i}-{seed}", text) for i, text in enumerate(texts)}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.filterwarnings("ignore:.*documents have no word piece", "ignore:flex_attention called without")
@settings(max_examples=25)
@given(lengths=LENGTHS, seed=st.integers(0, 10**6), budget=st.integers(1, 600), data=st.data())
def test_the_same_scores(kind, lengths, seed, budget, data):
    model, tokens, parts = model_of(kind)
    documents = documents_of(lengths, seed)
    statistics = TermStatistics.of(tokens, documents)
    builder = GraphBuilder(documents, tokens, statistics, **parts)
    asked = data.draw(
        st.lists(st.tuples(st.sampled_from(sorted(QUERIES)), st.sampled_from(sorted(documents))), min_size=1)
    )
    candidates = {}
    for query_id, document in asked:
        candidates.setdefault(query_id, {})[document] = 1.0
    reference, empty = {}, {}  # each pair alone, by the reference backend
    model.attention = "edges"
    with torch.inference_mode():
        for pair in {(query_id, QUERIES[query_id], document) for query_id, document in asked}:
            if tokens.document(documents[pair[2]]).numel():
                reference[pair[0], pair[2]] = model(builder([pair])).item()
    for query_id, document in asked:  # a document without word pieces is not scored: it is last
        known = [score for (query, _), score in reference.items() if query == query_id]
        empty.setdefault((query_id, document), min(known, default=LOWEST + 1) - 1)
    reference = empty | reference
    for backend in CASES[kind]:
        model.attention = backend
        run = rerank(model, builder, QUERIES, candidates, token_budget=budget, progress=False)
        found = {(query_id, document): score for query_id, scores in run.items() for document, score in scores.items()}
        assert found == pytest.approx(reference, abs=1e-5), backend
