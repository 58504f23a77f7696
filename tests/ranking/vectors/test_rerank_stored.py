"""Stored vectors: the same ranking without reading documents, and stores that must not be used."""

import json

import numpy as np
import pytest
import torch
from tales import builder_of, random_texts

from socialgraph.data import Document, GraphBuilder, Tokens
from socialgraph.data.passage_bm25 import PassageBM25
from socialgraph.edges import SocialEdges, StaticDistance
from socialgraph.errors import CheckpointError, InputError, OptionError
from socialgraph.nn import SentenceEncoder
from socialgraph.nn.colbert import ColBERT
from socialgraph.nn.icli import ICLI
from socialgraph.partition import NodeCircles, Windows
from socialgraph.ranking import rerank
from socialgraph.ranking.vectors import rerank_stored as module
from socialgraph.ranking.vectors.encode import encode_collection
from socialgraph.ranking.vectors.rerank_stored import rerank_stored
from socialgraph.ranking.vectors.vector_store import VectorStore

pytestmark = pytest.mark.filterwarnings("ignore:1 documents have no word piece")
QUERIES = {"q1": "w1 w2", "q2": "w3", "q3": "w9 w8 w7 w6 w5 w4"}
MODELS = {
    "colbert": (ColBERT, {}),
    "icli-dot": (ICLI, {"select": "dot", "passages": 3}),
    "icli-bm25": (ICLI, {"select": "bm25", "passages": 3}),
    "sentence": (SentenceEncoder, {}),
}


@pytest.fixture
def builder(tiny_bert):
    texts = {f"d{i}": text for i, text in enumerate(random_texts([1 + 13 * i for i in range(10)]))} | {"empty": ""}
    return builder_of(tiny_bert[0], texts, passages=Windows(16), relevance=PassageBM25())


def model_of(kind, folder):
    family, options = MODELS[kind]
    torch.manual_seed(4)
    return family.from_backbone(folder, **options)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("dtype", "close"), [("float32", 1e-5), ("float16", 1e-2)])
def test_a_store_ranks_as_the_model_does(builder, tiny_bert, tmp_path, kind, dtype, close):
    model = model_of(kind, tiny_bert[0])
    candidates = {"q1": dict.fromkeys(builder.documents, 1.0), "q2": {"d7": 1.0, "empty": 2.0, "d2": 0.0},
                  "q3": {}, "unknown": {"d1": 1.0}}  # fmt: skip
    exact = rerank(model, builder, QUERIES, candidates, progress=False)
    ids = list(builder.documents)
    store = encode_collection(model, builder, ids, tmp_path / "store", token_budget=50, dtype=dtype, progress=False)
    for budget in (1, 10**6):
        found = rerank_stored(model, store, builder, QUERIES, candidates, token_budget=budget, progress=False)
        assert list(found) == list(exact) == ["q1", "q2", "q3"]
        for query_id, scores in exact.items():
            assert found[query_id].keys() == scores.keys()
            assert list(found[query_id])[:1] == list(scores)[:1]
            assert list(found[query_id].values()) == sorted(found[query_id].values(), reverse=True)
            for document, score in scores.items():
                assert found[query_id][document] == pytest.approx(score, abs=close), (query_id, document)


