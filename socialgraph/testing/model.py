"""The contract of a model, tried on hard pairs of query and document."""

from __future__ import annotations

from collections.abc import Sequence
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from torch_geometric.data import Batch

from socialgraph.contracts import Violation
from socialgraph.errors import OptionError
from socialgraph.nn.hub_ranker import HubRanker
from socialgraph.testing.graphs import TOGETHER, hard_graphs, joint, together, with_circles
from socialgraph.testing.trial import Refuse, check_answers, trial

#: how far two equal scores may lie apart, relative to scores above 1: kernels round in another order in a batch
TOLERANCE = 1e-4


def check_model(
    model: HubRanker, joint: bool = False, relevance: bool = True, device: torch.device | str = "cpu"
) -> None:
    """Check that a model keeps its contract, on small hard pairs of query and document; say nothing where it does.

    A document that is empty, of one word, without a word of the query, of nothing else, without circles, with passages
    alone, with friend circles alone, and batches of them; word pieces have ids below 100, and no sequence is longer
    than 70 of them. Each document has one finite score, the same whenever and in whatever company it is asked for, and
    after the model is saved and loaded; finite gradients come to every parameter that asks for one.

    What a layer does that begins as nothing, such as W^C = [I, 0] of :class:`~socialgraph.nn.InterCircle`, shows in a
    model that is trained: check that one, too.

    Args:
        model: an instance, such as ``MyModel.from_backbone("minilm")``; it is copied for every graph.
        joint: whether it reads the query as part of the graph, along edges: ``joint: true`` in a recipe.
        relevance: whether circles have a ``circle_score``, as with ``relevance`` in a recipe.
        device: where the pairs and the model lie.

    Raises:
        ContractError: names the model, the contract, the pair and what is wrong there.
        OptionError: not an instance of :class:`~socialgraph.nn.HubRanker`.
    """
    if not isinstance(model, HubRanker):
        base = "an instance of a BertRanker or HubRanker, such as MyModel.from_backbone('minilm')"
        kind = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise OptionError(f"check_model takes {base}, got {kind}")
    graphs = _joint_graphs(device) if joint else _graphs_of_circles(relevance, device)
    for name, graph in graphs.items():
        with torch.no_grad(), trial(model, name) as (one, refuse):
            _check_scores(one.to(device).eval(), graph, refuse)
    with torch.random.fork_rng(devices=[]), trial(model, TOGETHER) as (one, refuse):  # weights and dropout are drawn
        _check_saved(one.to(device).eval(), graphs[TOGETHER], refuse)
        _check_gradients(one.train(), graphs[TOGETHER], refuse)


def _joint_graphs(device: torch.device | str) -> dict[str, Batch]:
    return {name: together(map(joint, graph.to_data_list()), device) for name, graph in hard_graphs().items()}


def _graphs_of_circles(relevance: bool, device: torch.device | str) -> dict[str, Batch]:
    graphs = {name: with_circles(graph, relevance=relevance) for name, graph in hard_graphs(device).items()}
    random, options = hard_graphs(device)["random"], {"relevance": relevance}
    graphs["without circles"] = with_circles(random, passages=False, circles=False, **options)
    graphs["passages alone"] = with_circles(random, circles=False, **options)
    graphs["friend circles alone"] = with_circles(random, passages=False, **options)
    return graphs


def _check_scores(model: HubRanker, graph: Batch, refuse: Refuse) -> None:
    """Refuse a model whose scores are none, or depend on anything but the document."""

    def ask(batch: Batch) -> Sequence[Tensor]:
        contract, scores, size = "every document has one finite score", model(batch), batch.num_graphs
        if not isinstance(scores, Tensor) or not scores.is_floating_point() or list(scores.shape) != [size]:
            got = f"{scores.dtype} {list(scores.shape)}" if isinstance(scores, Tensor) else type(scores).__name__
            refuse(Violation(contract, f"{size} documents must have floats of the shape [{size}], got {got}"))
        if scores.device != batch.input_ids.device:
            refuse(Violation(contract, f"the scores must be on {batch.input_ids.device}, got {scores.device}"))
        for number in (~scores.isfinite()).nonzero().flatten().tolist():
            refuse(Violation(contract, f"document {number} scores {float(scores[number])}"))
        return scores.unbind()

    check_answers(model, ask, graph, _difference, refuse)


def _difference(one: Tensor, other: Tensor, how: str) -> str | None:
    """Return two scores that differ, in words."""
    equal = bool((one - other).abs() <= TOLERANCE * one.abs().clamp(min=1.0))
    return None if equal else f"it scores {float(one):.6g}, {how} {float(other):.6g}"


@torch.no_grad()
def _check_saved(model: HubRanker, graph: Batch, refuse: Refuse) -> None:
    """Refuse a model that has other scores when it is saved and loaded."""
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = type(model).from_pretrained(folder, classes=[*{type(part) for part in model.modules()}])
    for number, (one, other) in enumerate(zip(model(graph), loaded.to(graph.batch.device)(graph), strict=True)):
        if what := _difference(one, other, "when loaded"):
            refuse(Violation("what is saved is loaded", f"document {number}: {what}"))


def _check_gradients(model: HubRanker, graph: Batch, refuse: Refuse) -> None:
    """Refuse a model with a parameter that gets no gradient in any stage of its training, or none that is finite."""
    for stage in model.stages:
        model.enter(stage)
        loss = model(graph, lambda scores: (scores * torch.linspace(1.0, 2.0, len(scores)).to(scores)).sum())
        if loss.requires_grad:
            loss.backward()
    asked = {name: weight.grad for name, weight in model.named_parameters() if weight.requires_grad}
    lost = [name for name, gradient in asked.items() if gradient is None]
    if lost:
        more = f" and {len(lost) - 1} others" if len(lost) > 1 else ""
        what = f"no gradient comes to {lost[0]}{more}; what is not to be trained says requires_grad_(False)"
        refuse(Violation("gradients reach every parameter", what))
    for name, gradient in asked.items():
        if gradient is not None and not bool(gradient.isfinite().all()):
            refuse(Violation("gradients are finite", f"that of {name} is not"))
