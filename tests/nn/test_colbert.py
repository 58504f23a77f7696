"""ColBERT against transformers' BertModel and plain loops, and what all late interaction promises."""

import json
import string

import pytest
import torch
from conftest import passage_batch, write_tokenizer
from torch_geometric.data import Data

from socialgraph.errors import CheckpointError, OptionError
from socialgraph.nn.colbert import ColBERT
from socialgraph.nn.late_interaction import max_similarity
from socialgraph.nn.sequences import passage_sequences, query_sequences

CLS, SEP, MASK = 2, 3, 4


def passage_texts(graph, marker=None):
    """Return what each passage of one document reads, list by list."""
    head = [CLS] if marker is None else [CLS, marker]
    return [
        [*head, *graph.input_ids[graph.circle_index[0][graph.circle_index[1] == c]].tolist(), SEP]
        for c in range(graph.num_circles)
    ]


def query_text(graph, length, marker=None):
    """Return what the query of one document reads."""
    head = [CLS] if marker is None else [CLS, marker]
    ids = [*head, *graph.query_ids.tolist()[: length - len(head) - 1], SEP]
    return ids + [MASK] * (length - len(ids))


def vectors_of(bert, model, ids):
    """Return the unit vectors of a text's tokens, and the state of its [CLS]."""
    hidden = bert(torch.tensor([ids]), token_type_ids=torch.zeros(1, len(ids), dtype=torch.long)).last_hidden_state[0]
    vectors = hidden @ model.token_vector.weight.T
    return vectors / vectors.pow(2).sum(-1, keepdim=True).sqrt(), hidden[0]


def max_sim(query, tokens):
    """Return the sum over the query's vectors of the best dot product, pair by pair."""
    return sum(max(float(q @ t) for t in tokens) for q in query)


def test_max_similarity_on_toy_vectors():
    query = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [1.0, 1.0]]])
    token = torch.tensor([[9.0, 9.0], [1.0, 0.5], [-1.0, 3.0], [-5.0, -5.0]])
    # rows 1 and 2 for query 0, row 3 for query 1, nothing for query 1, row 1 for query 1
    start, size, owner = torch.tensor([1, 3, 4, 1]), torch.tensor([2, 1, 0, 1]), torch.tensor([0, 1, 1, 1])
    expected = torch.tensor([1.0 + 3.0, -10.0 - 10.0, 0.0, 2.0 + 1.5])
    torch.testing.assert_close(max_similarity(query, token, start, size, owner), expected)
    torch.testing.assert_close(max_similarity(query, token.half(), start, size, owner), expected)


def test_max_similarity_of_long_segments_and_its_gradient():
    torch.manual_seed(0)
    sizes = [31, 32, 33, 100, 0, 1, 64]
    size = torch.tensor(sizes)
    query, token = torch.randn(3, 5, 8, requires_grad=True), torch.randn(sum(sizes), 8, requires_grad=True)
    owner = torch.tensor([2, 0, 1, 1, 0, 2, 0])
    found = max_similarity(query, token, size.cumsum(0) - size, size, owner)
    parts = token.split(sizes)
    expected = torch.stack(
        [(query[q] @ t.T).amax(1).sum() if len(t) else query.new_zeros(()) for q, t in zip(owner, parts, strict=True)]
    )
    torch.testing.assert_close(found, expected)
    weight = torch.randn(len(sizes))
    mine = torch.autograd.grad((found * weight).sum(), (query, token))
    theirs = torch.autograd.grad((expected * weight).sum(), (query, token))
    torch.testing.assert_close(mine, theirs)
    assert max_similarity(query, token[:0], size[:0], size[:0], owner[:0]).shape == (0,)


@pytest.mark.parametrize("marker", [None, 7])
def test_sequences_of_queries_and_passages_alone(marker):
    batch = passage_batch()
    passages = passage_sequences(batch, CLS, SEP, marker)
    texts = [text for graph in batch.to_data_list() for text in passage_texts(graph, marker)]
    assert [x.tolist() for x in passages.token.split(passages.ptr.diff().tolist())] == texts
    assert passages.position.tolist() == [place for text in texts for place in range(len(text))]
    assert passages.leader.tolist() == passages.ptr[:-1].tolist()
    assert passages.document_ptr.tolist() == [0, 5, 5, 8, 9]
    for length in (5, 12):  # queries have 2 to 5 word pieces: some are cut at 5
        queries = query_sequences(batch, CLS, SEP, MASK, length, marker)
        texts = [query_text(graph, length, marker) for graph in batch.to_data_list()]
        assert queries.token.view(4, length).tolist() == texts
        assert queries.position.tolist() == list(range(length)) * 4
        assert queries.ptr.tolist() == [0, length, 2 * length, 3 * length, 4 * length]
    assert not passages.segment.any()
    assert not queries.segment.any()


