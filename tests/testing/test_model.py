"""Every model obeys every law, and every law can be broken."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from broken_models import BROKEN, Alternating, Good

from socialgraph.errors import LawError, OptionError, law_name
from socialgraph.nn import (
    ICLI,
    IDCM,
    PARADE,
    ColBERT,
    HubRanker,
    KeyB,
    KeyBPARADE,
    MaxP,
    SentenceEncoder,
    Socialformer,
    SparseTransformer,
    VanillaBERT,
    WholeDocument,
)
from socialgraph.testing import check_model
from socialgraph.testing.model import BATCH_LAWS, SCORE_LAWS, WHOLE_LAWS, two_documents_can_be_told_apart
from socialgraph.testing.model_graphs import TOGETHER, hard_pairs

LAWS = (*SCORE_LAWS, *BATCH_LAWS, *WHOLE_LAWS, two_documents_can_be_told_apart)

MODELS: list[tuple[type[HubRanker], dict[str, Any]]] = [
    (VanillaBERT, {}),
    (MaxP, {}),
    (PARADE, {"readout": "max"}),
    (PARADE, {"readout": "attention"}),
    (PARADE, {"readout": "transformer", "passages": 2}),
    (IDCM, {"chunks": 2, "kernels": 5, "conv_width": 2}),
    (KeyB, {"select": "bm25"}),
    (KeyB, {"select": "bert", "length": 60}),
    (KeyBPARADE, {"passages": 2}),
    (ColBERT, {}),
    (ICLI, {"select": "dot"}),
    (ICLI, {"select": "bm25"}),
    (SentenceEncoder, {}),
    (SentenceEncoder, {"pooling": "max"}),
    (SentenceEncoder, {"pooling": "cls"}),
    (WholeDocument, {}),
    (Socialformer, {}),
    (Socialformer, {"readout": "mean", "reads": "high", "positions": "gaps"}),
    (Socialformer, {"inter_shared": True, "leader": "cls", "update": "random"}),
    (Socialformer, {"inter_circle": False}),
    (Socialformer, {"readout": "attention", "reads": "high", "inter_shared": True}),
    (Socialformer, {"readout": "transformer", "inter_width": 48, "inter_heads": 2}),
]


@pytest.mark.parametrize(("kind", "options"), MODELS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_every_model_obeys(tiny_bert, kind: type, options: dict[str, Any]) -> None:
    check_model(kind.from_backbone(tiny_bert[0], **options))


@pytest.mark.parametrize("own_global", [False, True])
def test_sparse_transformers_obey(tiny_bert, own_global: bool) -> None:
    check_model(SparseTransformer.from_backbone(tiny_bert[0], own_global=own_global), joint=True)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_law_is_named(tiny_bert, broken: type[Good]) -> None:
    law, name, offence = BROKEN[broken]
    with pytest.raises(LawError) as caught:
        check_model(broken.from_backbone(tiny_bert[0]))
    message = str(caught.value)
    assert "\n" not in message
    assert f"{broken.__name__} breaks the law {law!r} on the graph {name!r}: " in message
    assert offence in message


def test_every_law_can_be_broken() -> None:
    assert {law for law, _, _ in BROKEN.values()} == {law_name(law) for law in LAWS}


def test_the_model_and_the_generator_are_left_alone(tiny_bert) -> None:
    model = Alternating.from_backbone(tiny_bert[0]).train()
    weights = [weight.clone() for weight in model.parameters()]
    good = Good.from_backbone(tiny_bert[0])
    before = torch.get_rng_state()
    with pytest.raises(LawError):
        check_model(model)
    check_model(good)
    assert model.calls == 0
    assert model.training
    assert all(torch.equal(*pair) for pair in zip(model.parameters(), weights, strict=True))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("odd", [MaxP, torch.nn.Linear(2, 1), "maxp"])
def test_only_instances_of_models(odd: object) -> None:
    with pytest.raises(OptionError, match=r"check_model takes an instance of a BertRanker or HubRanker, such as"):
        check_model(odd)


def test_circle_scores_can_be_missing(tiny_bert) -> None:
    with pytest.raises(LawError, match=r"KeyB breaks the law .* on the graph 'some words': .* no circle_score"):
        check_model(KeyB.from_backbone(tiny_bert[0]), relevance=False)


@pytest.mark.parametrize("joint", [False, True])
def test_the_pairs_are_hard(joint: bool) -> None:
    pairs = hard_pairs(torch.device("cpu"), joint)
    lengths = {name: graph.input_ids.numel() for name, graph in pairs.items()}
    frame = 5 if joint else 0  # an empty document's query, [CLS] and [SEP]
    assert lengths["empty"] <= frame + 1
    assert lengths["long"] > 60
    batch = pairs[TOGETHER]
    assert batch.num_graphs > 8
    assert int(batch.input_ids.max()) < 100
    if not joint:
        circles = torch.bincount(batch.batch[batch.leader_index], minlength=batch.num_graphs)
        assert circles[0] == circles[-1] == 0
        assert pairs["passages alone"].passage_mask.all()
        assert not pairs["friend circles alone"].passage_mask.any()
        assert len(pairs["without circles"].input_ids) > 10 > len(pairs["without circles"].leader_index)
