"""ColBERT against transformers' BertModel and plain loops, and what all late interaction promises."""

import json
import string

import pytest
import torch
from conftest import passage_batch, write_tokenizer

from socialgraph.errors import CheckpointError, OptionError
from socialgraph.nn.late_interaction import ColBERT

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


def test_bad_options_are_refused(tiny_bert, monkeypatch):
    folder, _ = tiny_bert
    with pytest.raises(OptionError, match="query_length must be from 4 to 96, got 97"):
        ColBERT.from_backbone(folder, query_length=97)

    class Bare:
        mask_token_id = None

    monkeypatch.setattr("socialgraph.nn.late_interaction.load_tokenizer", lambda _: Bare())
    with pytest.raises(CheckpointError, match=r"the tokenizer has no \[MASK\]"):
        ColBERT.from_backbone(folder)