@pytest.mark.parametrize("markers", [{}, {"query_marker": 7, "document_marker": 8}])
def test_scores_are_those_of_plain_loops(tiny_bert, markers):
    folder, bert = tiny_bert
    batch = passage_batch()
    punctuation = batch.input_ids[:3].unique().tolist()
    torch.manual_seed(0)
    model = ColBERT.from_backbone(folder, size=12, query_length=10, punctuation=punctuation, **markers).eval()
    with torch.no_grad():
        found = model(batch)
        for number, graph in enumerate(batch.to_data_list()):
            query = vectors_of(bert, model, query_text(graph, 10, markers.get("query_marker")))[0]
            tokens = []
            for text in passage_texts(graph, markers.get("document_marker")):
                vectors = vectors_of(bert, model, text)[0]
                tokens += [v for v, word in zip(vectors, text, strict=True) if word not in punctuation]
            expected = max_sim(query, tokens) if tokens else 0.0
            assert found[number].item() == pytest.approx(expected, abs=1e-4), number
    assert found[1] == 0
    assert found.unique().numel() == 4


def test_the_tokenizer_decides_markers_and_punctuation(tiny_bert, tmp_path):
    folder, _ = tiny_bert
    plain = ColBERT.backbone_options(folder)
    assert plain == {
        "cls_token_id": 2, "sep_token_id": 3, "mask_token_id": 4,
        "query_marker": None, "document_marker": None, "punctuation": [],
    }  # fmt: skip
    words = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "w1", "!", "...", "é"]
    write_tokenizer(tmp_path / "other", words)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "other" / "config.json").write_text(json.dumps(config))
    other = ColBERT.backbone_options(str(tmp_path / "other"))
    assert (other["query_marker"], other["document_marker"], other["punctuation"]) == (1, 2, [7, 9])
    assert len(string.punctuation) == 32


def test_punctuation_never_matches(tiny_bert):
    folder, _ = tiny_bert
    batch = passage_batch(lengths=(20,))
    model = ColBERT.from_backbone(folder).eval()
    with torch.no_grad():
        everything = model.encode(batch)
        model.get_buffer("punctuation").resize_(1).fill_(int(batch.input_ids[5]))
        less = model.encode(batch)
    gone = int((batch.input_ids == batch.input_ids[5]).sum())
    assert gone >= 1
    assert len(less.token) == len(everything.token) - gone
    assert int(less.size.sum()) == len(less.token)


def test_queries_need_no_document(tiny_bert):
    folder, _ = tiny_bert
    batch = passage_batch()
    model = ColBERT.from_backbone(folder).eval()
    with torch.no_grad():
        bare = model.encode_queries(Data(query_ids=batch.query_ids, query_length=batch.query_length))
        full = model.encode_queries(batch)
    assert torch.equal(bare.token, full.token)
    assert bare.token.shape == (4, 32, 128)
    torch.testing.assert_close(bare.token.norm(dim=-1), torch.ones(4, 32))


def test_bad_options_are_refused(tiny_bert, monkeypatch):
    folder, _ = tiny_bert
    with pytest.raises(OptionError, match="query_length must be from 4 to 96, got 97"):
        ColBERT.from_backbone(folder, query_length=97)
    with pytest.raises(OptionError, match="query_length must be from 4 to 96, got 3"):
        ColBERT.from_backbone(folder, query_length=3)
    with pytest.raises(OptionError, match="size of a vector must be at least 1, got 0"):
        ColBERT.from_backbone(folder, size=0)

    class Bare:
        mask_token_id = None

    monkeypatch.setattr("socialgraph.nn.late_interaction.load_tokenizer", lambda _: Bare())
    with pytest.raises(CheckpointError, match=r"the tokenizer has no \[MASK\]"):
        ColBERT.from_backbone(folder)
