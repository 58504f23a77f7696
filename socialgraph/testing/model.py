"""The laws of a model, tried on hard pairs of query and document."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Batch

from socialgraph.errors import OptionError
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.testing.laws import check_laws, global_generators_touched
from socialgraph.testing.model_graphs import TOGETHER, hard_pairs, two_pairs

#: how far two equal scores may lie apart, relative to scores above 1: kernels round in another order in a batch
TOLERANCE = 1e-4
#: standard deviation of what weights are shaken by, as large as BERT's own weights are at birth
SHAKE = 0.02
#: steps within which two documents are told apart
STEPS = 40


def check_model(
    model: HubRanker, joint: bool = False, relevance: bool = True, device: torch.device | str = "cpu"
) -> None:
    """Check that a model obeys every law, on hard pairs of query and document; say nothing where it does.

    The pairs are small: a document that is empty, of one word, without a word of the query, of nothing else, without
    circles, with passages alone, with friend circles alone, and batches of them. Word pieces have ids below 100, and no
    sequence is longer than 90 of them.

    Laws about scores and gradients are tried with weights that are shaken a little at random, because a layer that
    begins as nothing, such as W^C = [I, 0] of :class:`~socialgraph.nn.InterCircle`, hides all that is behind it. So a
    gradient that is nothing in the first step only is no mistake. The laws are :data:`SCORE_LAWS`,
    :data:`BATCH_LAWS`, :data:`WHOLE_LAWS` and :func:`two_documents_can_be_told_apart`.

    Args:
        model: an instance, such as ``MyModel.from_backbone("minilm")``; it is copied for every law.
        joint: whether it reads the query as part of the graph, along edges: ``joint: true`` in a recipe.
        relevance: whether circles have a ``circle_score``, as with ``relevance`` in a recipe.
        device: where the pairs and the model lie.

    Raises:
        LawError: a law is broken. The message names the model, the law, the pair and the offender.
        OptionError: not an instance of :class:`~socialgraph.nn.HubRanker`.
    """
    if not isinstance(model, HubRanker):
        base = "an instance of a BertRanker or HubRanker, such as MyModel.from_backbone('minilm')"
        raise OptionError(f"check_model takes {base}, got {shown_kind(model)}")
    device = torch.device(device)
    pairs = hard_pairs(device, joint, relevance)
    # Dropout and drawing weights use the global generator, which is to be as it was.
    with torch.random.fork_rng(devices=[]):
        moved = shaken(model, device)
        check_laws(moved, SCORE_LAWS, pairs)
        batches = {name: graph for name, graph in pairs.items() if graph.num_graphs > 1}
        check_laws(moved, BATCH_LAWS, batches)
        check_laws(moved, WHOLE_LAWS, {TOGETHER: pairs[TOGETHER]})
        two = two_pairs(device, joint, relevance)
        check_laws(copy.deepcopy(model).to(device), [two_documents_can_be_told_apart], two)


def shown_kind(value: object) -> str:
    """Return a class's name, or that of an object's."""
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


def shaken(model: HubRanker, device: torch.device) -> HubRanker:
    """Return a copy whose weights are a little other ones, so that none is nothing; it does not train."""
    moved = copy.deepcopy(model).to(device)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in moved.parameters():
            weight.add_((SHAKE * torch.randn(weight.shape, generator=draw)).to(weight))
    return moved.eval()


# --- laws of the scores ---------------------------------------------------------------------------
# Each returns the offence in words, or nothing.


@torch.no_grad()
def every_document_gets_one_finite_score(model: HubRanker, graph: Batch) -> str | None:
    """A batch of B documents has the scores ``[B]``, finite, on its device."""
    scores, size = model(graph), graph.num_graphs
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        kind = str(scores.dtype) if isinstance(scores, Tensor) else type(scores).__name__
        return f"scores must be a tensor of floats, got {kind}"
    if list(scores.shape) != [size]:
        return f"{size} documents must have the scores [{size}], got {list(scores.shape)}"
    if scores.device != graph.input_ids.device:
        return f"the scores must be on {graph.input_ids.device}, got {scores.device}"
    wrong = (~scores.isfinite()).nonzero().flatten()
    return f"document {int(wrong[0])} scores {float(scores[wrong[0]])}" if wrong.numel() else None


@torch.no_grad()
def the_graph_stays_as_it_is(model: HubRanker, graph: Batch) -> str | None:
    """The graph is not changed: nothing in it, and nothing added."""
    before = {key: value.clone() for key, value in graph.to_dict().items() if isinstance(value, Tensor)}
    names = set(graph.keys())
    model(graph)
    if odd := sorted(names ^ set(graph.keys())):
        return f"{odd[0]} is {'gone' if odd[0] in names else 'new'} after the call"
    for key, value in before.items():
        if not torch.equal(value, graph[key]):
            return f"{key} is another after the call"
    return None


@torch.no_grad()
def the_same_graph_gets_the_same_scores(model: HubRanker, graph: Batch) -> str | None:
    """Two calls give the same scores, outside of training."""
    return difference(model(graph), model(graph), "at the first call", "at the second")


def global_random_numbers_stay_as_they_are(model: HubRanker, graph: Batch) -> str | None:
    """Nothing is drawn at random outside of training."""
    return global_generators_touched(lambda: model(graph))


@torch.no_grad()
def a_batch_is_its_documents_alone(model: HubRanker, graph: Batch) -> str | None:
    """A document has the same score alone and in a batch."""
    alone = [model(Batch.from_data_list([one])) for one in graph.to_data_list()]
    return difference(model(graph), torch.cat(alone), "in the batch", "alone")


@torch.no_grad()
def the_order_of_documents_does_not_matter(model: HubRanker, graph: Batch) -> str | None:
    """A batch turned around has the same scores, turned around."""
    turned = Batch.from_data_list(graph.to_data_list()[::-1])
    return difference(model(graph), model(turned).flip(0), "in order", "turned around")


@torch.no_grad()
def what_is_saved_is_loaded(model: HubRanker, graph: Batch) -> str | None:
    """``from_pretrained`` gives the model back that ``save_pretrained`` wrote; config.json has every option."""
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        file = Path(folder, "config.json")
        written = json.loads(file.read_text()) if file.exists() else {}
        for name, option in inspect.signature(type(model)).parameters.items():
            if option.kind not in (option.VAR_POSITIONAL, option.VAR_KEYWORD) and name not in written:
                return f"config.json lacks the option {name!r}: make it of numbers, texts, lists or tables"
        loaded = type(model).from_pretrained(folder).to(graph.input_ids.device)
    return difference(model(graph), loaded(graph), "when saved", "when loaded")


# --- laws of training -----------------------------------------------------------------------------


def gradients_are_finite(model: HubRanker, graph: Batch) -> str | None:
    """No gradient is infinite or not a number: not for empty documents, either."""
    for stage in gradients(model, graph):
        for name, weight in model.named_parameters():
            if weight.grad is not None and not bool(weight.grad.isfinite().all()):
                return f"the gradient of {name} is not finite{stage}"
    return None


def gradients_reach_every_parameter(model: HubRanker, graph: Batch) -> str | None:
    """Each parameter that asks for a gradient gets one, in one of the stages of training.

    A gradient may be 0 where the parameter changes no score: softmax, for one, does not feel what is added to all.
    """
    for _ in gradients(model, graph):
        pass  # they add up
    asked = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    lost = [name for name, weight in asked.items() if weight.grad is None]
    for name, weight in asked.items():
        if weight.grad is not None and not bool(weight.grad.any()) and changes_scores(model, weight, graph):
            lost.append(name)
    if not lost:
        return None
    number = f" and {len(lost) - 1} others" if len(lost) > 1 else ""
    return f"no gradient comes to {lost[0]}{number}; what is not to be trained says requires_grad_(False)"


Law = Callable[[HubRanker, Batch], str | None]
#: what is asked of scores, in the order in which it is checked, and on all pairs
SCORE_LAWS: tuple[Law, ...] = (
    every_document_gets_one_finite_score,
    the_graph_stays_as_it_is,
    the_same_graph_gets_the_same_scores,
    global_random_numbers_stay_as_they_are,
)
#: what documents of a batch have to do with each other
BATCH_LAWS: tuple[Law, ...] = (a_batch_is_its_documents_alone, the_order_of_documents_does_not_matter)
#: what takes longest, and is tried on all documents together
WHOLE_LAWS: tuple[Law, ...] = (what_is_saved_is_loaded, gradients_are_finite, gradients_reach_every_parameter)


def two_documents_can_be_told_apart(model: HubRanker, graph: Batch) -> str | None:
    """Fitted to two documents for some steps, the model comes to prefer the one that it liked less."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    if not weights:
        return None
    model.eval().enter(model.stages[0])  # without dropout: a loss that goes down does so at every step
    better = int(model.scores(graph)[0] > model.scores(graph)[1])
    optimizer = torch.optim.Adam(weights, lr=1e-3)
    losses: list[float] = []
    for _ in range(STEPS):
        loss = model(graph, lambda scores: F.softplus(scores[1 - better] - scores[better]))
        losses.append(float(loss.detach()))
        if losses[-1] < 0.9 * losses[0]:
            return None
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return f"the loss was {losses[0]:.4g} at first and {losses[-1]:.4g} after {STEPS} steps"


