"""ICLI against transformers' BertModel and plain loops, and its two losses by hand."""

import math

import pytest
import torch
from conftest import passage_batch
from test_late_interaction import max_sim, passage_texts, query_text, vectors_of

from socialgraph.data.graph import rate
from socialgraph.errors import InputError, OptionError
from socialgraph.nn.icli import ICLI

LENGTHS = (90, 0, 33, 1)  # 6, 0, 3 and 1 windows


def scored_batch():
    """Documents with a random BM25 for each passage; the first passage never is the best."""
    batch = passage_batch(lengths=LENGTHS)
    generator = torch.Generator().manual_seed(3)
    score = torch.rand(batch.num_circles, generator=generator)
    score[[0, 6, 9]] = 0.0
    rate(batch, score)
    return batch


def plain(bert, model, batch, select):
    """Return documents' scores, first passages' dot products, and which passages were chosen: by loops."""
    scores, dots, choices = [], [], []
    number = 0
    for graph in batch.to_data_list():
        texts = passage_texts(graph)
        query, cls = vectors_of(bert, model, query_text(graph, model.query_length))
        read = [vectors_of(bert, model, text) for text in texts]
        dot = [float((model.cls_vector.weight @ cls) @ (model.cls_vector.weight @ other)) for _, other in read]
        bm25 = batch.circle_score[number : number + len(texts)].tolist()
        number += len(texts)
        rank = dot if select == "dot" else bm25
        chosen = [0, *sorted(range(1, len(texts)), key=lambda i: -rank[i])][: len(model.place_weight)] if texts else []
        late = [max_sim(query, read[i][0]) for i in chosen]
        scores.append(sum(float(w) * s for w, s in zip(model.place_weight, late, strict=False)))
        dots.append(dot[0] if dot else 0.0)
        choices.append(chosen)
    return scores, dots, choices


@pytest.fixture(params=["dot", "bm25"])
def setting(request, tiny_bert):
    folder, bert = tiny_bert
    torch.manual_seed(2)
    model = ICLI.from_backbone(folder, select=request.param, size=12, query_length=10)
    model.place_weight.data = torch.tensor([0.4, 0.3, 0.2, -0.1])
    model.cls_vector.weight.data *= 10
    return bert, model.eval(), scored_batch(), request.param


def test_scores_are_those_of_plain_loops(setting):
    bert, model, batch, select = setting
    with torch.no_grad():
        found = model(batch)
        expected, _, choices = plain(bert, model, batch, select)
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-4, rtol=0)
    assert [len(choice) for choice in choices] == [4, 0, 3, 1]
    assert choices[0] != [0, 1, 2, 3]


def test_the_two_losses_by_hand(setting):
    bert, model, batch, select = setting
    model.sigma.data = torch.tensor([0.5, 2.0])
    weight = torch.tensor([1.0, -3.0, 2.0, 0.5])
    with torch.no_grad():
        found = model(batch, lambda scores: (scores * weight).sum() ** 2)
        scores, dots, _ = plain(bert, model, batch, select)
    one, two = (sum(float(w) * x for w, x in zip(weight, values, strict=True)) ** 2 for values in (dots, scores))
    expected = one / (2 * 0.25) + two / (2 * 4.0) + math.log(1.25) + math.log(5.0)
    assert found.item() == pytest.approx(expected, rel=1e-4)


def test_choosing_has_no_gradient(setting):
    _, model, batch, _ = setting
    model(batch).sum().backward()
    assert model.cls_vector.weight.grad is None  # only the loss of the first passages teaches it
    assert model.sigma.grad is None
    assert model.place_weight.grad is not None


def test_bad_options_and_graphs_are_refused(tiny_bert):
    folder, _ = tiny_bert
    with pytest.raises(OptionError, match="passages must be at least 1"):
        ICLI.from_backbone(folder, passages=0)
    with pytest.raises(InputError, match=r"no circle_score: build it with GraphBuilder"):
        ICLI.from_backbone(folder, select="bm25")(passage_batch())
