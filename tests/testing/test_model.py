"""Models of the package keep their contract; broken ones are named."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from socialgraph.errors import ContractError, OptionError
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
from socialgraph.testing.graphs import TOGETHER

MODELS: list[tuple[type[HubRanker], dict[str, Any]]] = [
    (VanillaBERT, {}),
    (MaxP, {}),
    (PARADE, {"readout": "attention"}),
    (PARADE, {"readout": "transformer", "passages": 2}),
    (IDCM, {"chunks": 2, "kernels": 5, "conv_width": 2}),
    (KeyB, {"select": "bm25"}),
    (KeyB, {"select": "bert", "length": 60}),
    (KeyBPARADE, {"passages": 2}),
    (ColBERT, {}),
    (ICLI, {"select": "dot"}),
    (SentenceEncoder, {"pooling": "cls"}),
    (WholeDocument, {}),
    (Socialformer, {}),
    (Socialformer, {"readout": "attention", "reads": "high", "inter_shared": True}),
    (Socialformer, {"inter_circle": False}),
]


@pytest.mark.parametrize(("kind", "options"), MODELS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_every_model_keeps_its_contract(tiny_bert, kind: type, options: dict[str, Any]) -> None:
    check_model(kind.from_backbone(tiny_bert[0], **options))


def test_sparse_transformers_keep_their_contract(tiny_bert) -> None:
    check_model(SparseTransformer.from_backbone(tiny_bert[0], own_global=True), joint=True)


class Exchange(torch.nn.Module):
    """A layer of one's own between the leaders."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x, edge_index):
        return self.linear(x)


def test_a_model_with_a_user_defined_layer_keeps_its_contract(tiny_bert) -> None:
    check_model(Socialformer.from_backbone(tiny_bert[0], inter=Exchange()))


class Good(MaxP):
    """Right as it is; those below break one contract each. What all checks share: test_partition.py."""


class Column(Good):
    def scores(self, graph):
        return super().scores(graph)[:, None]


class NoFloor(Good):
    """The best of no passages."""

    def scores(self, graph):
        amount = torch.bincount(graph.batch[graph.leader_index], minlength=graph.num_graphs)
        return super().scores(graph).masked_fill(amount == 0, -torch.inf)


class Padded(Good):
    """Counts what fills up shorter documents."""

    def scores(self, graph):
        return super().scores(graph) + 0.01 * graph.ptr.diff().max()


class Unsaved(Good):
    """Keeps a weight where torch does not find it."""

    def __init__(self, **bert):
        super().__init__(**bert)
        self.kept = [torch.rand(1)]

    def scores(self, graph):
        return super().scores(graph) + self.kept[0]


class Rooted(Good):
    """The slope of a root at 0 is infinite, whatever torch.where chooses."""

    def scores(self, graph):
        total = graph.ptr.diff() * self.score.weight.square().sum()
        return super().scores(graph) + torch.where(total > 0, total.sqrt(), 0.0)


class Detached(Good):
    def scores(self, graph):
        return (self.score.weight.sum() + self.score.bias) * super().scores(graph).detach()


SCORE = "every document has one finite score"
#: model -> (contract, graph, and a part of what is said)
BROKEN: dict[type[Good], tuple[str, str, str]] = {
    Column: (SCORE, "empty", "1 documents must have floats of the shape [1], got torch.float32 [1, 1]"),
    NoFloor: (SCORE, "empty", "document 0 scores -inf"),
    Padded: ("a batch is its documents alone", TOGETHER, "alone "),
    Unsaved: ("what is saved is loaded", TOGETHER, "when loaded "),
    Rooted: ("gradients are finite", TOGETHER, "that of score.weight is not"),
    Detached: ("gradients reach every parameter", TOGETHER, "no gradient comes to embedding.word.weight and "),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_contract_is_named(tiny_bert, broken: type[Good]) -> None:
    contract, name, what = BROKEN[broken]
    model, before = broken.from_backbone(tiny_bert[0]).train(), torch.get_rng_state()
    with pytest.raises(ContractError) as caught:
        check_model(model)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{broken.__name__} breaks the contract {contract!r} on the graph {name!r}: ")
    assert what in message
    assert model.training
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("odd", [MaxP, torch.nn.Linear(2, 1), "maxp"])
def test_only_instances_of_models(odd: object) -> None:
    with pytest.raises(OptionError, match=r"check_model takes an instance of a BertRanker or HubRanker, such as"):
        check_model(odd)


def test_circle_scores_can_be_missing(tiny_bert) -> None:
    with pytest.raises(ContractError, match=r"KeyB breaks the contract .* on the graph 'empty': .* no circle_score"):
        check_model(KeyB.from_backbone(tiny_bert[0]), relevance=False)