# --- how laws are tried and told ------------------------------------------------------------------


def gradients(model: HubRanker, graph: Batch) -> Iterator[str]:
    """Add up the gradients of a model in training, stage by stage; yield what to say of the stage."""
    model.train()
    for stage in model.stages:
        model.enter(stage)
        torch.manual_seed(0)  # dropout
        loss = model(graph, lambda scores: (scores * torch.linspace(1.0, 2.0, len(scores)).to(scores)).sum())
        if loss.requires_grad:
            loss.backward()
        yield f" in the stage {stage!r}" if len(model.stages) > 1 else ""


@torch.no_grad()
def changes_scores(model: HubRanker, weight: Tensor, graph: Batch) -> bool:
    """Whether other values of a weight change any score."""
    model.eval()
    before, kept = model(graph), weight.clone()
    weight.add_(torch.randn_like(weight))
    after = model(graph)
    weight.copy_(kept)
    return difference(before, after, "", "") is not None


def difference(one: Tensor, two: Tensor, when: str, then: str) -> str | None:
    """Return the first document whose score differs, in words."""
    wrong = ~((one - two).abs() <= TOLERANCE * one.abs().clamp(min=1.0))
    if not bool(wrong.any()):
        return None
    document = int(wrong.nonzero()[0])
    return f"document {document} scores {float(one[document]):.6g} {when}, {float(two[document]):.6g} {then}"
