"""Every model obeys every law, and every law can be broken."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.utils import scatter

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
    (IDCM, {"chunks": 2}),
    (KeyB, {"select": "bm25"}),
    (KeyB, {"select": "bert", "length": 60}),
    (KeyBPARADE, {"passages": 2}),
    (ColBERT, {}),
    (ICLI, {"select": "dot"}),
    (ICLI, {"select": "bm25"}),
    (SentenceEncoder, {}),
    (WholeDocument, {}),
    (Socialformer, {}),
    (Socialformer, {"readout": "mean", "reads": "high", "positions": "gaps"}),
    (Socialformer, {"inter_shared": True, "leader": "cls", "update": "random"}),
    (Socialformer, {"inter_circle": False}),
]


@pytest.mark.parametrize(("kind", "options"), MODELS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_every_model_obeys(tiny_bert, kind: type, options: dict[str, Any]) -> None:
    check_model(kind.from_backbone(tiny_bert[0], **options))


@pytest.mark.parametrize("own_global", [False, True])
def test_sparse_transformers_obey(tiny_bert, own_global: bool) -> None:
    check_model(SparseTransformer.from_backbone(tiny_bert[0], own_global=own_global), joint=True)


# --- one broken model for each law ----------------------------------------------------------------


class Good(MaxP):
    """Right as it is; those below break one law each."""


class Column(Good):
    def scores(self, graph):
        return super().scores(graph)[:, None]


class NoFloor(Good):
    """The best of no passages."""

    def scores(self, graph):
        amount = torch.bincount(graph.batch[graph.leader_index], minlength=graph.num_graphs)
        return super().scores(graph).masked_fill(amount == 0, -torch.inf)


class NotEmpty(Good):
    def scores(self, graph):
        return super().scores(graph) + graph.input_ids.max()


class InPlace(Good):
    def scores(self, graph):
        graph.tfidf += 1.0
        return super().scores(graph)


class Adds(Good):
    def scores(self, graph):
        graph.scored = super().scores(graph)
        return graph.scored


class Alternating(Good):
    calls = 0

    def scores(self, graph):
        self.calls += 1
        return super().scores(graph) + self.calls % 2


class Dice(Good):
    def scores(self, graph):
        return super().scores(graph) + 1e-9 * torch.rand(1)


class Sociable(Good):
    """Looks at the documents beside."""

    def scores(self, graph):
        scores = super().scores(graph)
        return scores - scores.mean()


class Superstitious(Good):
    """Cares who comes second, and who last but one."""

    def scores(self, graph):
        lengths = graph.ptr.diff()
        return super().scores(graph) + float(len(lengths) > 3 and lengths[1] < lengths[-2])


class Unwritten(Good):
    """Takes an option that no file can hold."""

    def __init__(self, weight=torch.nn.Identity(), **bert):  # noqa: B008
        super().__init__(**bert)
        self.weight = weight


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


class Idle(Good):
    def __init__(self, **bert):
        super().__init__(**bert)
        self.idle = torch.nn.Linear(2, 2)


class Rounded(Good):
    def __init__(self, **bert):
        super().__init__(**bert)
        self.share = torch.nn.Parameter(torch.ones(1))

    def scores(self, graph):
        return super().scores(graph) + self.share.mul(10).round()


class QueryAlone(Good):
    """Never looks at the document."""

    def scores(self, graph):
        words = self.embedding.word.weight[graph.query_ids].mean(1)
        owner = torch.repeat_interleave(graph.query_length)
        mean = scatter(words, owner, dim_size=graph.query_length.numel(), reduce="mean")
        rest = sum(weight.sum() for weight in self.parameters())
        return mean + 1e-3 * rest


#: model -> (law, graph, and a part of what is said)
BROKEN = {
    Column: ("every document gets one finite score", "some words", "1 documents must have the scores [1], got [1, 1]"),
    NoFloor: ("every document gets one finite score", "empty", "document 0 scores -inf"),
    NotEmpty: ("every document gets one finite score", "empty", "it raises RuntimeError: max()"),
    InPlace: ("the graph stays as it is", "some words", "tfidf is another after the call"),
    Adds: ("the graph stays as it is", "some words", "scored is new after the call"),
    Alternating: ("the same graph gets the same scores", "some words", "document 0 scores "),
    Dice: ("global random numbers stay as they are", "some words", "it uses or seeds the global generator of torch"),
    Sociable: ("a batch is its documents alone", TOGETHER, "in the batch, "),
    Superstitious: ("the order of documents does not matter", TOGETHER, "document 0 scores "),
    Unwritten: ("what is saved is loaded", TOGETHER, "config.json lacks the option 'weight'"),
    Unsaved: ("what is saved is loaded", TOGETHER, "when saved, "),
    Rooted: ("gradients are finite", TOGETHER, "the gradient of score.weight is not finite"),
    Detached: ("gradients reach every parameter", TOGETHER, "no gradient comes to embedding.word.weight and "),
    Idle: ("gradients reach every parameter", TOGETHER, "no gradient comes to idle.weight and 1 others"),
    Rounded: ("gradients reach every parameter", TOGETHER, "no gradient comes to share; "),
    QueryAlone: ("two documents can be told apart", "two documents", "the loss was 0.6931 at first and 0.6931 after"),
}


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