@pytest.mark.parametrize("kind", MODELS)
def test_bert_reads_queries_only(builder, tiny_bert, tmp_path, kind, monkeypatch):
    model = model_of(kind, tiny_bert[0])
    seen = []
    model.embedding.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].numel()))
    store = encode_collection(model, builder, list(builder.documents), tmp_path / "s", progress=False)
    assert sum(seen) == sum(1 + 13 * i + 2 * -(-(1 + 13 * i) // 16) for i in range(10))
    assert store.token.size(0) == (sum(-(-(1 + 13 * i) // 16) for i in range(10)) if kind == "sentence" else sum(seen))
    seen.clear()
    monkeypatch.setattr(module, "QUERIES", 2)
    candidates = {query_id: dict.fromkeys(builder.documents, 1.0) for query_id in QUERIES}
    run = rerank_stored(model, store, builder, QUERIES, candidates, token_budget=30, progress=False)
    # three queries, two at a time; ColBERT and ICLI fill them up with [MASK]
    assert seen == ([4 + 3, 8] if kind == "sentence" else [2 * 32, 32])
    assert all(scores.keys() == set(builder.documents) for scores in run.values())


def test_only_the_chosen_passages_are_read_from_the_disk(builder, tiny_bert, tmp_path):
    model = model_of("icli-dot", tiny_bert[0])
    store = encode_collection(model, builder, ["d9"], tmp_path / "store", dtype="float32", progress=False)
    before = rerank_stored(model, store, builder, QUERIES, {"q1": {"d9": 1.0}}, progress=False)
    # choose again by hand, then spoil every other passage
    passages = store.passages(["d9"])
    with torch.no_grad():
        query = model.encode_queries(builder([("q1", QUERIES["q1"], "d9")]))
    dots = (passages.cls @ query.cls[0]).tolist()
    chosen = [0, *sorted(range(1, 8), key=lambda i: -dots[i])][:3]
    for place in set(range(8)) - set(chosen):
        start = int(passages.start[place])
        store.token[start : start + int(passages.size[place])] = torch.nan
    assert rerank_stored(model, store, builder, QUERIES, {"q1": {"d9": 1.0}}, progress=False) == before


def test_what_a_store_holds(builder, tiny_bert, tmp_path):
    model = model_of("icli-dot", tiny_bert[0])
    ids = ["d3", "empty", "d5", "d3"]
    store = encode_collection(model, builder, ids, tmp_path / "deep" / "store", token_budget=1, progress=False)
    assert {file.name for file in (tmp_path / "deep" / "store").iterdir()} == {
        "tokens.npy", "cls.npy", "passage_ptr.npy", "document_ptr.npy", "store.json",
    }  # fmt: skip
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["store"]
    assert (len(store), list(store.documents)) == (3, ["d3", "empty", "d5"])
    assert "3 documents" in repr(store)
    tokens = np.load(tmp_path / "deep" / "store" / "tokens.npy", allow_pickle=False)
    assert (tokens.dtype, tokens.shape) == (np.float16, (40 + 2 * 3 + 66 + 2 * 5, 128))
    assert store.cls.dtype == torch.float32
    with torch.no_grad():
        expected = model.encode(builder([("q", "w1", "d5"), ("q", "w1", "d3")]))
    mine = store.passages(["d5", "d3"])
    assert torch.equal(mine.document, expected.document)
    assert torch.equal(mine.document_ptr, expected.document_ptr)
    assert torch.equal(mine.size, expected.size)
    torch.testing.assert_close(mine.cls, expected.cls, atol=1e-5, rtol=0)
    rows = torch.cat([torch.arange(s, s + n) for s, n in zip(mine.start.tolist(), mine.size.tolist(), strict=True)])
    torch.testing.assert_close(mine.token[rows].float(), expected.token, atol=1e-3, rtol=0)


def test_an_empty_store(builder, tiny_bert, tmp_path):
    model = model_of("colbert", tiny_bert[0])
    store = encode_collection(model, builder, ["empty"], tmp_path / "one", progress=False)
    found = rerank_stored(model, store, builder, QUERIES, {"q1": {"empty": 3.0}}, progress=False)
    assert found == {"q1": {"empty": 0.0}}
    assert len(encode_collection(model, builder, [], tmp_path / "none", progress=False)) == 0


def test_empty_documents_are_counted(builder, tiny_bert, tmp_path):
    with pytest.warns(UserWarning, match="1 documents have no word piece, they all get one score: empty"):
        encode_collection(
            model_of("colbert", tiny_bert[0]), builder, ["d1", "empty"], tmp_path / "store", progress=False
        )


def test_another_model_or_other_passages_are_refused(builder, tiny_bert, tmp_path):
    folder, _ = tiny_bert
    model = model_of("icli-dot", folder)
    store = encode_collection(model, builder, ["d1", "d9"], tmp_path / "store", progress=False)
    ask = lambda model, builder: rerank_stored(model, store, builder, QUERIES, {"q1": {"d9": 1.0}}, progress=False)  # noqa: E731
    ask(model, builder)
    with pytest.raises(CheckpointError, match=r"store is of other work: model was 'ICLI', is 'ColBERT'; "):
        ask(model_of("colbert", folder), builder)
    with pytest.raises(CheckpointError, match=r"is of other work: config\.\w+ was "):
        ask(model_of("icli-bm25", folder), builder)
    builder.passages = Windows(17)
    with pytest.raises(CheckpointError, match=r"is of other work: passages was .*, is .Windows\(.*17"):
        ask(model, builder)
    builder.passages = Windows(16)
    model.token_vector.weight.data[0, 0] += 1e-3
    with pytest.raises(CheckpointError, match=r"is of other work: weights was .*encode the collection again"):
        ask(model, builder)


def test_the_attention_backend_may_differ(builder, tiny_bert, tmp_path):
    model = model_of("colbert", tiny_bert[0])
    store = encode_collection(model, builder, ["d1"], tmp_path / "store", progress=False)
    model.save_pretrained(tmp_path / "model")
    again = ColBERT.from_pretrained(tmp_path / "model", attention="edges")
    assert again.attention == "edges"
    rerank_stored(again, store, builder, QUERIES, {"q1": {"d1": 1.0}}, progress=False)


def test_a_document_that_has_changed_is_noticed_where_graphs_are_built(builder, tiny_bert, tmp_path):
    model = model_of("icli-bm25", tiny_bert[0])
    store = encode_collection(model, builder, ["d1", "d2"], tmp_path / "store", progress=False)
    builder.tokens = Tokens(tiny_bert[0])  # one that has not read the documents
    builder.documents["d2"] = Document("d2", "w1")
    with pytest.raises(CheckpointError, match="document 'd2' has 2 passages there and 1 now"):
        rerank_stored(model, store, builder, QUERIES, {"q1": {"d1": 1.0, "d2": 1.0}}, progress=False)


def test_a_score_that_is_no_number_never_leaves(builder, tiny_bert, tmp_path):
    model = model_of("colbert", tiny_bert[0])
    store = encode_collection(model, builder, ["d1", "d2"], tmp_path / "store", dtype="float32", progress=False)
    store.token[int(store.passage_ptr[int(store.document_ptr[1])])] = torch.nan
    with pytest.raises(CheckpointError, match="the score of document 'd2' for query 'q2' is nan"):
        rerank_stored(model, store, builder, QUERIES, {"q2": {"d1": 1.0, "d2": 1.0}}, progress=False)


def test_damaged_stores_are_refused_in_one_line(builder, tiny_bert, tmp_path):
    model, folder = model_of("colbert", tiny_bert[0]), tmp_path / "store"
    with pytest.raises(CheckpointError, match="not a whole store of vectors"):
        VectorStore(folder)
    encode_collection(model, builder, ["d1", "d9"], folder, progress=False)
    about = json.loads((folder / "store.json").read_text())
    for changed in ({**about, "version": 9}, {**about, "documents": ["d1"]}, {"version": 1}, []):
        (folder / "store.json").write_text(json.dumps(changed))
        with pytest.raises(CheckpointError, match=r"store: not a whole store of vectors"):
            VectorStore(folder)
    (folder / "store.json").write_text(json.dumps(about))
    VectorStore(folder)
    whole = (folder / "tokens.npy").read_bytes()
    (folder / "tokens.npy").write_bytes(whole[:-10])
    with pytest.raises(CheckpointError, match="not a whole store of vectors"):
        VectorStore(folder)
    np.save(folder / "tokens.npy", np.array([{}], dtype=object), allow_pickle=True)  # a pickle is not loaded
    with pytest.raises(CheckpointError, match="not a whole store of vectors"):
        VectorStore(folder)


def test_bad_options_and_candidates_are_refused(builder, tiny_bert, tmp_path):
    model = model_of("colbert", tiny_bert[0])
    with pytest.raises(OptionError, match="token_budget must be at least 1"):
        encode_collection(model, builder, ["d1"], tmp_path / "store", token_budget=0)
    with pytest.raises(OptionError, match="dtype must be one of float16, float32, got 'int8'"):
        encode_collection(model, builder, ["d1"], tmp_path / "store", dtype="int8")
    with pytest.raises(InputError, match="1 documents are not in the collection: d77"):
        encode_collection(model, builder, ["d1", "d77"], tmp_path / "store")
    parts = (builder.documents, builder.tokens, builder.statistics, SocialEdges([StaticDistance()]))
    for other in (GraphBuilder(*parts, NodeCircles(k=2), Windows(16)), GraphBuilder(*parts, joint=True)):
        with pytest.raises(OptionError, match="only passages can be stored"):
            encode_collection(model, other, ["d1"], tmp_path / "store")
    store = encode_collection(model, builder, ["d1"], tmp_path / "store", progress=False)
    with pytest.raises(InputError, match=r"1 candidates are not in the store .*store: d2"):
        rerank_stored(model, store, builder, QUERIES, {"q1": {"d2": 1.0}})
    with pytest.raises(OptionError, match="token_budget must be at least 1"):
        rerank_stored(model, store, builder, QUERIES, {}, token_budget=0)
