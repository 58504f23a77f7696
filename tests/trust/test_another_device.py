"""Graphs, scores and gradients on a GPU are those of the CPU."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from graph_digest import LIBRARIES
from in_batches import cuda
from test_recipes import FOUR, MODELS, QUERY, Recipe, backbone, objective  # noqa: F401 (a fixture)

from socialgraph import recipes
from socialgraph.ranking import rerank


def named(group):
    """The options of a group of the configuration; a partition without its library is left out."""
    names = sorted(file.stem for file in (Path(recipes.__file__).parent / group).glob("*.yaml"))
    return [f"{group}={name}" for name in names if name not in LIBRARIES or find_spec(LIBRARIES[name])]


# social-bf16 reads as precisely as a device can, so that its numbers differ from one to the next
EDGES = [option for option in named("edges") if option != "edges=social-bf16"]


def both(name, backbone, *overrides):  # noqa: F811
    """Return a recipe on the CPU, and on the device."""
    return Recipe(name, backbone, overrides), Recipe(name, backbone, overrides, torch.device("cuda"))


def assert_same(here, there, name):
    """Compare two tensors, or None; the second is on the device."""
    assert (here is None) == (there is None), name
    if here is not None:
        assert there.device.type == "cuda", f"{name} is on the CPU"
        torch.testing.assert_close(
            there.detach().cpu().double(), here.detach().double(), atol=1e-5, rtol=1e-5, msg=name
        )


def assert_same_graphs(here, there):
    assert set(here.keys()) == set(there.keys())
    for key, value in here:
        if isinstance(value, torch.Tensor):
            assert_same(value, there[key], key)


@cuda
@pytest.mark.parametrize("name", MODELS)
def test_a_recipe_is_as_on_the_cpu(name, backbone):  # noqa: F811
    made = both(name, backbone)
    graphs = [one.graph(*FOUR) for one in made]
    assert_same_graphs(*graphs)
    scores = [one.model(graph) for one, graph in zip(made, graphs, strict=True)]
    assert_same(*scores, "scores")
    for score in scores:
        objective(score).backward()
    gradients = [{key: p.grad for key, p in one.model.named_parameters()} for one in made]
    for key, gradient in gradients[0].items():
        assert_same(gradient, gradients[1][key], f"gradient of {key}")
    candidates = {"q": dict.fromkeys(FOUR, 1.0)}
    runs = [rerank(one.model, one.builder, {"q": QUERY}, candidates, 200, progress=False)["q"] for one in made]
    assert runs[1] == pytest.approx(runs[0], abs=1e-5)


@cuda
@pytest.mark.parametrize("option", [*EDGES, *named("partition")])
def test_a_graph_is_as_on_the_cpu(option, backbone):  # noqa: F811
    """With and without its edges."""
    made = both("socialformer", backbone, option)
    for keep in (False, True):
        for recipe in made:
            recipe.builder.keep_edges = keep
        assert_same_graphs(*(recipe.graph(*FOUR) for recipe in made))
